import Glibc
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct LimitTests {
  @Test("A head above the limit is refused", arguments: [1000, 4 << 20])
  func headLimit(bytes: Int) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.garbageHead(.huge(bytes: bytes)), .text("next"))
    let client = Client { $0.headerSizeLimit = 500 }
    let failure = try await client.failure(of: server.url("/"))
    #expect(failure.kind == .dataLengthExceedsMaximum)
    #expect(failure.helps())
    #expect(failure.message.contains("header"))
    #expect(try await client.get(server.url("/")).text == "next")
  }

  @Test("A field of more than 64 KiB is accepted over HTTP/1.1") func largeField() async throws {
    let server = try HTTPTestServer(routes: .none)
    let value = String(repeating: "v", count: 70_000)
    var reply = Reply.text("ok")
    reply.headers.append(HTTPHeader(name: "X-Large", value: value))
    server.enqueue(reply)
    let response = try await Client().get(server.url("/"))
    #expect(response.text == "ok" && response.head.block.value(of: "X-Large") == value)
  }

  @Test("The limit of heads may be any number", arguments: [Int.max, .min]) func extremeHeadLimit(limit: Int)
    async throws
  {
    let server = try HTTPTestServer()
    await #expect(processExitsWith: .success) { [url = server.url("/get") as String, limit] in
      let client = Client { $0.headerSizeLimit = limit }
      if limit > 0 { exit(try await client.get(url).status == 200 ? EXIT_SUCCESS : EXIT_FAILURE) }
      let failure = try await client.failure(of: url)
      exit(failure.kind == .dataLengthExceedsMaximum ? EXIT_SUCCESS : EXIT_FAILURE)
    }
  }

  @Test("Endless informational heads are refused") func endlessInformationalHeads() async throws {
    let server = try HTTPTestServer(routes: .none)
    var reply = Reply.ok
    for _ in 0..<2000 { reply = reply.preceded(by: 103) }
    server.enqueue(reply)
    let failure = try await Client { $0.headerSizeLimit = 10_000 }.failure(of: server.url("/"))
    #expect(failure.kind == .dataLengthExceedsMaximum)
  }

  @Test(
    "A body at the limit is accepted and one byte more is refused",
    arguments: [Reply.Framing.contentLength, .chunked])
  func bodyLimit(framing: Reply.Framing) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.bytes(50_000).framed(framing), .bytes(50_001).framed(framing), .text("next"))
    let client = Client { $0.bodySizeLimit = 50_000 }
    #expect(try await client.get(server.url("/")).bytes.count == 50_000)
    let failure = try await client.failure(of: server.url("/"))
    #expect(failure.kind == .dataLengthExceedsMaximum)
    #expect(failure.message.contains("50000") && failure.message.contains("bodySizeLimit"))
    #expect(try await client.get(server.url("/")).text == "next")
  }

  @Test("The limit counts decoded bytes") func decodedBytes() async throws {
    let server = try HTTPTestServer()
    let failure = try await Client { $0.bodySizeLimit = 10 }.failure(of: server.url("/gzip"))
    #expect(failure.kind == .dataLengthExceedsMaximum)
  }
}

@Suite("Limits of requests", .timeLimit(.minutes(5))) struct RequestLimitTests {
  @Test("Head of a request that is too large to send is named", arguments: [false, true])
  func oversizedHead(isURL: Bool) async throws {
    let server = try HTTPTestServer(routes: .none)
    let large = String(repeating: "a", count: 1_100_000)
    let client = Client()
    let request = try client.request(
      server.url(isURL ? "/\(large)" : "/"), fields: isURL ? [] : [HTTPHeader(name: "X", value: large)])
    let failure = try await client.failure(of: request)
    #expect(failure.kind == .badURL, "\(failure.message)")
    #expect(failure.message.hasPrefix(isURL ? "The URL of" : "The header of"))
    #expect(failure.message.contains("too large") && failure.message.count < 500)
  }

  @Test("Field of 250 kB is sent")
  func largeField() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.ok)
    let value = String(repeating: "a", count: 250_000)
    let client = Client()
    _ = try await client.send(client.request(server.url("/"), fields: [HTTPHeader(name: "X", value: value)]))
    #expect(try await server.takeRequest().header("X") == value)
  }

  @Test("Many fields are sent in their order")
  func manyFields() async throws {
    let server = try HTTPTestServer()
    let fields = (0..<500).map { HTTPHeader(name: "X-\($0)", value: "\($0)") }
    let client = Client()
    _ = try await client.send(client.request(server.url("/get"), fields: fields))
    let sent = try await server.takeRequest().headers.filter { $0.name.hasPrefix("X-") }
    #expect(sent.map(\.name) == fields.map(\.name))
  }
}
