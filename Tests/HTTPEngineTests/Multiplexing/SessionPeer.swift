import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

/// A session of HTTP/2 and a scripted server in memory.
final class SessionPeer {
  /// A frame of the client.
  struct Frame: Equatable {
    let kind: UInt8
    let flags: UInt8
    let stream: UInt32
    let payload: [UInt8]

    var number: UInt32 { payload.suffix(4).reduce(0) { $0 << 8 | UInt32($1) } }
    var endsStream: Bool { flags & 0x1 != 0 }
  }

  let session: HTTP2Session
  /// The time in nanoseconds, which stands still.
  var now: UInt64 = 1_000_000_000
  /// The most bytes that the session sees at a time.
  var segmentSize = Int.max
  /// The most bytes of output that are consumed at a time.
  var takenAtOnce = Int.max
  private(set) var sentPreface: [UInt8] = []
  private var received: [UInt8] = []
  private var decoder = HeaderDecoder()

  /// Makes a connection on which both sides have sent their settings.
  init(headerSizeLimit: Int = 262_144, settings: [(UInt16, UInt32)] = []) throws {
    session = try #require(HTTP2Session(headerSizeLimit: headerSizeLimit))
    send(.settings, payload: settings.flatMap { Self.bytes($0.0) + Self.bytes($0.1) })
    send(.settings, flags: 0x1)
    flush()
  }

  // MARK: The server sends

  func send(_ kind: HTTP2TestConnection.Kind, flags: UInt8 = 0, stream: UInt32 = 0, payload: [UInt8] = []) {
    send(HTTP2TestConnection.bytes(of: kind, flags: flags, stream: stream, payload: payload))
  }

  func send(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let part = Array(rest.prefix(segmentSize))
      rest = rest.dropFirst(part.count)
      part.withUnsafeBytes { session.receive($0, at: now) }
    }
  }

  func respond(_ fields: [(String, String)], on stream: UInt32 = 1, endsStream: Bool = true) {
    send(.headers, flags: endsStream ? 0x5 : 0x4, stream: stream, payload: Self.block(fields))
  }

  func respond(_ status: Int, on stream: UInt32 = 1, endsStream: Bool = true) {
    respond([(":status", String(status))], on: stream, endsStream: endsStream)
  }

  func sendContent(_ bytes: [UInt8], on stream: UInt32 = 1, endsStream: Bool = true) {
    var rest = bytes[...]
    repeat {
      let part = Array(rest.prefix(16_384))
      rest = rest.dropFirst(part.count)
      send(.data, flags: endsStream && rest.isEmpty ? 0x1 : 0, stream: stream, payload: part)
    } while !rest.isEmpty
  }

  func reset(_ stream: UInt32, _ code: UInt32) { send(.reset, stream: stream, payload: Self.bytes(code)) }

  func goAway(last: UInt32, code: UInt32 = 0) {
    send(.goAway, payload: Self.bytes(last) + Self.bytes(code))
  }

  func grant(_ count: Int, on stream: UInt32 = 0) {
    send(.windowUpdate, stream: stream, payload: Self.bytes(UInt32(count)))
  }

  static func bytes<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { Array($0) }
  }

  /// Returns fields as literals without indexing (RFC 7541 §6.2.2).
  static func block(_ fields: [(String, String)]) -> [UInt8] {
    fields.flatMap { HTTP2TestConnection.literal($0.0, $0.1) }
  }

  // MARK: The server reads

  /// Takes the output of the client. Returns its new frames.
  @discardableResult func flush() -> [Frame] {
    while true {
      session.makeOutput()
      let part = session.output.prefix(takenAtOnce)
      if part.isEmpty { break }
      received += part
      session.outputTaken(part.count)
    }
    return frames()
  }

  private func frames() -> [Frame] {
    if sentPreface.count < 24 {
      sentPreface += received.prefix(24 - sentPreface.count)
      received.removeFirst(min(24, received.count))
    }
    var frames: [Frame] = []
    var rest = received[...]
    while rest.count >= 9 {
      let head = Array(rest.prefix(9))
      let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
      guard rest.count >= 9 + length else { break }
      let stream = head[5...].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
      frames.append(
        Frame(kind: head[3], flags: head[4], stream: stream, payload: Array(rest.dropFirst(9).prefix(length)))
      )
      rest = rest.dropFirst(9 + length)
    }
    received = Array(rest)
    return frames
  }

  /// Returns the fields of the heads among frames.
  func heads(_ frames: [Frame]) throws -> [[String]] {
    var block: [UInt8] = []
    var heads: [[String]] = []
    for frame in frames where frame.kind == 1 || frame.kind == 9 {
      block += frame.payload
      guard frame.flags & 0x4 != 0 else { continue }
      heads.append(try decoder.decode(block[...]).map { "\($0.name): \($0.value)" })
      block = []
    }
    return heads
  }
}

/// A request on a stream of a ``SessionPeer``, which records its events.
final class StreamRecorder: HTTP2StreamOwner {
  enum Event: Equatable {
    case began, informational(Int), head(Int), content(Int), trailers(String), responseEnded, ended(
      HTTP2StreamEnd)
    case wanted
  }

  let peer: SessionPeer
  private(set) var events: [Event] = []
  private(set) var received: [UInt8] = []
  private(set) var fields: [String] = []
  /// The content of the request that is still to be sent; ``isOpen`` if more will be there.
  var content: [UInt8] = []
  var isOpen = false
  /// The most bytes that are given at a time.
  var pieceSize = Int.max
  /// Whether the last bytes are announced as such.
  var announcesEnd = true
  /// Whether bytes are used as soon as they are received.
  var consumes = true
  var onEvent: ((Event, HTTP2Stream) -> Void)?
  /// Replaces the content.
  var onWanted: ((HTTP2Stream) -> HTTP2ContentStep)?
  private(set) var stream: HTTP2Stream?

  init(_ peer: SessionPeer) { self.peer = peer }

  var end: HTTP2StreamEnd? {
    for case .ended(let end) in events { return end }
    return nil
  }

  var id: UInt32 { UInt32(stream?.id ?? 0) }

  /// Opens a stream. Returns `nil` if none is free.
  static func open(
    _ peer: SessionPeer, method: String = "GET", fields: [HTTPHeader] = [], content: [UInt8]? = nil,
    _ change: (StreamRecorder) -> Void = { _ in }
  ) throws -> StreamRecorder? {
    let recorder = StreamRecorder(peer)
    recorder.content = content ?? []
    change(recorder)
    let origin = Origin(scheme: "https", host: "a.example", port: nil)
    let request = try RequestFields(
      .init(method: method, origin: origin, target: "/path?query"), fields: fields,
      contentLength: recorder.isOpen ? nil : content.map { Int64($0.count) })
    recorder.stream = peer.session.open(request, method: method, hasContent: content != nil, for: recorder)
    return recorder.stream == nil ? nil : recorder
  }

  private func note(_ event: Event, _ stream: HTTP2Stream) {
    #expect(end == nil, "\(event) came after the end")
    events.append(event)
    onEvent?(event, stream)
  }

  func responseBegan(_ stream: HTTP2Stream) { note(.began, stream) }

  func informationalHeadReceived(_ head: ResponseHead, _ stream: HTTP2Stream) {
    note(.informational(head.status), stream)
  }

  func headReceived(_ head: ResponseHead, _ stream: HTTP2Stream) {
    #expect(head.version == .http2)
    fields = String(decoding: head.block.bytes, as: UTF8.self).split(separator: "\r\n").map(String.init)
    note(.head(head.status), stream)
  }

  func contentReceived(_ bytes: UnsafeRawBufferPointer, _ stream: HTTP2Stream) {
    received += bytes
    if consumes { peer.session.consumed(bytes.count, of: stream) }
    note(.content(bytes.count), stream)
  }

  func trailersReceived(_ trailers: FieldBlock, _ stream: HTTP2Stream) {
    note(.trailers(String(decoding: trailers.bytes, as: UTF8.self)), stream)
  }

  func responseEnded(_ stream: HTTP2Stream) { note(.responseEnded, stream) }

  func streamEnded(_ end: HTTP2StreamEnd, _ stream: HTTP2Stream) { note(.ended(end), stream) }

  func contentWanted(into room: UnsafeMutableRawBufferPointer, _ stream: HTTP2Stream) -> HTTP2ContentStep {
    if onEvent != nil { note(.wanted, stream) }
    if let onWanted { return onWanted(stream) }
    let count = min(room.count, content.count, pieceSize)
    guard count > 0 else { return isOpen ? .wait : .end }
    room.copyBytes(from: content[..<count])
    content.removeFirst(count)
    return .bytes(count, isLast: content.isEmpty && !isOpen && announcesEnd)
  }
}
