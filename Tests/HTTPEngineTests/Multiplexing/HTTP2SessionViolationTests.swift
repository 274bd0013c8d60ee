import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

@Suite("Violations and floods of HTTP/2", .timeLimit(.minutes(2))) struct HTTP2SessionViolationTests {
  /// A mistake of a server while a request waits for its response on stream 1, and the text that names it.
  struct Fault: Sendable {
    let name: String
    let text: String
    let send: @Sendable (SessionPeer) -> Void

    init(_ name: String, _ text: String, _ send: @escaping @Sendable (SessionPeer) -> Void) {
      (self.name, self.text, self.send) = (name, text, send)
    }
  }

  static let faultsOfConnections = [
    Fault("text", "frame has a length") { $0.send(Array("HTTP/1.1 500 Internal Server Error\r\n\r\n".utf8)) },
    Fault("large frame", "frame has a length") {
      $0.send(.data, stream: 1, payload: [UInt8](repeating: 0, count: 20_000))
    },
    Fault("DATA on an idle stream", "PROTOCOL_ERROR: DATA: stream in idle") {
      $0.sendContent([1], on: 1_001)
    },
    Fault("DATA on stream 0", "PROTOCOL_ERROR: DATA: stream_id == 0") { $0.sendContent([1], on: 0) },
    Fault("HEADERS on stream 0", "PROTOCOL_ERROR: ") { $0.respond(200, on: 0) },
    Fault("HEADERS on an idle stream", "PROTOCOL_ERROR: ") { $0.respond(200, on: 1_001) },
    Fault("HEADERS on a stream of servers", "PROTOCOL_ERROR: ") { $0.respond(200, on: 2) },
    Fault("lone CONTINUATION", "PROTOCOL_ERROR: CONTINUATION: unexpected") {
      $0.send(.continuation, flags: 0x4, stream: 1, payload: [0x88])
    },
    Fault("broken field block", "cannot be decompressed (RFC 7541)") {
      $0.send(.headers, flags: 0x5, stream: 1, payload: [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
    },
    Fault("unknown index", "cannot be decompressed (RFC 7541)") {
      $0.send(.headers, flags: 0x5, stream: 1, payload: [0xFE])
    },
    Fault("field block without end", "PROTOCOL_ERROR: unexpected non-CONTINUATION") {
      $0.send(.headers, flags: 0x1, stream: 1)
      $0.sendContent([1])
    },
    Fault("push", "it pushes a response") {
      $0.send(.pushPromise, flags: 0x4, stream: 1, payload: [0, 0, 0, 2, 0x82])
    },
    Fault("settings with a wrong length", "frame has a length") { $0.send(.settings, payload: [0]) },
    Fault("settings with push", "PROTOCOL_ERROR: SETTINGS") {
      $0.send(.settings, payload: [0, 2, 0, 0, 0, 1])
    },
    Fault("settings with a huge window", "windows of flow control") {
      $0.send(.settings, payload: [0, 4, 0xFF, 0xFF, 0xFF, 0xFF])
    },
    Fault("WINDOW_UPDATE beyond 2^31-1", "windows of flow control") { $0.grant(0x7FFF_FFFF) },
    Fault("WINDOW_UPDATE of 0", "PROTOCOL_ERROR: WINDOW_UPDATE") { $0.grant(0) },
    Fault("WINDOW_UPDATE of 0 on a stream", "PROTOCOL_ERROR: WINDOW_UPDATE") { $0.grant(0, on: 1) },
    Fault("DATA before the head", "PROTOCOL_ERROR: DATA: stream not opened") { $0.sendContent([1]) },
    Fault("end before the head", "PROTOCOL_ERROR: DATA: stream not opened") { $0.sendContent([]) },
    Fault("PING with a wrong length", "frame has a length") { $0.send(.ping, payload: [1]) },
    Fault("PING on a stream", "PROTOCOL_ERROR: PING") {
      $0.send(.ping, stream: 1, payload: [UInt8](repeating: 1, count: 8))
    },
    Fault("RST_STREAM on an idle stream", "PROTOCOL_ERROR: RST_STREAM: stream in idle") {
      $0.reset(1_001, 8)
    },
    Fault("GOAWAY that raises its last stream", "PROTOCOL_ERROR: GOAWAY") {
      $0.goAway(last: 1)
      $0.goAway(last: 3)
    },
    Fault("padding beyond the frame", "PROTOCOL_ERROR: ") {
      $0.respond(200, endsStream: false)
      $0.send(.data, flags: 0x8, stream: 1, payload: [200, 1, 2])
    },
  ]

  @Test("A violation that concerns the connection is named", arguments: faultsOfConnections)
  func ofConnection(fault: Fault) throws {
    let peer = try SessionPeer()
    let requests = try (0..<2).compactMap { _ in try StreamRecorder.open(peer) }
    peer.flush()
    fault.send(peer)
    let frames = peer.flush()
    guard case .violation(let text)? = peer.session.failure else {
      Issue.record("\(fault.name): \(String(describing: peer.session.failure))")
      return
    }
    #expect(text.contains(fault.text), "\(fault.name): \(text)")
    #expect(frames.contains { $0.kind == 7 && $0.number != 0 }, "\(fault.name): GOAWAY is sent")
    for request in requests where request.end != .refused(code: 7) {
      #expect(request.end == .failed(.violation(text)), "\(fault.name)")
      #expect(request.end?.evidence == .unknown)
    }
    #expect(peer.session.isOver && peer.session.streamCount == 0, "\(fault.name)")
    peer.respond(200)
    #expect(peer.flush() == [], "\(fault.name): nothing more is read")
    #expect(
      HTTP2Failure.violation(text).message(host: "a.example")
        == "The response of a.example is not valid HTTP: \(text)")
  }

  @Test("Without SETTINGS as its first frame the server does not speak HTTP/2") func firstFrame() throws {
    let session = try #require(HTTP2Session())
    HTTP2TestConnection.bytes(of: .ping, payload: [UInt8](repeating: 0, count: 8)).withUnsafeBytes {
      session.receive($0, at: 1)
    }
    session.makeOutput()
    #expect(
      session.failure
        == .violation("its first frame is not SETTINGS, so it does not speak HTTP/2 (RFC 9113 §3.4)."))
  }

  @Test("A violation is named when the connection ends while too much output waits for its GOAWAY")
  func fullOutput() throws {
    let peer = try SessionPeer(settings: [(4, 1_000_000)])
    peer.grant(1_000_000)
    peer.flush()
    let content = [UInt8](repeating: 1, count: 500_000)
    let request = try #require(try StreamRecorder.open(peer, method: "POST", content: content))
    peer.session.makeOutput()
    // The connection has accepted a byte of the head.
    peer.session.outputTaken(1)
    #expect(peer.session.output.count >= 131_072, "more content than that does not wait")
    peer.send(Array("HTTP/1.1 500 Internal Server Error\r\n\r\n".utf8))
    peer.session.connectionEnded()
    let failure = HTTP2Failure.violation("a frame has a length that is not allowed (RFC 9113 §4.2).")
    #expect(peer.session.failure == failure)
    #expect(request.end == .failed(failure))
  }

  static let faultsOfStreams = [
    Fault("no status", ":status") { $0.respond([("x", "1")]) },
    Fault("status twice", ":status") { $0.respond([(":status", "200"), (":status", "200")]) },
    Fault("status of letters", ":status") { $0.respond([(":status", "2oo")]) },
    Fault("unknown pseudo-field", ":path") { $0.respond([(":status", "200"), (":path", "/")]) },
    Fault("late pseudo-field", ":status") { $0.respond([("x", "1"), (":status", "200")]) },
    Fault("capital letter", "X-A") { $0.respond([(":status", "200"), ("X-A", "1")]) },
    Fault("space in a name", "is not a field name") { $0.respond([(":status", "200"), ("x a", "1")]) },
    Fault("line feed in a value", "x") { $0.respond([(":status", "200"), ("x", "a\nb: c")]) },
    Fault("NUL in a value", "x") { $0.respond([(":status", "200"), ("x", "a\0b")]) },
    Fault("field of connections", "connection") {
      $0.respond([(":status", "200"), ("connection", "close")])
    },
    Fault("transfer coding", "transfer-encoding") {
      $0.respond([(":status", "200"), ("transfer-encoding", "chunked")])
    },
    Fault("101", "protocol") { $0.respond(101) },
    Fault("informational end", "frame") { $0.respond(103) },
    Fault("short body", "Content-Length") {
      $0.respond([(":status", "200"), ("content-length", "5")], endsStream: false)
      $0.sendContent([1])
    },
    Fault("long body", "Content-Length") {
      $0.respond([(":status", "200"), ("content-length", "1")], endsStream: false)
      $0.sendContent([1, 2])
    },
    Fault("no body", "Content-Length") { $0.respond([(":status", "200"), ("content-length", "5")]) },
    Fault("two lengths", "Content-Length") {
      $0.respond([(":status", "200"), ("content-length", "1"), ("content-length", "2")])
    },
    Fault("trailers without the end", "frame") {
      $0.respond(200, endsStream: false)
      $0.respond([("x", "1")], endsStream: false)
    },
    Fault("trailers with a status", ":status") {
      $0.respond(200, endsStream: false)
      $0.respond(200)
    },
    Fault("window beyond 2^31-1", "RFC 9113") { $0.grant(0x7FFF_FFFF, on: 1) },
  ]

  @Test("A malformed response is named, and harms no other stream", arguments: faultsOfStreams)
  func ofStream(fault: Fault) throws {
    let peer = try SessionPeer()
    let request = try #require(try StreamRecorder.open(peer))
    let other = try #require(try StreamRecorder.open(peer))
    peer.flush()
    fault.send(peer)
    let frames = peer.flush()
    guard case .invalid(let text)? = request.end else {
      Issue.record("\(fault.name): \(String(describing: request.end))")
      return
    }
    #expect(text.contains(fault.text), "\(fault.name): \(text)")
    #expect(frames.contains { $0.kind == 3 && $0.stream == 1 }, "\(fault.name): the stream is reset")
    peer.respond(200, on: other.id)
    #expect(other.end == .complete && peer.session.failure == nil, "\(fault.name)")
  }

  // MARK: Heads

  /// Sends a head in frames of some size.
  private static func sendHead(
    _ peer: SessionPeer, _ fields: [(String, String)], frameSize: Int, inOnePiece: Bool = false
  ) {
    var bytes: [UInt8] = []
    var rest = SessionPeer.block([(":status", "200")] + fields)[...]
    var kind = HTTP2TestConnection.Kind.headers
    while !rest.isEmpty {
      let part = Array(rest.prefix(frameSize))
      rest = rest.dropFirst(part.count)
      bytes += HTTP2TestConnection.bytes(
        of: kind, flags: kind == .headers ? 1 : rest.isEmpty ? 4 : 0, stream: 1, payload: part)
      kind = .continuation
      if !inOnePiece {
        peer.send(bytes)
        bytes = []
      }
    }
    if !bytes.isEmpty { peer.send(bytes) }
  }

  @Test("A head of 200 KB arrives in CONTINUATION frames", arguments: [16_384, 8_192, 1_024])
  func largeHead(frameSize: Int) throws {
    let peer = try SessionPeer()
    let request = try #require(try StreamRecorder.open(peer))
    peer.flush()
    let value = String(repeating: "v", count: 20_000)
    Self.sendHead(peer, (0..<10).map { ("x-\($0)", value) }, frameSize: frameSize)
    #expect(request.end == .complete && peer.session.failure == nil)
    #expect(request.fields == (0..<10).map { "x-\($0): \(value)" })
  }

  @Test("A head above the limit ends its request alone") func tooLargeHead() throws {
    let peer = try SessionPeer(headerSizeLimit: 10_000)
    let request = try #require(try StreamRecorder.open(peer))
    let other = try #require(try StreamRecorder.open(peer))
    peer.flush()
    Self.sendHead(peer, [("x", String(repeating: "v", count: 20_000))], frameSize: 16_384)
    #expect(request.end == .headTooLarge)
    peer.flush()
    peer.respond(200, on: other.id)
    #expect(other.end == .complete && peer.session.failure == nil)
  }

  @Test("A head of the announced size ends its request alone, however small the limit of the requests is")
  func announcedHead() throws {
    let peer = try SessionPeer(headerSizeLimit: 4_096)
    let request = try #require(try StreamRecorder.open(peer))
    let other = try #require(try StreamRecorder.open(peer))
    peer.flush()
    // The size of a field includes 32 bytes more than its name and its value (RFC 9113 §6.5.2).
    let fields = (10..<96).map { ("x-\($0)", String(repeating: "v", count: 3_000)) }
    let size = fields.reduce(0) { $0 + $1.0.utf8.count + $1.1.utf8.count + 32 }
    #expect(size > 2 * 4_096 + 65_536 && size <= 262_144 - 42, "within the announced size, with :status")
    Self.sendHead(peer, fields, frameSize: 16_384)
    #expect(request.end == .headTooLarge, "the limit of the request itself stays")
    peer.flush()
    peer.respond(200, on: other.id)
    #expect(other.end == .complete && peer.session.failure == nil)
  }

  @Test(
    "A field above 64 KiB is the failure of its request, and not of others", arguments: [16_384, 1_024],
    [false, true])
  func tooLargeField(frameSize: Int, inOnePiece: Bool) throws {
    for size in [65_536, 65_537, 200_000] {
      let peer = try SessionPeer()
      let requests = try (0..<3).map { _ in try #require(try StreamRecorder.open(peer)) }
      peer.flush()
      peer.respond(200, on: requests[1].id)
      let field = ("x", String(repeating: "v", count: size))
      Self.sendHead(peer, [("first", "1"), field], frameSize: frameSize, inOnePiece: inOnePiece)
      #expect(requests[1].end == .complete)
      guard size > 65_536 else {
        #expect(requests[0].end == .complete && peer.session.failure == nil, "nghttp2 reads that much")
        continue
      }
      #expect(requests[0].end == .failed(.fieldTooLarge), "\(size)")
      #expect(requests[2].end == .failed(.otherResponse), "\(size)")
      #expect(peer.session.failure == .fieldTooLarge && peer.session.unreadableStream == 1)
      #expect(peer.flush().contains { $0.kind == 7 && $0.number == 9 }, "COMPRESSION_ERROR is not sent")
    }
  }

  @Test("Indexed fields of one byte count with their whole size") func indexedFields() throws {
    let peer = try SessionPeer(headerSizeLimit: 10_000)
    let request = try #require(try StreamRecorder.open(peer))
    peer.flush()
    peer.send(.headers, flags: 0x4, stream: 1, payload: [0x88] + [UInt8](repeating: 0x80 | 54, count: 1_000))
    #expect(request.end == .headTooLarge)
  }

  @Test("A head without end ends the connection") func endlessHead() throws {
    let peer = try SessionPeer(headerSizeLimit: 50_000)
    let request = try #require(try StreamRecorder.open(peer))
    let other = try #require(try StreamRecorder.open(peer))
    peer.flush()
    peer.send(.headers, flags: 0x1, stream: 1, payload: [0x88])
    let frame = HTTP2TestConnection.bytes(
      of: .continuation, stream: 1, payload: [UInt8](repeating: 0x80 | 54, count: 16_384))
    var count = 0
    while peer.session.failure == nil, count < 1_000 {
      peer.send(frame)
      count += 1
    }
    #expect(count < 20)
    #expect(request.end == .headTooLarge)
    #expect(other.end == .failed(.otherResponse), "it is not what the server has violated HTTP with")
    #expect(peer.session.failure == .violation("a head goes on beyond the limit of its size."))
    #expect(peer.flush().last?.kind == 7)
  }

  // MARK: Floods

  static let floods: [(String, [UInt8])] = [
    ("PING", HTTP2TestConnection.bytes(of: .ping, payload: [UInt8](repeating: 1, count: 8))),
    ("SETTINGS", HTTP2TestConnection.bytes(of: .settings)),
    ("empty DATA", HTTP2TestConnection.bytes(of: .data, stream: 1)),
    ("DATA of padding", HTTP2TestConnection.bytes(of: .data, flags: 8, stream: 1, payload: [1, 0])),
    ("PRIORITY", HTTP2TestConnection.bytes(of: .priority, stream: 1, payload: [0, 0, 0, 3, 1])),
    ("unknown", [0, 0, 4, 0xEE, 0, 0, 0, 0, 0, 1, 2, 3, 4]),
    ("WINDOW_UPDATE", HTTP2TestConnection.bytes(of: .windowUpdate, payload: [0, 0, 0, 1])),
    (
      "WINDOW_UPDATE of a stream",
      HTTP2TestConnection.bytes(of: .windowUpdate, stream: 1, payload: [0, 0, 0, 1])
    ),
    (
      "103",
      HTTP2TestConnection.bytes(
        of: .headers, flags: 4, stream: 3, payload: SessionPeer.block([(":status", "103")]))
    ),
    ("RST_STREAM", HTTP2TestConnection.bytes(of: .reset, stream: 5, payload: [0, 0, 0, 8])),
    ("GOAWAY", HTTP2TestConnection.bytes(of: .goAway, payload: [0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0])),
  ]

  @Test("A flood of frames without content ends the connection", arguments: floods, [true, false])
  func flood(flood: (String, [UInt8]), inOnePiece: Bool) throws {
    let (name, frame) = flood
    let peer = try SessionPeer()
    let requests = try (0..<3).compactMap { _ in try StreamRecorder.open(peer) }
    peer.flush()
    peer.respond(200, endsStream: false)
    var count = 0
    if inOnePiece {
      peer.send([UInt8]((0..<5_000).flatMap { _ in frame }))
    } else {
      while peer.session.failure == nil, count < 5_000 {
        peer.send(frame)
        peer.flush()
        count += 1
      }
      #expect(count > 900 && count < 1_100, "\(name)")
    }
    #expect(peer.session.failure == .flood, "\(name)")
    let frames = peer.flush()
    if inOnePiece {
      #expect(frames.contains { $0.kind == 7 && $0.number == 11 }, "\(name): ENHANCE_YOUR_CALM")
    }
    #expect(requests[0].end == .failed(.flood), "\(name)")
  }

  @Test("Each request allows six frames without content more", arguments: [0, 1, 10])
  func framesOfRequests(count: Int) throws {
    let peer = try SessionPeer()
    for _ in 0..<count { _ = try #require(try StreamRecorder.open(peer)) }
    peer.flush()
    let ping = HTTP2TestConnection.bytes(of: .ping, payload: [UInt8](repeating: 1, count: 8))
    var accepted = 0
    while accepted < 3_000 {
      peer.send(ping)
      guard peer.session.failure == nil else { break }
      peer.flush()
      accepted += 1
    }
    // The settings of the server and its acknowledgement of the client's have used up two of 1,000.
    #expect(accepted == 998 + 6 * count && peer.session.failure == .flood)
  }

  @Test("A slow reader of PING keeps 1,000 answers at most") func heldAnswers() throws {
    let peer = try SessionPeer()
    let ping = HTTP2TestConnection.bytes(of: .ping, payload: [UInt8](repeating: 1, count: 8))
    // The meter lets more pass as time goes by, but nothing takes the answers.
    for _ in 0..<5_000 {
      peer.now += 100_000_000
      peer.send(ping)
    }
    #expect(peer.session.failure == .flood)
  }

  @Test("An upload may be answered by many updates of windows") func updatesOfUploads() throws {
    let peer = try SessionPeer()
    let request = try #require(
      try StreamRecorder.open(peer, method: "POST", content: [UInt8](repeating: 1, count: 3_000_000)))
    var isDone = false
    while !isDone {
      let frames = peer.flush().filter { $0.kind == 0 }
      guard !frames.isEmpty else { break }
      isDone = frames.contains { $0.endsStream }
      for frame in frames {
        var rest = frame.payload.count
        while rest > 0, !isDone {
          let part = min(rest, 1_024)
          rest -= part
          peer.grant(part)
          peer.grant(part, on: 1)
        }
      }
    }
    peer.respond(200)
    #expect(isDone && request.end == .complete && peer.session.failure == nil)
  }
}
