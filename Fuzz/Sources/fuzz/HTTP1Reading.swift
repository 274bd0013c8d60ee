import HTTPWire

/// Reads responses of HTTP/1.1 in segments and compares the parts with those that a slow reader finds, and lets the
/// input choose the events of an exchange.
enum HTTP1Reading {
  static func check(_ bytes: UnsafeRawBufferPointer) {
    let text = Array(bytes)
    for method in ["GET", "HEAD", "CONNECT"] {
      let expected = ReferenceReader.read(text, method: method, limit: 512)
      for segments in method == "GET" ? [[], [1], [2], [7]] : [[]] {
        let parts = SegmentedReading.read(
          text, method: method, limit: 512, segments: segments, mostTaken: segments.first ?? .max)
        precondition(parts == expected, "\(method), \(segments): \(parts) in place of \(expected)")
      }
    }
    walk(bytes)
  }

  /// Performs the events that the bytes stand for. The first byte chooses the request.
  private static func walk(_ bytes: UnsafeRawBufferPointer) {
    guard let first = bytes.first else { return }
    var head = RequestHeadWriter.Summary()
    head.expectsContinue = first & 1 != 0
    head.asksForUpgrade = first & 2 != 0
    let hasContent = first & 4 != 0
    var exchange = HTTP1Exchange(head, hasContent: hasContent, isRepeatable: first & 8 != 0)
    var ends = 0
    for byte in bytes.dropFirst() {
      switch exchange.handle(event(byte)) {
      case .sendContent: precondition(hasContent && exchange.sending == .content)
      case .complete(let reuse):
        precondition(
          !reuse || exchange.sending == .done && exchange.receiving == .done, "used again too early")
        ends += 1
      case .fail, .upgrade, .sendAgainWithoutExpect: ends += 1
      case .none, .awaitContinue, .stopSending: break
      }
    }
    precondition(ends == (exchange.isOver ? 1 : 0), "an exchange ends \(ends) times")
  }

  private static func event(_ byte: UInt8) -> HTTP1Exchange.Event {
    let isSet = byte & 0x10 != 0
    switch byte & 0xF {
    case 0, 1: return .headSent
    case 2, 3: return .contentSent
    case 4: return .continueExpired
    case 5: return .sendFailed
    case 6: return .informational(isSet ? 100 : 103)
    case 7: return .excessBytes
    case 8: return .peerClosed(isAnnounced: isSet)
    case 9, 10: return .responseEnded(hasMore: isSet)
    default:
      let statuses = [101, 200, 204, 401, 413, 417, 500, 302]
      return .final(
        status: statuses[Int(byte >> 5)], keepsAlive: byte & 1 == 0, endsWithConnection: isSet)
    }
  }
}
