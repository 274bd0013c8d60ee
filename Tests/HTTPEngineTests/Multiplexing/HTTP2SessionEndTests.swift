import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

@Suite("Ends of streams of an HTTP/2 session", .timeLimit(.minutes(1))) struct HTTP2SessionEndTests {
  @Test("A complete response counts although the server resets the stream", arguments: [0, 8, 1] as [UInt32])
  func responseBeforeReset(code: UInt32) throws {
    let peer = try SessionPeer()
    let content = [UInt8](repeating: 7, count: 200_000)
    let request = try #require(try StreamRecorder.open(peer, method: "POST", content: content))
    peer.flush()
    peer.respond(200, endsStream: false)
    peer.sendContent([1, 2])
    #expect(request.end == nil, "the upload goes on")
    peer.reset(1, code)
    #expect(request.end == .complete && request.received == [1, 2])
    peer.grant(1_000_000)
    #expect(peer.flush().filter { $0.kind == 0 } == [], "the rest of the upload is not sent")
    #expect(peer.session.failure == nil)
  }

  @Test("A response is delivered while the upload goes on to its end") func fullDuplex() throws {
    let peer = try SessionPeer()
    let request = try #require(
      try StreamRecorder.open(peer, method: "POST", content: [1]) { $0.isOpen = true })
    peer.flush()
    peer.respond(200)
    #expect(request.events.last == .responseEnded && request.stream?.isRequestOpen == true)
    request.isOpen = false
    request.content = [2]
    peer.session.resumeContent(of: try #require(request.stream))
    #expect(peer.flush().last == .init(kind: 0, flags: 1, stream: 1, payload: [2]))
    #expect(request.end == .complete)
  }

  @Test("An upload that stops ends with the response", arguments: [true, false])
  func stopped(beforeEnd: Bool) throws {
    let peer = try SessionPeer()
    let content = [UInt8](repeating: 7, count: 100_000)
    let request = try #require(try StreamRecorder.open(peer, method: "POST", content: content))
    peer.flush()
    let stream = try #require(request.stream)
    peer.respond(413, endsStream: false)
    if beforeEnd { peer.session.stopSending(on: stream) }
    peer.grant(50_000)
    peer.grant(50_000, on: 1)
    if beforeEnd { #expect(peer.flush().filter { $0.kind == 0 } == []) }
    peer.sendContent([9])
    if !beforeEnd { peer.session.stopSending(on: stream) }
    #expect(request.end == .complete && request.received == [9])
    #expect(peer.flush().contains { $0.kind == 3 && $0.number == 8 }, "the stream is reset with CANCEL")
    #expect(peer.session.streamCount == 0)
  }

  @Test("Stopping after the whole request changes nothing") func stoppedLate() throws {
    let peer = try SessionPeer()
    let request = try #require(try StreamRecorder.open(peer, method: "POST", content: [1]))
    peer.flush()
    peer.session.stopSending(on: try #require(request.stream))
    peer.respond(400)
    #expect(request.end == .complete && peer.flush() == [])
  }

  @Test(
    "A reset before any frame of the response says whether the request was processed",
    arguments: [
      (7, .refused(code: 7)), (13, .refused(code: 13)), (11, .reset(code: 11)), (0, .reset(code: 0)),
      (8, .reset(code: 8)), (2, .reset(code: 2)), (77, .reset(code: 77)),
    ] as [(UInt32, HTTP2StreamEnd)])
  func refusal(code: UInt32, end: HTTP2StreamEnd) throws {
    let peer = try SessionPeer()
    let request = try #require(try StreamRecorder.open(peer))
    peer.flush()
    peer.reset(1, code)
    #expect(request.end == end && request.events.count == 1)
    #expect(end.evidence == (code == 7 || code == 13 ? .refused : .unknown))
  }

  @Test("After a frame of the response, a reset does not count as a refusal", arguments: [103, 200])
  func resetAfterHead(status: Int) throws {
    let peer = try SessionPeer()
    let request = try #require(try StreamRecorder.open(peer))
    peer.flush()
    peer.respond(status, endsStream: false)
    peer.reset(1, 7)
    #expect(request.end == .reset(code: 7))
  }

  @Test("A stream that its request has given up is reset, and late frames are ignored")
  func cancelled() throws {
    let peer = try SessionPeer()
    let request = try #require(try StreamRecorder.open(peer))
    peer.flush()
    peer.respond(200, endsStream: false)
    peer.session.reset(try #require(request.stream))
    #expect(peer.session.streamCount == 1, "until the reset was sent, the server counts the stream")
    peer.sendContent([UInt8](repeating: 1, count: 10_000), endsStream: false)
    let frames = peer.flush()
    #expect(frames.map(\.kind) == [3] && frames[0].number == 8)
    #expect(peer.session.streamCount == 0)
    peer.sendContent([1])
    #expect(request.events == [.began, .head(200)] && peer.session.failure == nil)
  }

  @Test("A request that is given up at once is not sent") func cancelledAtOnce() throws {
    let peer = try SessionPeer()
    let request = try #require(try StreamRecorder.open(peer))
    peer.session.reset(try #require(request.stream))
    #expect(peer.session.streamCount == 0)
    #expect(try peer.heads(peer.flush()) == [])
    let next = try #require(try StreamRecorder.open(peer))
    peer.flush()
    peer.respond(200, on: next.id)
    #expect(next.end == .complete && request.events == [])
  }

  // MARK: GOAWAY

  @Test("GOAWAY refuses the streams above its last one") func goAway() throws {
    let peer = try SessionPeer()
    let requests = try (0..<3).compactMap { _ in try StreamRecorder.open(peer) }
    peer.flush()
    peer.goAway(last: 1, code: 11)
    #expect(requests.map(\.end) == [nil, .refused(code: 7), .refused(code: 7)])
    #expect(peer.session.goAway?.lastStream == 1 && peer.session.goAway?.code == 11)
    #expect(peer.session.freeStreams == 0 && !peer.session.isOver)
    #expect(try StreamRecorder.open(peer) == nil)
    peer.respond(200)
    #expect(requests[0].end == .complete && peer.session.isOver && peer.session.failure == nil)
  }

  @Test("GOAWAY with 2^31-1 announces a later one") func shutdown() throws {
    let peer = try SessionPeer()
    let requests = try (0..<2).compactMap { _ in try StreamRecorder.open(peer) }
    peer.flush()
    peer.goAway(last: 0x7FFF_FFFF)
    #expect(requests.allSatisfy { $0.end == nil } && peer.session.freeStreams == 0)
    peer.goAway(last: 1)
    #expect(requests[1].end == .refused(code: 7))
    peer.respond(200)
    #expect(requests[0].end == .complete && peer.session.isOver)
  }

  @Test("Requests that were not sent before GOAWAY were not sent", arguments: [0, 0x7FFF_FFFF] as [UInt32])
  func goAwayBeforeSending(last: UInt32) throws {
    let peer = try SessionPeer()
    let requests = try (0..<3).compactMap { _ in try StreamRecorder.open(peer) }
    peer.goAway(last: last)
    #expect(requests.allSatisfy { $0.end == .notSent } && peer.session.isOver)
    #expect(try peer.heads(peer.flush()) == [])
  }

  // MARK: The end of the connection

  @Test("The end of the connection ends each stream by what is known of it") func connectionEnded() throws {
    let peer = try SessionPeer()
    let answered = try #require(
      try StreamRecorder.open(peer, method: "POST", content: []) { $0.isOpen = true })
    let begun = try #require(try StreamRecorder.open(peer))
    let waiting = try #require(try StreamRecorder.open(peer))
    peer.flush()
    peer.respond(200, on: answered.id)
    peer.respond(200, on: begun.id, endsStream: false)
    let encoded = try #require(try StreamRecorder.open(peer))
    peer.session.makeOutput()
    let unsent = try #require(try StreamRecorder.open(peer))
    peer.session.connectionEnded()
    #expect(answered.end == .complete)
    #expect(begun.end == .failed(.closed(code: nil)) && waiting.end == .failed(.closed(code: nil)))
    #expect(encoded.end == .notSent && unsent.end == .notSent)
    #expect(!peer.flush().contains { $0.kind == 1 }, "a request that was not sent is sent afterwards")
    #expect(
      peer.session.isOver && peer.session.failure == .closed(code: nil) && peer.session.streamCount == 0)
    peer.session.connectionEnded()
    peer.session.close()
    #expect(try StreamRecorder.open(peer) == nil)
  }

  @Test("A request counts as sent once the connection has accepted a byte of it", arguments: [0, 1, 9])
  func sentBytes(count: Int) throws {
    let peer = try SessionPeer()
    _ = try #require(try StreamRecorder.open(peer))
    let second = try #require(try StreamRecorder.open(peer))
    peer.session.makeOutput()
    let firstHead = 9 + Int(peer.session.output[2])
    peer.session.outputTaken(firstHead + count)
    peer.session.connectionEnded()
    #expect(second.end == (count == 0 ? .notSent : .failed(.closed(code: nil))))
  }

  /// Sends heads of one frame, of two, and of more than are encoded at a time.
  @Test("A head is sent once the connection has accepted its last byte", arguments: [1, 40_000, 300_000])
  func sentHead(valueLength: Int) throws {
    let peer = try SessionPeer()
    let field = HTTPHeader(name: "x-long", value: String(repeating: "a", count: valueLength))
    let request = try #require(try StreamRecorder.open(peer, fields: [field]))
    let stream = try #require(request.stream)
    // Whether the head was sent, after each output.
    var wasSent: [Bool] = []
    while true {
      peer.session.makeOutput()
      guard !peer.session.output.isEmpty else { break }
      peer.session.outputTaken(peer.session.output.count - 1)
      #expect(!peer.session.hasSentHead(of: stream), "a byte of output \(wasSent.count) waits")
      peer.session.outputTaken(1)
      wasSent.append(peer.session.hasSentHead(of: stream))
    }
    #expect(wasSent.last == true && !wasSent.dropLast().contains(true), "\(wasSent)")
    #expect((wasSent.count > 1) == (valueLength > 200_000), "\(wasSent.count) outputs")
  }

  @Test("The code of a GOAWAY is named when the connection ends") func codeOfGoAway() throws {
    let peer = try SessionPeer()
    let request = try #require(try StreamRecorder.open(peer))
    peer.flush()
    peer.goAway(last: 1, code: 11)
    peer.session.connectionEnded()
    #expect(request.end == .failed(.closed(code: 11)))
    let text = HTTP2Failure.closed(code: 11).message(host: "a.example")
    #expect(text == "a.example closed the connection before the response was complete (ENHANCE_YOUR_CALM).")
    #expect(HTTP2Failure.name(of: 13) == "HTTP_1_1_REQUIRED" && HTTP2Failure.name(of: 99) == "code 99")
  }

  @Test("A session that is closed sends GOAWAY") func close() throws {
    let peer = try SessionPeer()
    let request = try #require(try StreamRecorder.open(peer))
    peer.flush()
    peer.session.close()
    let frames = peer.flush()
    #expect(frames.map(\.kind) == [7] && frames[0].number == 0)
    #expect(request.end == .failed(.closed(code: nil)) && peer.session.isOver)
    peer.respond(200)
    #expect(request.events.count == 1)
  }
}
