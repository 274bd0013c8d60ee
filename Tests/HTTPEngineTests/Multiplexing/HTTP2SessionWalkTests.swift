import HTTPEngine
import HTTPTestServer
import HTTPWire
import Randomness
import Testing

/// A server that follows the protocol, and ends, resets and refuses streams at random.
@Suite("Random walks of an HTTP/2 session", .seeded, .timeLimit(.minutes(2))) struct HTTP2SessionWalkTests {
  @Test("Each request ends once, as the server has ended it", arguments: 0..<40) func walk(index: Int) throws
  {
    let walk = try Walk(Seed.generator(index))
    for _ in 0..<300 { try walk.step() }
    walk.check("walk \(index)")
  }

  /// A stream as the server sees it.
  private struct Served {
    var hasHead = false
    var content: [UInt8] = []
    var window = StreamWindow.initialSize
    var hasRequest = false
    /// The end that the request must see; `nil` while several are possible.
    var expected: HTTP2StreamEnd?
  }

  private final class Walk {
    private var random: SeededGenerator
    private let peer: SessionPeer
    private var requests: [UInt32: StreamRecorder] = [:]
    private var served: [UInt32: Served] = [:]
    private var sent: [UInt32: [UInt8]] = [:]
    private var contents: [UInt32: [UInt8]] = [:]
    private var cancelled: Set<UInt32> = []

    init(_ random: SeededGenerator) throws {
      self.random = random
      peer = try SessionPeer(settings: [(3, UInt32.random(in: 1...20, using: &self.random))])
      peer.takenAtOnce = number(1...20_000)
      peer.segmentSize = number(1...20_000)
    }

    private func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    func step() throws {
      peer.now += 20_000_000
      switch number(0...9) {
      case 0, 1: try openStream()
      case 2: if number(0...3) == 0 { cancel() }
      case 3: peer.send(.ping, payload: [UInt8](repeating: 1, count: 8))
      default: if let id = served.keys.sorted().randomElement(using: &random) { serve(id) }
      }
      if number(0...1) == 0 { flush() }
    }

    private func openStream() throws {
      let content = number(0...1) == 0 ? Content.bytes(number(0...50_000)) : nil
      let piece = number(1...20_000)
      let request = try StreamRecorder.open(peer, method: "POST", content: content) { $0.pieceSize = piece }
      guard let request else {
        #expect(peer.session.freeStreams == 0)
        return
      }
      requests[request.id] = request
      contents[request.id] = content ?? []
    }

    private func cancel() {
      guard let id = requests.keys.sorted().randomElement(using: &random), requests[id]?.end == nil,
        let stream = requests[id]?.stream
      else { return }
      cancelled.insert(id)
      peer.session.reset(stream)
    }

    private func flush() {
      for frame in peer.flush() {
        let id = frame.stream
        switch frame.kind {
        case 0: contentReceived(frame)
        case 1: served[id] = Served(hasRequest: frame.endsStream)
        case 8: if id > 0 { served[id]?.window += Int(frame.number) }
        default: break
        }
      }
    }

    private func contentReceived(_ frame: SessionPeer.Frame) {
      let id = frame.stream
      sent[id, default: []] += frame.payload
      if frame.endsStream { served[id]?.hasRequest = true }
      guard !frame.payload.isEmpty else { return }
      peer.grant(frame.payload.count)
      if served[id]?.expected == nil, !frame.endsStream { peer.grant(frame.payload.count, on: id) }
    }

    private func serve(_ id: UInt32) {
      guard var stream = served[id], stream.expected == nil, !cancelled.contains(id) else { return }
      defer { served[id] = stream }
      switch number(0...11) {
      case 0:
        let code = [0, 2, 7, 8, 13].randomElement(using: &random) ?? 0
        let isRefusal = (code == 7 || code == 13) && !stream.hasHead
        stream.expected = isRefusal ? .refused(code: UInt32(code)) : .reset(code: UInt32(code))
        peer.reset(id, UInt32(code))
      case 1, 2:
        guard stream.hasRequest else { return }
        if !stream.hasHead { peer.respond(200, on: id, endsStream: false) }
        stream.expected = .complete
        if number(0...1) == 0 { peer.sendContent([], on: id) } else { peer.respond([("x", "1")], on: id) }
      case 3 where !stream.hasHead:
        stream.hasHead = true
        peer.respond(103, on: id, endsStream: false)
        peer.respond(200, on: id, endsStream: false)
      default: sendContent(on: id, &stream)
      }
    }

    private func sendContent(on id: UInt32, _ stream: inout Served) {
      guard stream.hasHead else { return }
      let bytes = Content.bytes(number(0...min(stream.window, 30_000)))
      stream.window -= bytes.count
      stream.content += bytes
      if !bytes.isEmpty { peer.sendContent(bytes, on: id, endsStream: false) }
    }

    /// Ends the connection, and compares what the requests have seen with what the server did.
    func check(_ name: String) {
      flush()
      #expect(peer.session.failure == nil, "\(name)")
      let asked = requests.filter { !cancelled.contains($0.key) }
      for (id, request) in asked {
        let expected = served[id]?.expected
        #expect(request.end == expected, "stream \(id), \(name)")
        guard expected == .complete else { continue }
        #expect(request.received == served[id]?.content, "stream \(id), \(name)")
        #expect(sent[id] ?? [] == contents[id], "stream \(id), \(name)")
      }
      peer.session.connectionEnded()
      #expect(asked.values.allSatisfy { $0.end != nil } && peer.session.streamCount == 0, "\(name)")
    }
  }
}
