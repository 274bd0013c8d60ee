/// One request on a connection of HTTP/2, as its frames show it.
package final class StreamRecord {
  /// The stream identifier; 0 as long as the head of the request was not sent.
  package fileprivate(set) var number: UInt32 = 0
  /// Whether END_STREAM was received, with the whole frame and its field block.
  package fileprivate(set) var hasEnded = false
  /// Whether a frame of the stream was received.
  package fileprivate(set) var hasResponse = false
  /// The error code of the server's RST_STREAM.
  package fileprivate(set) var resetCode: UInt32?
  /// Whether the client reset the stream because of an error of the server's.
  package fileprivate(set) var isRejected = false
  fileprivate var endsWithFields = false

  package init() {}
}

/// The state of the streams of one HTTP/2 connection, as its frames show it (RFC 9113).
///
/// libcurl takes a stream for complete when it is closed, whatever closed it.
package final class ConnectionRecord {
  /// Error codes (RFC 9113 §7).
  package enum Code {
    package static let none: UInt32 = 0
    package static let streamClosed: UInt32 = 5
    package static let refusedStream: UInt32 = 7
    package static let cancel: UInt32 = 8
    package static let http11Required: UInt32 = 13
  }

  private typealias Frame = FrameScanner.Frame

  /// Requests in the order in which libcurl was allowed to send them, whose heads were not sent.
  private var waiting: [StreamRecord] = []
  private var streams: [UInt32: StreamRecord] = [:]
  private var newest: UInt32 = 0
  /// The last stream that the server serves, by its GOAWAY.
  private var lastServed = UInt32.max
  /// Whether the client ended the connection because of an error of the server's.
  package private(set) var hasFailed = false
  /// The number of streams that the server ended without END_STREAM.
  package private(set) var breakCount = 0
  /// The most streams that the server takes at a time, if it says so.
  package private(set) var streamLimit: Int?
  /// Whether the frames are not understood any more.
  package private(set) var isLost = false
  /// Resets and GOAWAY of the server's whose authenticity is not known yet.
  private var unconfirmed: [Frame] = []
  /// Whether all bytes of the server's so far are authentic.
  private let isAuthentic: () -> Bool
  /// Whether requests and streams cannot be told apart any more. Streams from then on have no number.
  private var isConfused = false

  /// Makes the record of a connection without requests.
  ///
  /// - Parameter isAuthentic: Called before the server's frames about refused and broken streams are used. Without
  ///   it, an attacker could cause a request to be sent twice.
  package init(isAuthentic: @escaping () -> Bool) { self.isAuthentic = isAuthentic }

  /// Adds a request that is about to be sent.
  package func add() -> StreamRecord {
    let stream = StreamRecord()
    waiting.append(stream)
    return stream
  }

  /// Removes a request that has ended.
  package func remove(_ stream: StreamRecord) {
    guard stream.number == 0 else {
      streams[stream.number] = nil
      return
    }
    guard let index = waiting.firstIndex(where: { $0 === stream }) else { return }
    waiting.remove(at: index)
    // Its head may be in a buffer of libcurl, and go out in the place of the next one's.
    isConfused = true
  }

  /// Notes that frames are not understood from now on.
  package func lose() { isLost = true }

  /// Whether the response of a stream that libcurl takes for complete is cut off; `nil` if that is not known.
  package func isCutOff(_ stream: StreamRecord) -> Bool? {
    if hasFailed { return true }
    guard !isLost, stream.number > 0 else { return nil }
    return !stream.hasEnded || stream.isRejected
  }

  /// Whether nothing more comes on the stream, although it has not ended.
  package func isBroken(_ stream: StreamRecord) -> Bool {
    confirm()
    guard stream.number > 0, !stream.hasEnded else { return false }
    return stream.resetCode != nil || stream.number > lastServed
  }

  /// Whether no byte of the request was sent, for certain.
  package func isUnsent(_ stream: StreamRecord) -> Bool { !isLost && !isConfused && stream.number == 0 }

  /// Whether the server did not process the request, for certain (RFC 9113 §8.7).
  package func isRefused(_ stream: StreamRecord) -> Bool {
    confirm()
    guard stream.number > 0, !stream.hasResponse else { return false }
    let code = stream.resetCode
    return stream.number > lastServed || code == Code.refusedStream || code == Code.http11Required
  }

  /// Accepts resets and GOAWAY of the server, if they are authentic.
  package func confirm() {
    guard !unconfirmed.isEmpty, isAuthentic() else { return }
    for frame in unconfirmed {
      if frame.kind == Frame.goAway {
        lastServed = min(lastServed, frame.lastStream)
      } else {
        streams[frame.stream]?.resetCode = frame.code
      }
    }
    unconfirmed.removeAll()
  }

  /// Takes a frame of the server's.
  package func received(_ frame: FrameScanner.Frame) {
    if frame.kind == Frame.goAway {
      unconfirmed.append(frame)
      breakCount += 1
      return
    }
    if let limit = frame.streamLimit { streamLimit = Int(limit) }
    guard frame.stream > 0, let stream = streams[frame.stream] else { return }
    switch frame.kind {
    case Frame.data:
      stream.hasResponse = true
      if frame.flags & 0x1 != 0 { stream.hasEnded = true }
    case Frame.headers:
      stream.hasResponse = true
      stream.endsWithFields = frame.flags & 0x1 != 0
      if frame.flags & 0x5 == 0x5 { stream.hasEnded = true }
    case Frame.continuation:
      if stream.endsWithFields, frame.flags & 0x4 != 0 { stream.hasEnded = true }
    case Frame.reset:
      unconfirmed.append(frame)
      breakCount += 1
    default: break
    }
  }

  /// Takes a frame of the client's.
  package func sent(_ frame: FrameScanner.Frame) {
    switch frame.kind {
    case Frame.headers where frame.stream > newest:
      newest = frame.stream
      guard !isConfused, !waiting.isEmpty else {
        isConfused = true
        return
      }
      let stream = waiting.removeFirst()
      stream.number = frame.stream
      streams[frame.stream] = stream
    case Frame.reset:
      // libcurl sends STREAM_CLOSED for each stream that it has finished, and CANCEL for a push.
      guard ![Code.none, Code.streamClosed, Code.cancel].contains(frame.code) else { return }
      streams[frame.stream]?.isRejected = true
    case Frame.goAway:
      if frame.code != Code.none { hasFailed = true }
    default: break
    }
  }
}
