import HTTPEngine
import HTTPWire

/// Sends frames of a server to a session of HTTP/2, and lets the input choose how its requests behave. Each request
/// ends once, and the address sanitizer watches nghttp2.
enum HTTP2Reading {
  private static let origin = Origin(scheme: "https", host: "a.example", port: nil)
  private static let request = try? RequestFields(
    .init(method: "POST", origin: origin, target: "/"), fields: [HTTPHeader(name: "A", value: "b")])

  /// Reads the bytes in pieces. The first byte chooses their size, the second one the behaviour of the requests.
  static func check(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count > 2, let request, let session = HTTP2Session(headerSizeLimit: 4_096) else { return }
    let size = [1, 3, 17, 4_096][Int(bytes[0] & 3)]
    let flushes = bytes[0] & 4 != 0
    var choices = bytes[1]
    var requests: [Request] = []
    func open() {
      let owner = Request(session, choices)
      guard let stream = session.open(request, method: "POST", hasContent: choices & 1 != 0, for: owner)
      else { return }
      owner.stream = stream
      requests.append(owner)
      choices = choices << 1 | choices >> 7
    }
    for _ in 0..<3 { open() }
    session.makeOutput()
    settings.withUnsafeBytes { session.receive($0, at: 1) }
    var rest = UnsafeRawBufferPointer(rebasing: bytes[2...])
    while !rest.isEmpty {
      let part = UnsafeRawBufferPointer(rebasing: rest.prefix(size))
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(size))
      session.receive(part, at: 1)
      if flushes { flush(session) }
      if session.freeStreams > 0, requests.count < 8 { open() }
    }
    flush(session)
    session.connectionEnded()
    precondition(session.isOver && session.streamCount == 0, "streams are left")
    for request in requests { precondition(request.isOver, "a request has not ended") }
  }

  /// SETTINGS without content, and the acknowledgement of the client's.
  private static let settings: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0]

  private static func flush(_ session: HTTP2Session) {
    for _ in 0..<100 {
      session.makeOutput()
      let count = session.output.count
      guard count > 0 else { return }
      session.outputTaken(count)
    }
  }

  private final class Request: HTTP2StreamOwner {
    private let session: HTTP2Session
    private let choices: UInt8
    private var received = 0
    private var checksum: UInt8 = 0
    private var sent = 0
    private var hasEnded = false
    private var hasGivenUp = false
    var stream: HTTP2Stream?
    var isOver: Bool { hasEnded || hasGivenUp }

    init(_ session: HTTP2Session, _ choices: UInt8) {
      self.session = session
      self.choices = choices
    }

    private func note(_ moment: UInt8, _ stream: HTTP2Stream) {
      precondition(!isOver, "a request is called after its end")
      guard choices >> 3 == moment else { return }
      switch choices & 6 {
      case 0: session.stopSending(on: stream)
      case 2, 4:
        hasGivenUp = true
        session.reset(stream)
      default: session.resumeContent(of: stream)
      }
    }

    func responseBegan(_ stream: HTTP2Stream) { note(1, stream) }
    func informationalHeadReceived(_ head: ResponseHead, _ stream: HTTP2Stream) {
      precondition(head.status >= 100 && head.status < 200)
      note(2, stream)
    }
    func headReceived(_ head: ResponseHead, _ stream: HTTP2Stream) {
      precondition(head.status >= 200 && head.version == .http2)
      note(3, stream)
    }
    func contentReceived(_ bytes: UnsafeRawBufferPointer, _ stream: HTTP2Stream) {
      // Reads each byte, so that the sanitizer sees memory that is not valid.
      checksum = bytes.reduce(checksum) { $0 &+ $1 }
      received += bytes.count
      if choices & 1 == 0 { session.consumed(bytes.count, of: stream) }
      note(4, stream)
    }
    func trailersReceived(_ trailers: FieldBlock, _ stream: HTTP2Stream) { note(5, stream) }
    func responseEnded(_ stream: HTTP2Stream) {
      precondition(stream.hasHead)
      // Some responses have no body, whatever their head says.
      if let length = stream.contentLength, received > 0 { precondition(Int64(received) == length) }
      note(6, stream)
    }
    func streamEnded(_ end: HTTP2StreamEnd, _ stream: HTTP2Stream) {
      note(7, stream)
      hasEnded = true
    }
    func contentWanted(into room: UnsafeMutableRawBufferPointer, _ stream: HTTP2Stream) -> HTTP2ContentStep {
      note(8, stream)
      guard !isOver else { return .wait }
      sent += 1
      switch choices >> 6 {
      case 0 where sent < 8:
        room.initializeMemory(as: UInt8.self, repeating: 7)
        return .bytes(room.count, isLast: sent == 7)
      case 1: return .wait
      case 2:
        hasGivenUp = true
        return .failed
      default: return .end
      }
    }
  }
}
