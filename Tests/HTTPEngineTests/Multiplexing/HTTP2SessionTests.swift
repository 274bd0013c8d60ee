import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

@Suite("Requests and responses of an HTTP/2 session", .timeLimit(.minutes(1))) struct HTTP2SessionTests {
  @Test(
    "A connection begins with the preface, its settings and its window",
    arguments: [(12_345, 262_144), (262_144, 262_144), (400_000, 400_000)] as [(Int, UInt32)])
  func preface(headerSizeLimit: Int, announced: UInt32) throws {
    let session = try #require(HTTP2Session(headerSizeLimit: headerSizeLimit))
    session.makeOutput()
    let output = Array(session.output)
    #expect(output.starts(with: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8))
    // No push, the window of a stream, the size of heads; then the rest of the window of 32 MiB.
    let settings: [UInt8] = [0, 2, 0, 0, 0, 0, 0, 4, 0, 4, 0, 0, 0, 6] + SessionPeer.bytes(announced)
    #expect(
      output.dropFirst(24)
        == (HTTP2TestConnection.bytes(of: .settings, payload: settings)
        + HTTP2TestConnection.bytes(
          of: .windowUpdate, payload: SessionPeer.bytes(UInt32(33_554_432 - 65_535))))[...])
    #expect(session.freeStreams == 100)
    #expect(session.streamCount == 0 && !session.isOver)
  }

  @Test("A request with a larger limit of heads announces it before it is sent, and a smaller one nothing")
  func largerHeads() throws {
    let peer = try SessionPeer(headerSizeLimit: 10_000)
    func open(_ limit: Int?) throws -> [SessionPeer.Frame] {
      let recorder = StreamRecorder(peer)
      let origin = Origin(scheme: "https", host: "a.example", port: nil)
      let request = try RequestFields(.init(method: "GET", origin: origin, target: "/"), fields: [])
      let stream = peer.session.open(
        request, method: "GET", hasContent: false, headerSizeLimit: limit, for: recorder)
      _ = try #require(stream)
      return peer.flush()
    }
    #expect(try open(nil).map(\.kind) == [1])
    #expect(try open(262_144).map(\.kind) == [1], "the first settings have announced it")
    let frames = try open(1_000_000)
    #expect(frames.map(\.kind) == [4, 1], "the settings come before the head")
    #expect(frames.first?.payload == [0, 6] + SessionPeer.bytes(UInt32(1_000_000)))
    #expect(try open(1_000_000).map(\.kind) == [1] && open(500_000).map(\.kind) == [1])
  }

  @Test("A request has its fields, and its response arrives", arguments: [Int.max, 1, 7])
  func exchange(segmentSize: Int) throws {
    let peer = try SessionPeer()
    peer.segmentSize = segmentSize
    let request = try #require(
      try StreamRecorder.open(
        peer,
        fields: [HTTPHeader(name: "Accept", value: "*/*"), HTTPHeader(name: "Host", value: "b.example")]))
    let frames = peer.flush()
    #expect(frames.map(\.kind) == [1] && frames[0].flags == 0x5)
    #expect(
      try peer.heads(frames) == [
        [":method: GET", ":scheme: https", ":authority: b.example", ":path: /path?query", "accept: */*"]
      ])
    peer.respond([(":status", "200"), ("content-length", "5"), ("x", "1")], endsStream: false)
    #expect(request.stream?.contentLength == 5)
    #expect(request.fields == ["content-length: 5", "x: 1"])
    peer.sendContent(Array("hello".utf8))
    #expect(request.received == Array("hello".utf8))
    #expect(request.events.first == .began && request.events[1] == .head(200))
    #expect(request.events.suffix(2) == [.responseEnded, .ended(.complete)])
    #expect(peer.session.streamCount == 0 && peer.session.freeStreams == 100 && peer.session.failure == nil)
  }

  /// Uses fewer bytes than a head may have. The library that encodes them reckons with more for each field.
  @Test("A request with very many short fields is sent") func shortFields() throws {
    let peer = try SessionPeer()
    let fields = [HTTPHeader](repeating: HTTPHeader(name: "a", value: "1"), count: 200_000)
    let request = try #require(try StreamRecorder.open(peer, fields: fields))
    let frames = peer.flush()
    #expect(frames.first?.kind == 1 && frames.count > 1 && request.events.isEmpty)
    peer.respond(200)
    #expect(request.events.last == .ended(.complete))
  }

  @Test("Informational heads, the head and trailers arrive in order", arguments: [Int.max, 1])
  func sections(segmentSize: Int) throws {
    let peer = try SessionPeer()
    peer.segmentSize = segmentSize
    let request = try #require(try StreamRecorder.open(peer))
    peer.flush()
    peer.respond(100, endsStream: false)
    peer.respond(103, endsStream: false)
    peer.respond(200, endsStream: false)
    peer.sendContent([1], endsStream: false)
    peer.respond([("x", "1"), ("y", "2")])
    #expect(
      request.events == [
        .began, .informational(100), .informational(103), .head(200), .content(1),
        .trailers("x: 1\r\ny: 2\r\n"), .responseEnded, .ended(.complete),
      ])
  }

  @Test(
    "Responses without a body end with their head", arguments: [("HEAD", 200), ("GET", 204), ("GET", 304)])
  func noBody(method: String, status: Int) throws {
    let peer = try SessionPeer()
    let request = try #require(try StreamRecorder.open(peer, method: method))
    peer.flush()
    peer.respond([(":status", String(status)), ("content-length", "7")])
    #expect(request.events == [.began, .head(status), .responseEnded, .ended(.complete)])
  }

  @Test("Content is sent with its head, in one output") func upload() throws {
    let peer = try SessionPeer()
    let content = (0..<40_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
    let request = try #require(try StreamRecorder.open(peer, method: "POST", content: content))
    peer.session.makeOutput()
    #expect(peer.session.output.count > 40_000)
    let frames = peer.flush()
    #expect(frames.map(\.kind) == [1, 0, 0, 0])
    #expect(try peer.heads(frames).first?.last == "content-length: 40000")
    #expect(frames.dropFirst().flatMap(\.payload) == content)
    #expect(frames.map(\.endsStream) == [false, false, false, true])
    peer.respond(200)
    #expect(request.end == .complete)
  }

  @Test("Content that arrives late is asked for again") func lateContent() throws {
    let peer = try SessionPeer()
    let request = try #require(
      try StreamRecorder.open(peer, method: "POST", content: []) { $0.isOpen = true })
    #expect(peer.flush().map(\.kind) == [1])
    for byte in [UInt8(1), 2] {
      #expect(peer.flush() == [], "the content is not there")
      request.content = [byte]
      peer.session.resumeContent(of: try #require(request.stream))
      #expect(peer.flush() == [.init(kind: 0, flags: 0, stream: 1, payload: [byte])])
    }
    request.isOpen = false
    peer.session.resumeContent(of: try #require(request.stream))
    #expect(peer.flush() == [.init(kind: 0, flags: 1, stream: 1, payload: [])], "an end without bytes")
    peer.respond(201)
    #expect(request.end == .complete)
  }

  @Test("Content may be empty, and its end may come after its last bytes") func ends() throws {
    let peer = try SessionPeer()
    let empty = try #require(try StreamRecorder.open(peer, method: "PUT", content: []))
    #expect(peer.flush().dropFirst() == [.init(kind: 0, flags: 1, stream: 1, payload: [])])
    let late = try #require(
      try StreamRecorder.open(peer, method: "PUT", content: [1, 2, 3]) {
        $0.announcesEnd = false
        $0.pieceSize = 2
      })
    #expect(
      peer.flush().dropFirst() == [
        .init(kind: 0, flags: 0, stream: 3, payload: [1, 2]),
        .init(kind: 0, flags: 0, stream: 3, payload: [3]),
        .init(kind: 0, flags: 1, stream: 3, payload: []),
      ])
    for stream in [1, 3] as [UInt32] { peer.respond(204, on: stream) }
    #expect(empty.end == .complete && late.end == .complete)
  }

  @Test("Content that fails resets the stream") func failingContent() throws {
    let peer = try SessionPeer()
    let request = try #require(
      try StreamRecorder.open(peer, method: "POST", content: [1]) { $0.onWanted = { _ in .failed } })
    let frames = peer.flush()
    #expect(frames.map(\.kind) == [1, 3])
    #expect(frames.last?.number == 8, "CANCEL")
    peer.respond(200)
    #expect(request.events == [] && peer.session.streamCount == 0 && peer.session.failure == nil)
  }

  @Test("The output may be consumed in pieces of any size", arguments: [1, 5, 1_000, 16_393])
  func partialOutput(size: Int) throws {
    let peer = try SessionPeer()
    peer.takenAtOnce = size
    let content = (0..<30_000).map { UInt8(truncatingIfNeeded: $0) }
    let requests = try (0..<2).map { _ in
      try #require(try StreamRecorder.open(peer, method: "POST", content: content))
    }
    let frames = peer.flush()
    for request in requests {
      let sent = frames.filter { $0.kind == 0 && $0.stream == request.id }.flatMap(\.payload)
      #expect(sent == content, "stream \(request.id)")
    }
  }

  @Test("A head of 900 kB is sent") func largeRequest() throws {
    let peer = try SessionPeer()
    let value = String(repeating: "v", count: 60_000)
    let fields = (0..<15).map { HTTPHeader(name: "x-\($0)", value: value) }
    _ = try #require(try StreamRecorder.open(peer, fields: fields))
    let frames = peer.flush()
    #expect(frames.map(\.kind).first == 1 && frames.dropFirst().allSatisfy { $0.kind == 9 })
    #expect(frames.last.map { $0.flags & 4 } == 4)
    // The code of the letter has seven bits.
    #expect(frames.reduce(0) { $0 + $1.payload.count } > 900_000 * 7 / 8)
  }

  @Test("PING is answered, and SETTINGS are acknowledged") func answers() throws {
    let peer = try SessionPeer()
    peer.send(.ping, payload: [1, 2, 3, 4, 5, 6, 7, 8])
    peer.send(.settings)
    #expect(
      peer.flush() == [
        .init(kind: 6, flags: 1, stream: 0, payload: [1, 2, 3, 4, 5, 6, 7, 8]),
        .init(kind: 4, flags: 1, stream: 0, payload: []),
      ])
  }

  @Test("Frames of unknown types and settings are ignored") func unknown() throws {
    let peer = try SessionPeer()
    let request = try #require(try StreamRecorder.open(peer))
    peer.flush()
    peer.send(
      HTTP2TestConnection.bytes(of: .ping, payload: [1, 2]).enumerated().map {
        $0.offset == 3 ? 0xEE : $0.element
      })
    peer.send(.settings, payload: [0xAB, 0xCD, 0, 0, 0, 1])
    peer.respond(200)
    #expect(request.end == .complete && peer.session.failure == nil)
  }

  @Test(
    "One hundred streams are open at most, or as many as the server allows", arguments: [nil, 1_000, 3, 0])
  func limit(allowed: Int?) throws {
    let peer = try SessionPeer(settings: allowed.map { [(UInt16(3), UInt32($0))] } ?? [])
    let limit = min(allowed ?? 100, 100)
    #expect(peer.session.freeStreams == limit && peer.session.streamLimit == limit)
    let requests = try (0..<limit).compactMap { _ in try StreamRecorder.open(peer) }
    #expect(requests.count == limit && peer.session.freeStreams == 0)
    #expect(try StreamRecorder.open(peer) == nil)
    #expect(try peer.heads(peer.flush()).count == limit)
    for request in requests { peer.respond(200, on: request.id) }
    #expect(requests.allSatisfy { $0.end == .complete } && peer.session.freeStreams == limit)
  }

  @Test("A limit that is lowered holds for new streams") func loweredLimit() throws {
    let peer = try SessionPeer()
    var changes = 0
    peer.session.streamLimitChanged = { changes += 1 }
    let requests = try (0..<3).compactMap { _ in try StreamRecorder.open(peer) }
    peer.flush()
    peer.send(.settings, payload: [0, 3, 0, 0, 0, 2])
    #expect(changes == 1 && peer.session.freeStreams == 0)
    peer.respond(200, on: 1)
    #expect(peer.session.freeStreams == 0)
    peer.respond(200, on: 3)
    #expect(peer.session.freeStreams == 1)
    peer.respond(200, on: 5)
    #expect(peer.session.freeStreams == 2 && requests.allSatisfy { $0.end == .complete })
    peer.send(.settings, payload: [0, 3, 0, 0, 0, 9])
    #expect(changes == 2 && peer.session.freeStreams == 9)
  }

  @Test(
    "Requests above a limit that arrives before they are encoded are given back", arguments: 0...2)
  func givenBack(limit: Int) throws {
    let peer = try SessionPeer()
    let requests = try (0..<3).compactMap { _ in try StreamRecorder.open(peer) }
    // The settings arrive in the turn of the requests.
    peer.send(.settings, payload: [0, 3, 0, 0, 0, UInt8(limit)])
    #expect(requests.map { $0.end == .overLimit } == (0..<3).map { $0 >= limit })
    #expect(peer.session.streamCount == limit && peer.session.freeStreams == 0)
    #expect(try peer.heads(peer.flush()).count == limit)
    for request in requests.prefix(limit) { peer.respond(200, on: request.id) }
    peer.send(.settings, payload: [0, 3, 0, 0, 0, 9])
    #expect(try peer.heads(peer.flush()).isEmpty, "a request that was given back is sent")
    #expect(requests.prefix(limit).allSatisfy { $0.end == .complete } && peer.session.freeStreams == 9)
  }

  @Test("Requests that were encoded before a lowered limit arrives are not given back") func encodedBefore()
    throws
  {
    let peer = try SessionPeer()
    let sent = try (0..<2).compactMap { _ in try StreamRecorder.open(peer) }
    peer.flush()
    let unsent = try (0..<2).compactMap { _ in try StreamRecorder.open(peer) }
    peer.send(.settings, payload: [0, 3, 0, 0, 0, 3])
    #expect((sent + unsent).map(\.end) == [nil, nil, nil, .overLimit])
    peer.send(.settings, payload: [0, 3, 0, 0, 0, 1])
    #expect((sent + unsent).map(\.end) == [nil, nil, .overLimit, .overLimit])
    for request in sent { peer.respond(200, on: request.id) }
    #expect(sent.allSatisfy { $0.end == .complete } && peer.session.freeStreams == 1)
  }
}
