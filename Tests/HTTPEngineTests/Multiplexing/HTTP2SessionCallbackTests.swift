import HTTPEngine
import HTTPTestServer
import HTTPWire
import Scenarios
import Testing

/// Requests that change the session from within its callbacks.
@Suite("Callbacks of an HTTP/2 session", .timeLimit(.minutes(1))) struct HTTP2SessionCallbackTests {
  enum Moment: CaseIterable {
    case began, informational, head, content, trailers, responseEnded, ended, wanted
  }
  enum Act: CaseIterable {
    case reset, resetAll, open, stopSending, consume, resume, close, loseConnection, release
  }

  /// A session that only the test holds.
  private final class Holder { var peer: SessionPeer? }

  private static func matches(_ event: StreamRecorder.Event, _ moment: Moment) -> Bool {
    switch (event, moment) {
    case (.began, .began), (.informational, .informational), (.head, .head), (.content, .content),
      (.trailers, .trailers), (.responseEnded, .responseEnded), (.ended, .ended), (.wanted, .wanted):
      true
    default: false
    }
  }

  private static func act(_ act: Act, _ peer: SessionPeer, _ stream: HTTP2Stream, _ all: [StreamRecorder]) {
    switch act {
    case .reset: peer.session.reset(stream)
    case .resetAll: for request in all { if let stream = request.stream { peer.session.reset(stream) } }
    case .open: _ = try? StreamRecorder.open(peer, method: "POST", content: [1, 2, 3])
    case .stopSending: peer.session.stopSending(on: stream)
    case .consume: peer.session.consumed(1_000_000, of: stream)
    case .resume: peer.session.resumeContent(of: stream)
    case .close: peer.session.close()
    case .loseConnection: peer.session.connectionEnded()
    case .release: break
    }
  }

  @Test("A request may do anything at any time", .steps, arguments: Moment.allCases, Act.allCases)
  func anything(moment: Moment, act: Act) throws {
    let peer = try SessionPeer()
    var requests: [StreamRecorder] = []
    var hasActed = false
    step("requests")
    for _ in 0..<3 {
      let request = try #require(
        try StreamRecorder.open(peer, method: "POST", content: [UInt8](repeating: 1, count: 30_000)) {
          request in
          request.onEvent = { event, stream in
            guard !hasActed, Self.matches(event, moment) else { return }
            hasActed = true
            Self.act(act, peer, stream, requests)
          }
        })
      requests.append(request)
    }
    peer.flush()
    step("responses")
    for id in [1, 3, 5] as [UInt32] {
      peer.grant(40_000, on: id)
      peer.respond(103, on: id, endsStream: false)
      peer.respond(200, on: id, endsStream: false)
      peer.sendContent([1, 2, 3], on: id, endsStream: false)
      peer.respond([("x", "1")], on: id)
      peer.flush()
    }
    peer.grant(1_000_000)
    peer.flush()
    #expect(hasActed)
    for request in requests { request.onEvent = nil }
    step("end of the connection")
    peer.session.connectionEnded()
    let ends = requests.map { request in
      request.events.filter { if case .ended = $0 { true } else { false } }.count
    }
    #expect(ends.allSatisfy { $0 <= 1 })
    if act == .open || act == .consume || act == .resume || act == .stopSending || act == .release {
      #expect(requests.allSatisfy { $0.end == .complete }, "\(requests.map(\.events))")
    }
  }

  @Test("A session may be released within a callback", arguments: [Moment.head, .content, .ended, .wanted])
  func release(moment: Moment) throws {
    var session = HTTP2Session()
    weak let weakSession = session
    let owner = Releasing { event in if event == moment { session = nil } }
    let origin = Origin(scheme: "https", host: "a.example", port: nil)
    let request = try RequestFields(.init(method: "POST", origin: origin, target: "/"), fields: [])
    _ = try #require(session?.open(request, method: "POST", hasContent: true, for: owner))
    session?.makeOutput()
    if moment != .wanted {
      let bytes =
        HTTP2TestConnection.bytes(of: .settings)
        + HTTP2TestConnection.bytes(of: .headers, flags: 4, stream: 1, payload: [0x88])
        + HTTP2TestConnection.bytes(of: .data, flags: 1, stream: 1, payload: [1, 2, 3])
      bytes.withUnsafeBytes { session?.receive($0, at: 1) }
    }
    #expect(weakSession == nil)
  }

  private final class Releasing: HTTP2StreamOwner {
    let onEvent: (Moment) -> Void

    init(_ onEvent: @escaping (Moment) -> Void) { self.onEvent = onEvent }

    func responseBegan(_ stream: HTTP2Stream) { onEvent(.began) }
    func informationalHeadReceived(_ head: ResponseHead, _ stream: HTTP2Stream) { onEvent(.informational) }
    func headReceived(_ head: ResponseHead, _ stream: HTTP2Stream) { onEvent(.head) }
    func contentReceived(_ bytes: UnsafeRawBufferPointer, _ stream: HTTP2Stream) { onEvent(.content) }
    func trailersReceived(_ trailers: FieldBlock, _ stream: HTTP2Stream) { onEvent(.trailers) }
    func responseEnded(_ stream: HTTP2Stream) { onEvent(.responseEnded) }
    func streamEnded(_ end: HTTP2StreamEnd, _ stream: HTTP2Stream) { onEvent(.ended) }
    func contentWanted(into room: UnsafeMutableRawBufferPointer, _ stream: HTTP2Stream) -> HTTP2ContentStep {
      onEvent(.wanted)
      return .end
    }
  }
}
