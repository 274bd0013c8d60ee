import Foundation
import HTTPTestServer
import HTTPWire
import Testing

@testable import Alamofire

@Suite("Log of the wire", .timeLimit(.minutes(5))) struct WireLogTests {
  private let server: HTTPTestServer
  private let entries = Recorder<WireLog.Entry>()

  init() throws { server = try HTTPTestServer() }

  private func log() -> WireLog {
    WireLog { [entries] in entries.add($0) }
  }

  /// Returns the entries so far, with one for each run of pieces of one body.
  private func texts(_ log: WireLog) -> [String] {
    log.queue.sync {}
    var texts: [String] = []
    var sizes: [(WireLog.Entry.Part, Int)] = []
    for entry in entries.values {
      if let last = sizes.last, last.0 == entry.part, entry.text.isEmpty {
        sizes[sizes.count - 1].1 += entry.byteCount
        texts[texts.count - 1] = "\(entry.part) \(sizes[sizes.count - 1].1)"
      } else {
        sizes.append((entry.part, entry.byteCount))
        texts.append(entry.text.isEmpty ? "\(entry.part) \(entry.byteCount)" : entry.text)
      }
    }
    return texts
  }

  /// Returns the head as the server received it.
  private func receivedHead(_ index: Int = 0) -> [String] {
    let request = server.recordedRequests[index]
    return ["\(request.method) \(request.target) \(request.version)"]
      + request.headers.map { "\($0.name): \($0.value)" }
  }

  @Test("The head of a request is the one that the server receives") func heads() async throws {
    let log = log()
    let session = Session.real(configuration: .isolated, eventMonitors: [log])
    server.enqueue(Reply(headers: [HTTPHeader(name: "x-Z", value: "1")], body: .bytes([65, 66])))
    let request = session.request(server.url("/a?b=1"), headers: ["X-b": "1", "x-A": "2"])
    let response = await request.serializingData().response
    let texts = texts(log)
    try #require(texts.count == 3)
    #expect(texts[0].components(separatedBy: "\n") == receivedHead())
    #expect(texts[1].hasPrefix("HTTP/1.1 200 OK\nx-Z: 1\n"))
    #expect(texts[2] == "responseBody 2")
    #expect(entries.values.allSatisfy { $0.requestID == request.id })
    #expect(entries.values.last?.description == "< 2 bytes")
    #expect(entries.values.first?.description.hasPrefix("> GET /a?b=1 HTTP/1.1\n> ") == true)
    let head = response.metrics?.transactionMetrics.last?.requestHead
    #expect(head == receivedHead().map { $0 + "\r\n" }.joined() + "\r\n")
  }

  @Test("A request without a log keeps no head") func unobserved() async throws {
    let session = Session.real(configuration: .isolated)
    let response = await session.request(server.url("/get")).serializingData().response
    #expect(response.value != nil)
    #expect(try #require(response.metrics?.transactionMetrics.last).requestHead == nil)
  }

  @Test("A log of one request sees that one alone, on a connection that is used again") func oneRequest()
    async throws
  {
    let session = Session.real(configuration: .isolated)
    let log = log()
    for index in 0..<4 {
      let request = session.request(server.url("/get"))
      if index % 2 == 1 { request.eventMonitor(log) }
      _ = await request.serializingData().response
    }
    #expect(server.connectionCount == 1)
    log.queue.sync {}
    #expect(entries.values.filter { $0.part == .requestHead }.count == 2)
    #expect(entries.values.filter { $0.part == .responseHead }.count == 2)
  }

  @Test("Redirects and retries have their own heads") func hops() async throws {
    let log = log()
    let session = Session.real(configuration: .isolated, eventMonitors: [log])
    server.enqueue(.redirect(to: "/x"), .status(503), .redirect(to: "/y"), .status(204))
    _ = await session.request(server.url("/w"), interceptor: RetryPolicy(exponentialBackoffScale: 0.001))
      .validate().serializingData(emptyResponseCodes: [204]).response
    let lines = texts(log).compactMap { $0.components(separatedBy: "\n").first }
    #expect(
      lines.filter { $0.hasPrefix("GET") }.map { $0.prefix(6) } == ["GET /w", "GET /x", "GET /w", "GET /y"])
    #expect(
      lines.filter { $0.hasPrefix("HTTP") }.map { $0.split(separator: " ")[1] } == [
        "302", "503", "302", "204",
      ])
  }

  @Test("The sizes of bodies are those on the wire", arguments: [100, 100_000]) func bodies(size: Int)
    async throws
  {
    let log = log()
    let session = Session.real(configuration: .isolated, eventMonitors: [log])
    server.enqueue(Reply(body: .chunks(["abc", "de"])))
    let data = Data(repeating: 65, count: size)
    _ = await session.upload(data, to: server.url("/")).serializingData().response
    let texts = texts(log)
    #expect(texts.contains("requestBody \(size)"))
    // 3 CRLF abc CRLF 2 CRLF de CRLF 0 CRLF CRLF
    #expect(texts.last == "responseBody 20")
    #expect(receivedHead() == texts[0].components(separatedBy: "\n"))
  }

  @Test("Informational responses are written") func informational() async throws {
    let log = log()
    let session = Session.real(configuration: .isolated, eventMonitors: [log])
    server.enqueue(
      .raw(
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        closes: true))
    _ = await session.request(server.url("/")).serializingData().response
    #expect(
      texts(log).dropFirst() == [
        "HTTP/1.1 103 Early Hints\nLink: </a>", "HTTP/1.1 200 OK\nContent-Length: 2", "responseBody 2",
      ])
  }

  @Test("A failed request is written as far as it was sent and answered") func failure() async throws {
    let log = log()
    let session = Session.real(configuration: .isolated, eventMonitors: [log])
    server.enqueue(.raw("HTTP/1.1 200 OK\r\nX-A: 1\r\n", closes: true))
    let response = await session.request(server.url("/")).serializingData().response
    #expect(response.error != nil)
    let texts = texts(log)
    #expect(texts.count == 2 && texts.last == "HTTP/1.1 200 OK\nX-A: 1")
    #expect(response.metrics?.transactionMetrics.last?.requestHead?.hasPrefix("GET / HTTP/1.1\r\n") == true)
  }

  @Test("Several monitors observe one request") func several() async throws {
    let log = log()
    let recorder = RequestRecorder()
    let other = Recorder<String>()
    let session = Session.real(
      configuration: .isolated, eventMonitors: [log, recorder, WireLog { other.add($0.text) }])
    _ = await session.request(server.url("/get")).serializingData().response
    recorder.queue.sync {}
    #expect(texts(log)[0].components(separatedBy: "\n") == receivedHead())
    #expect(await other.wait(for: 1).first == entries.values.first?.text)
    let archive = String(decoding: try recorder.har(), as: UTF8.self)
    #expect(archive.contains("\"Host\""))
  }

  // MARK: Heads

  private func heads(_ pieces: [(WirePart, String)]) -> [String] {
    var collector = WireCollector()
    var heads: [WireCollector.Head] = []
    for (part, text) in pieces {
      heads += Array(text.utf8).withUnsafeBytes { collector.add(part, $0) }
    }
    return (heads + [collector.finish()].compactMap { $0 }).map { String(decoding: $0.bytes, as: UTF8.self) }
  }

  @Test("Heads are complete at their empty line, in pieces of any size") func pieces() {
    let head = "GET / HTTP/1.1\r\nA: b\r\n\r\n"
    for size in 1...head.utf8.count {
      var rest = head[...]
      var pieces: [(WirePart, String)] = []
      while !rest.isEmpty {
        let piece = String(decoding: Array(rest.utf8.prefix(size)), as: UTF8.self)
        pieces.append((.requestHead, piece))
        rest = Substring(String(decoding: Array(rest.utf8.dropFirst(size)), as: UTF8.self))
      }
      #expect(heads(pieces + pieces) == [head, head])
    }
  }

  @Test("A head without an empty line ends where another part begins") func incomplete() {
    #expect(
      heads([(.requestHead, "GET"), (.responseHead, "HTTP"), (.responseBody, "x")]) == ["GET", "HTTP"])
    #expect(heads([(.responseBody, "x"), (.responseHead, "T: 1\r\n")]) == ["T: 1\r\n"])
    #expect(heads([(.responseHead, "HTTP/1.1 103 \r\n"), (.responseHead, "HTTP/1.1 200 \r\n")]).count == 2)
    #expect(heads([(.requestBody, "x")]) == [])
    #expect(
      heads([(.responseHead, "HTTP"), (.responseBody, "x"), (.responseHead, "T: 1\r\n")]) == [
        "HTTP", "T: 1\r\n",
      ])
    // A head may have plain line feeds (RFC 9112 §2.2).
    #expect(heads([(.responseHead, "HTTP/1.1 200\n\n"), (.responseHead, "T: 1\n")]).count == 2)
  }

  @Test("The fields of a head begin after its first line; trailers have none") func fields() {
    let field = [HTTPHeader(name: "A", value: "b")]
    #expect(WireHead(Array("GET / HTTP/1.1\r\nA: b\r\n\r\n".utf8)).fields == field)
    #expect(WireHead(Array("A: b\r\n".utf8)).fields == field)
  }

  @Test("Parts of a request are marked as sent, parts of a response as received") func marks() {
    for part in WireLog.Entry.Part.allCases {
      let entry = WireLog.Entry(part: part, text: "", byteCount: 1, date: Date(), requestID: UUID())
      let isSent = part == .requestHead || part == .requestBody
      #expect(entry.description == (isSent ? "> 1 byte" : "< 1 byte"))
    }
  }

  @Test(
    "Heads lose their secrets",
    arguments: [
      (
        "GET /a?token=planted HTTP/1.1\r\nAuthorization: Bearer planted\r\n\r\n",
        "GET /a?token=redacted HTTP/1.1\nAuthorization: Bearer <redacted>"
      ),
      (
        "HTTP/1.1 200 OK\r\nSet-Cookie: a=planted; Path=/\r\nA: b:c\r\n",
        "HTTP/1.1 200 OK\nSet-Cookie: a=<redacted>; Path=/\nA: b:c"
      ),
      (
        "HTTP/1.1 200 OK\r\nX-Api-Key:\r\n planted\r\n\tplanted\r\n\r\n",
        "HTTP/1.1 200 OK\nX-Api-Key: <redacted>"
      ),
      ("Authorization : planted\r\n", "Authorization : <redacted>"),
      // A value may begin with a combining mark, which joins with what is before it.
      ("A: b\r\nSet-Cookie:\u{301}a=planted\r\n", "A: b\nSet-Cookie: \u{301}a=<redacted>"),
      ("A: b\r\nX-Api-Key:\u{301}planted; x:y\r\n", "A: b\nX-Api-Key: <redacted>"),
      ("A: b\r\nX-Api-Key: x\r\n \u{301}planted\r\n", "A: b\nX-Api-Key: <redacted>"),
      ("GET /?key=planted\r\n", "GET /?key=redacted"),
      ("HTTP/1.1 302\nLocation: /?key=planted\n\n", "HTTP/1.1 302\nLocation: /?key=redacted"),
      ("X-Customer: planted\r\nX-Other: shown\r\n", "X-Customer: <redacted>\nX-Other: shown"), ("", ""),
    ])
  func secrets(head: String, shown: String) {
    let redaction = Redaction(additionalNames: ["X-Customer"])
    #expect(WireHead(Array(head.utf8), redaction).text == shown)
  }
}
