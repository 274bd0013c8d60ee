package import FoundationEssentials
import Glibc
import HTTPSystem
package import HTTPWire

/// The effect of a part of the response on its exchange.
enum ExchangeStep {
  case goOn
  /// The bytes were not accepted, and are delivered again when the exchange continues.
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
  ///   - isReusable: Whether the connection can carry another request after the body.
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
    // Without enough memory the exchange still continues, because the server may send less than it announced.
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
    // The room for decoded bytes is unknown. A piece is delivered as a whole, even if it exceeds the room.
    guard !coding.isDecoded else { return BodyPiece.size }
    return min(4, (min(room, 4 * BodyPiece.size) + BodyPiece.size - 1) / BodyPiece.size) * BodyPiece.size
  }

  /// Notes that the sink may have room or the source may have bytes.
  func proceed() {
    flow.proceed()
    alignWithSink()
  }

  /// Ends the suspension. Returns false if there is none.
  func resume() -> Bool {
    guard flow.resume() else { return false }
    alignWithSink()
    return true
  }

  /// Stops the exchange again if its sink is still full, because the source or the caller has continued it. The sink
  /// then wakes it.
  private func alignWithSink() {
    guard flow.mayReceive, case .sink(let sink) = destination, !(sink is FileSink), sink.room() == 0 else {
      return
    }
    flow.stopReceiving(.sinkFull)
  }

  /// Delivers bytes of the body.
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
    case .more: return .goOn
    case .pause:
      flow.stopReceiving(.sinkFull)
      alignPhaseTimer()
      return .goOn
    case .failure(let failure): return .fail(failure)
    }
  }

  /// Gives decoded bytes to the sink or the buffer.
  private func store(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
    guard let base = bytes.baseAddress else { return .more }
    var reception = BodyReception.more
    switch destination {
    case .discarded: return .more
    case .sink(let sink):
      reception = sink.receive(bytes)
      if case .failure = reception { return reception }
    case .memory:
      guard !body.append(base, count: bytes.count) else { break }
      return .failure(
        TransportFailure(.resourceUnavailable, "There is not enough memory for the body of the response."))
    }
    count.received += Int64(bytes.count)
    if let failure = sizeFailure { return .failure(failure) }
    observer?.bytesMoved(count)
    return reception
  }

  /// The failure of a body that has become too large.
  private var sizeFailure: TransportFailure? {
    if let limit = request?.bodySizeLimit, count.received > limit {
      return TransportFailure(
        .dataLengthExceedsMaximum,
        "The body of the response is larger than \(limit) bytes. Raise bodySizeLimit if such responses are expected."
      )
    }
    guard let decoder = coding.decoder, decoder.produced > 65_536, let limit = request?.decodingRatioLimit,
      decoder.produced / max(1, decoder.consumed) >= Int64(max(1, limit))
    else { return nil }
    return TransportFailure(
      .dataLengthExceedsMaximum,
      "The body of the response grows too much when it is decoded. Raise decodingRatioLimit if such responses are expected."
    )
  }
}

// MARK: Decoding

extension Exchange {
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

  /// Decodes bytes and delivers them piece by piece. Bytes that are held back are delivered again; the part that was
  /// decoded before is then skipped.
  ///
  /// After some megabytes in one turn, other exchanges, commands and deadlines of the loop have theirs, even if a few
  /// kilobytes decode to much more, in however many chunks they come.
  private func decode(_ bytes: UnsafeRawBufferPointer) -> ExchangeStep {
    if coding.decoder == nil { coding.decoder = BodyDecoder(coding.codings) }
    guard let decoder = coding.decoder else { return .fail(Self.noMemoryToDecode) }
    let known = min(coding.decodedAhead, bytes.count)
    coding.decodedAhead -= known
    var input = UnsafeRawBufferPointer(rebasing: bytes[known...])
    decoder.beginTurn(core.turn)
    while true {
      switch decoder.nextPiece(from: &input) {
      case .needsInput: return .goOn
      case .malformed(let detail): return .fail(undecodable(detail))
      case .outOfMemory: return .fail(Self.noMemoryToDecode)
      case .piece(let piece):
        switch store(piece) {
        case .failure(let failure): return .fail(failure)
        case .pause:
          decoder.dropPiece()
          return holdEncoded(bytes.count - input.count, .sinkFull)
        case .more: decoder.dropPiece()
        }
      case .turnExhausted:
        if let failure = sizeFailure { return .fail(failure) }
        continueInNextTurn()
        return holdEncoded(bytes.count - input.count, .turnExhausted)
      }
    }
  }

  /// Wakes the exchange in the next turn. Other events may continue it before, so it can get here several times in one
  /// turn, and one wake-up for each of them would be repeated in every turn.
  private func continueInNextTurn() {
    guard coding.exhaustedTurn != core.turn else { return }
    coding.exhaustedTurn = core.turn
    wakeUp()
  }

  private func holdEncoded(_ decoded: Int, _ reason: ExchangeFlow.ReceivingWait) -> ExchangeStep {
    coding.decodedAhead += decoded
    flow.stopReceiving(reason)
    return .hold
  }

  /// The failure of a body with complete framing but an incomplete content coding.
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

/// The destination of a response body.
package enum BodyDestination {
  case memory
  case sink(any BodySink)
  /// The body is discarded; see ``DroppedBody``.
  case discarded

  /// Makes the destination of a body after the decision about its head.
  package init(sink: (any BodySink)?, _ disposition: HeadDisposition) {
    switch disposition {
    case .discard: self = .discarded
    case .proceed, .hold: self = sink.map { .sink($0) } ?? .memory
    }
  }

  package var isDiscarded: Bool {
    if case .discarded = self { true } else { false }
  }
}

/// The bytes of one body. A small body is copied, and the buffer is used for the next transfer. A large body leaves
/// with the memory of the buffer, so that it is never in memory twice.
package struct BodyBuffer: ~Copyable {
  private static let largestCopy = 32_768
  /// The largest reservation for a length that a server has announced.
  private static let largestReservation = 64 << 20

  private var base: UnsafeMutableRawPointer?
  private var capacity = 0
  package private(set) var count = 0

  package init() {}

  deinit {
    free(base)
  }

  package mutating func reserve(_ bytes: Int) -> Bool {
    grow(to: min(bytes, Self.largestReservation))
  }

  /// Returns false if memory is short.
  package mutating func append(_ bytes: UnsafeRawPointer, count added: Int) -> Bool {
    let (needed, overflow) = count.addingReportingOverflow(added)
    guard !overflow else { return false }
    if needed > capacity, !grow(to: max(needed, capacity * 2, 4096)) { return false }
    guard let base else { return added == 0 }
    memcpy(base + count, bytes, added)
    count = needed
    return true
  }

  /// Removes and returns the bytes; `nil` if there are none.
  package mutating func take() -> Data? {
    guard count > 0, let base else { return nil }
    defer { count = 0 }
    if count <= Self.largestCopy { return Data(bytes: base, count: count) }
    let exact = capacity - count > count / 8 ? realloc(base, count) ?? base : base
    let data = Data(bytesNoCopy: exact, count: count, deallocator: .free)
    self.base = nil
    capacity = 0
    return data
  }

  package mutating func clear() {
    count = 0
    guard capacity > Self.largestCopy * 2 else { return }
    free(base)
    base = nil
    capacity = 0
  }

  private mutating func grow(to size: Int) -> Bool {
    guard size > capacity else { return true }
    guard let larger = realloc(base, size) else { return false }
    base = larger
    capacity = size
    return true
  }
}

/// The content codings of one response, and the state of decoding. A body without a coding costs one comparison.
struct BodyCoding {
  /// The codings in the order of decoding; empty if the body is delivered unchanged.
  var codings: [ContentCoding] = []
  /// The decoder, which is created for the first bytes, so that a response without a body does not need one.
  var decoder: BodyDecoder?
  /// The number of bytes at the beginning of the next call that were decoded before a pause.
  var decodedAhead = 0
  /// The last turn of the loop that has decoded as many bytes as one may.
  var exhaustedTurn: UInt64?

  var isDecoded: Bool { !codings.isEmpty }
}

/// The trailer fields of a request, which the caller's code computes on another thread. A request that is sent again
/// has a new one, so that a late reply to the first sending is not used.
final class TrailerReply: Sendable {
  /// The trailers that the caller has computed, for the loop and the pool.
  private let made = TrackedMutex<[HTTPHeader]?>(nil)

  /// The fields; `nil` until they are computed.
  var fields: [HTTPHeader]? { made.withLock { $0 } }

  func set(_ fields: [HTTPHeader]) { made.withLock { $0 = fields } }
}
