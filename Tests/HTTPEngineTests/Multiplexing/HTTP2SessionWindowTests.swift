import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

@Suite("Windows of an HTTP/2 session", .timeLimit(.minutes(1))) struct HTTP2SessionWindowTests {
  private static let pattern = Content.bytes(1_000_000)

  private static func content(_ count: Int) -> [UInt8] { Array(pattern.prefix(count)) }

  @Test("No more is sent than the windows allow") func sending() throws {
    let peer = try SessionPeer()
    let content = Self.content(200_000)
    let request = try #require(try StreamRecorder.open(peer, method: "POST", content: content))
    var sent = peer.flush().filter { $0.kind == 0 }.flatMap(\.payload)
    #expect(sent.count == 65_535)
    peer.grant(100_000, on: 1)
    #expect(peer.flush() == [], "the window of the connection is closed")
    peer.grant(100_000)
    sent += peer.flush().flatMap(\.payload)
    #expect(sent.count == 165_535)
    peer.grant(1_000_000)
    peer.grant(1_000_000, on: 1)
    sent += peer.flush().flatMap(\.payload)
    #expect(sent == content)
    peer.respond(200)
    #expect(request.end == .complete)
  }

  @Test("A window that opens late harms neither its stream nor others") func lateWindow() throws {
    let peer = try SessionPeer(settings: [(4, 0)])
    let upload = try #require(try StreamRecorder.open(peer, method: "POST", content: [1, 2, 3]))
    #expect(peer.flush().map(\.kind) == [1])
    for index in 0..<10 {
      let other = try #require(try StreamRecorder.open(peer))
      peer.flush()
      peer.respond(200, on: other.id)
      #expect(other.end == .complete, "request \(index)")
    }
    peer.send(.settings, payload: [0, 4, 0, 0, 0, 100])
    #expect(peer.flush().last == .init(kind: 0, flags: 1, stream: 1, payload: [1, 2, 3]))
    peer.respond(200)
    #expect(upload.end == .complete)
  }

  @Test("Two uploads share a window of 65,535 bytes") func sharedWindow() throws {
    let peer = try SessionPeer()
    let content = Self.content(100_000)
    let uploads = try (0..<2).map { _ in
      try #require(try StreamRecorder.open(peer, method: "POST", content: content))
    }
    var sent: [UInt32: [UInt8]] = [:]
    var turns = 0
    while true {
      let frames = peer.flush().filter { $0.kind == 0 }
      guard !frames.isEmpty else { break }
      turns += 1
      for frame in frames {
        sent[frame.stream, default: []] += frame.payload
        peer.grant(frame.payload.count)
        if !frame.endsStream { peer.grant(frame.payload.count, on: frame.stream) }
      }
      let counts = uploads.map { sent[$0.id]?.count ?? 0 }
      #expect(abs(counts[0] - counts[1]) <= 32_768, "both go on: \(counts)")
    }
    #expect(turns >= 3)
    for upload in uploads {
      #expect(sent[upload.id] == content)
      peer.respond(200, on: upload.id)
      #expect(upload.end == .complete)
    }
    #expect(peer.session.failure == nil)
  }

  @Test("A reader that stops closes the window of its stream alone") func receiving() throws {
    let peer = try SessionPeer()
    let slow = try #require(try StreamRecorder.open(peer) { $0.consumes = false })
    let fast = try #require(try StreamRecorder.open(peer))
    peer.flush()
    peer.respond(200, on: 1, endsStream: false)
    peer.respond(200, on: 3, endsStream: false)
    peer.sendContent(Self.content(StreamWindow.initialSize), on: 1, endsStream: false)
    #expect(peer.flush().filter { $0.stream == 1 } == [], "the slow stream gets no window")
    var granted = 0
    for _ in 0..<70 {
      peer.sendContent(Self.content(262_144), on: 3, endsStream: false)
      granted += peer.flush().filter { $0.kind == 8 && $0.stream == 0 }.reduce(0) { $0 + Int($1.number) }
    }
    // 70 pieces are more than the half of 32 MiB.
    #expect(granted >= 16 << 20, "the window of the connection is returned at once")
    let stream = try #require(slow.stream)
    peer.session.consumed(StreamWindow.initialSize, of: stream)
    let updates = peer.flush().filter { $0.kind == 8 && $0.stream == 1 }
    #expect(updates.reduce(0) { $0 + Int($1.number) } >= StreamWindow.initialSize)
    peer.sendContent([1], on: 1)
    peer.sendContent([1], on: 3)
    #expect(slow.end == .complete && fast.end == .complete && peer.session.failure == nil)
  }

  /// Gives up streams within their frames, because nghttp2 itself returns the bytes of frames that begin later.
  @Test("The rest of a frame of a given up stream is returned to the window of the connection")
  func givenUp() throws {
    let peer = try SessionPeer()
    let content = Self.content(16_384)
    var granted = 0
    // The frames have more than the half of 32 MiB.
    for _ in 0..<1_100 {
      let request = try #require(try StreamRecorder.open(peer))
      let stream = try #require(request.stream)
      peer.flush()
      peer.respond(200, on: request.id, endsStream: false)
      let frame = HTTP2TestConnection.bytes(of: .data, flags: 0, stream: request.id, payload: content)
      peer.send(Array(frame.prefix(10)))
      #expect(request.received.count == 1)
      peer.session.reset(stream)
      peer.send(Array(frame.dropFirst(10)))
      #expect(request.received.count == 1, "a given up stream has no content")
      granted += peer.flush().filter { $0.kind == 8 && $0.stream == 0 }.reduce(0) { $0 + Int($1.number) }
    }
    #expect(granted >= 16 << 20, "the window of the connection would close, for all streams")
    #expect(peer.session.failure == nil)
  }

  @Test("The window of a stream grows while its reader keeps pace") func growth() throws {
    let peer = try SessionPeer()
    let request = try #require(try StreamRecorder.open(peer))
    peer.flush()
    peer.respond(200, endsStream: false)
    var window = StreamWindow.initialSize
    var largest = window
    for _ in 0..<2_000 {
      let count = min(window, 32_768)
      peer.sendContent(Self.content(count), endsStream: false)
      window -= count
      window += peer.flush().filter { $0.kind == 8 && $0.stream == 1 }.reduce(0) { $0 + Int($1.number) }
      largest = max(largest, window)
    }
    #expect(largest == StreamWindow.largestSize)
    peer.sendContent([], endsStream: true)
    #expect(request.end == .complete)
  }

  @Test("More than the window is a violation of flow control") func overflow() throws {
    let peer = try SessionPeer()
    let request = try #require(try StreamRecorder.open(peer) { $0.consumes = false })
    peer.flush()
    peer.respond(200, endsStream: false)
    peer.sendContent(Self.content(StreamWindow.initialSize + 1), endsStream: false)
    peer.flush()
    guard case .invalid(let text) = request.end else {
      Issue.record("\(String(describing: request.end))")
      return
    }
    #expect(text.contains("flow control") || text.contains("Flow control"), "\(text)")
  }

  @Test("Content is not asked for while much output waits") func fullOutput() throws {
    let peer = try SessionPeer(settings: [(4, 10_000_000)])
    peer.grant(10_000_000)
    _ = try #require(try StreamRecorder.open(peer, method: "POST", content: Self.content(1_000_000)))
    peer.session.makeOutput()
    let count = peer.session.output.count
    #expect(count >= 131_072 && count < 131_072 + 16_393)
    peer.session.makeOutput()
    #expect(peer.session.output.count == count)
  }
}
