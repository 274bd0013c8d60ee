import FoundationEssentials
import HTTPSystem
import HTTPWire

/// The effect of a part of the response on its exchange.
enum ExchangeStep {
  case goOn
  /// The bytes were not taken, and are delivered again when the exchange goes on.
  case hold
  /// The exchange is complete, although more bytes may follow on its connection.
  case complete
  case fail(TransportFailure)
}

// The head and the body of a response, from its connection to memory or a sink.
extension Exchange {
  func informationalHeadReceived(_ head: ResponseHead) { observer?.informationalHeadReceived(head) }

  /// Delivers the head of the final response.
  ///
  /// - Parameters:
  ///   - framing: The framing of the body, as the head declares it.
  ///   - length: The announced length of the body; `nil` if it is unknown.
  ///   - isReusable: Whether the connection can carry another request behind the body.
  func headReceived(
    _ head: ResponseHead, _ framing: MessageFraming, length: Int64?, isReusable: Bool
  ) -> ExchangeStep {
    let disposition = observer?.headReceived(head) ?? .proceed
    self.head = head
    if disposition == .discard { return dropBody(of: head, framing, isReusable) }
    if let failure = chooseCoding(of: head) { return .fail(failure) }
    count.expectedToReceive = coding.isDecoded ? -1 : length ?? -1
    if let length, length > 0, !coding.isDecoded, request?.hasSink == false { reserve(length) }
    if disposition == .hold { flow.suspend() }
    if case .proceed = disposition, request?.hasSink == false {
      destination = .memory
      return .goOn
    }
    let chosen = BodyDestination(sink: request?.sink, disposition)
    if case .sink(let sink) = chosen, let failure = sink.begin(head, wake: wakeUp) { return .fail(failure) }
    destination = chosen
    return .goOn
  }

  /// Keeps the trailer fields, which end a response.
  func trailersReceived(_ fields: FieldBlock) {
    trailers = fields
    guard let observer = request?.wireObserver else { return }
    (fields.bytes + Array("\r\n".utf8)).withUnsafeBytes { observer.bytesMoved(.responseHead, $0) }
  }

  private func dropBody(
    of head: ResponseHead, _ framing: MessageFraming, _ isReusable: Bool
  ) -> ExchangeStep {
    destination = .discarded
    let dropped = DroppedBody(
      head, framing, method: request?.method ?? "GET", isReusable: isReusable, now: table.now)
    self.dropped = dropped
    table.noteExpiry(of: self)
    return dropped.decision == .read ? .goOn : .complete
  }

  private func reserve(_ length: Int64) {
    if let limit = request?.bodySizeLimit, length > limit { return }
    // Without enough memory the exchange still goes on, because the server may send less than it announced.
    _ = body.reserve(Int(length))
  }

  /// Returns the most bytes that may be read now; 0 if none may. What the sink would not take stays in the socket. Each
  /// read makes the system acknowledge bytes, which costs as much as copying many, so a sink with room gets several
  /// pieces at a time.
  func readLimit() -> Int {
    guard flow.mayReceive else { return 0 }
    guard case .sink(let sink) = destination, !(sink is FileSink) else { return .max }
    let room = sink.room()
    guard room > 0 else {
      flow.stopReceiving(.sinkFull)
      alignPhaseTimer()
      return 0
    }
    // Nothing is known of the room for decoded bytes. A piece is taken as a whole, although it ends beyond the room.
    guard !coding.isDecoded else { return BodyPiece.size }
    return min(4, (min(room, 4 * BodyPiece.size) + BodyPiece.size - 1) / BodyPiece.size) * BodyPiece.size
  }

  /// Delivers bytes of the body, all or none of them.
  func deliver(_ bytes: UnsafeRawBufferPointer) -> ExchangeStep {
    if dropped != nil { return dropped?.received(bytes.count) == .close ? .complete : .goOn }
    guard bandwidth != nil else { return take(bytes) }
    if mustWait(.download) {
      flow.stopReceiving(.throttled)
      return .hold
    }
    let step = take(bytes)
    if case .goOn = step { moved(bytes.count, .download) }
    return step
  }

  private func take(_ bytes: UnsafeRawBufferPointer) -> ExchangeStep {
    guard !coding.isDecoded else { return decode(bytes) }
    switch store(bytes) {
    case .taken: return .goOn
    case .full:
      flow.stopReceiving(.sinkFull)
      return .hold
    case .failure(let failure): return .fail(failure)
    }
  }

  /// Gives decoded bytes to the sink or the buffer, all or none of them.
  private func store(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
    guard let base = bytes.baseAddress else { return .taken }
    switch destination {
    case .discarded: return .taken
    case .sink(let sink):
      let reception = sink.receive(bytes)
      guard case .taken = reception else { return reception }
    case .memory:
      guard !body.append(base, count: bytes.count) else { break }
      return .failure(
        TransportFailure(.resourceUnavailable, "There is not enough memory for the body of the response."))
    }
    count.received += Int64(bytes.count)
    if let failure = sizeFailure { return .failure(failure) }
    observer?.bytesMoved(count)
    return .taken
  }

  /// The failure of a body that has become too large.
  private var sizeFailure: TransportFailure? {
    if let limit = request?.bodySizeLimit, count.received > limit {
      return TransportFailure(
        .dataLengthExceedsMaximum,
        "The body of the response is larger than \(limit) bytes. Raise bodySizeLimit if such responses are expected."
      )
    }
    guard count.received > 65_536, let limit = request?.decodingRatioLimit,
      let consumed = coding.consumed,
      count.received / max(1, consumed) >= Int64(max(1, limit))
    else { return nil }
    return TransportFailure(
      .dataLengthExceedsMaximum,
      "The body of the response grows too much when it is decoded. Raise decodingRatioLimit if such responses are expected."
    )
  }
}

// MARK: Decoding

extension Exchange {
  /// The largest number of decoded bytes of one turn. After that, other exchanges, commands and deadlines of the loop
  /// have their turn, even if a few kilobytes decode to much more.
  private static let decodingQuantum = 4 << 20

  /// Chooses the codings to decode. Returns the failure of a response that is refused.
  private func chooseCoding(of head: ResponseHead) -> TransportFailure? {
    guard head.block.marks.contains(.contentEncoding), request?.profile.options.decodesContent != false else {
      return nil
    }
    switch ContentDecodingPlan(fieldValue: head.block.value(of: "Content-Encoding")) {
    case .asReceived: return nil
    case .decoded(let codings):
      coding.codings = codings
      return nil
    case .tooMany:
      return TransportFailure(
        .cannotDecodeContent,
        "The body from \(hostName) has more than \(ContentDecodingPlan.limit) content codings and is not decoded."
      )
    }
  }

  /// Decodes bytes and delivers them piece by piece. Bytes that are held are delivered again, and those of them that
  /// were decoded before are skipped then.
  private func decode(_ bytes: UnsafeRawBufferPointer) -> ExchangeStep {
    if coding.decoder == nil { coding.decoder = BodyDecoder(coding.codings) }
    guard let decoder = coding.decoder else { return .fail(Self.noMemoryToDecode) }
    let known = min(coding.decodedAhead, bytes.count)
    coding.decodedAhead -= known
    var input = UnsafeRawBufferPointer(rebasing: bytes[known...])
    var delivered = 0
    while true {
      switch decoder.nextPiece(from: &input) {
      case .needsInput: return .goOn
      case .malformed(let detail): return .fail(undecodable(detail))
      case .outOfMemory: return .fail(Self.noMemoryToDecode)
      case .piece(let piece):
        switch store(piece) {
        case .failure(let failure): return .fail(failure)
        case .full: return holdEncoded(bytes.count - input.count, .sinkFull)
        case .taken:
          decoder.dropPiece()
          delivered += piece.count
        }
      }
      if delivered >= Self.decodingQuantum {
        wakeUp()
        return holdEncoded(bytes.count - input.count, .turnExhausted)
      }
    }
  }

  private func holdEncoded(_ decoded: Int, _ reason: ExchangeFlow.ReceivingWait) -> ExchangeStep {
    coding.decodedAhead += decoded
    flow.stopReceiving(reason)
    return .hold
  }

  /// The failure of a body whose framing is complete, and whose content coding is not.
  var undecodedFailure: TransportFailure? {
    // A range of an encoded representation may end anywhere (RFC 9110 §14.2).
    guard let decoder = coding.decoder, !decoder.isComplete, head?.status != 206 else { return nil }
    return TransportFailure(
      .cannotDecodeContent,
      "The body from \(hostName) ended before its content coding (\(codingNames)) was complete. A part of the body is missing."
    )
  }

  private func undecodable(_ detail: String) -> TransportFailure {
    TransportFailure(
      .cannotDecodeContent,
      "The body from \(hostName) could not be decoded as \(codingNames), which its Content-Encoding field names: \(detail)."
    )
  }

  private var codingNames: String { coding.codings.reversed().map(\.rawValue).joined(separator: ", ") }

  private static var noMemoryToDecode: TransportFailure {
    TransportFailure(.resourceUnavailable, "There is not enough memory to decode the body of the response.")
  }
}
