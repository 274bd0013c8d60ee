import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct RequestBodyTests {
  static let sizes = [1, 100, 16_383, 16_384, 16_385, 65_536, 65_537, 1 << 20, 5 << 20]

  @Test("A body is sent byte for byte", arguments: sizes)
  func body(size: Int) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("done"))
    let client = Client()
    let bytes = Content.bytes(size)
    let watcher = Watcher()
    let request = try client.request(server.url("/"), "POST", body: .bytes(Data(bytes)))
    let response = try await client.send(request, watcher: watcher)
    #expect(response.text == "done")
    let seen = try await server.takeRequest()
    #expect(seen.body == bytes)
    #expect(!seen.isChunked)
    #expect(seen.headers.map(\.name) == ["Host", "Content-Length"])
    #expect(seen.header("Content-Length") == "\(size)")
    let sent = watcher.counts.map(\.sent)
    #expect(sent.max() == Int64(size))
    #expect(zip(sent, sent.dropFirst()).allSatisfy { $0 <= $1 }, "progress goes forward")
    #expect(watcher.counts.allSatisfy { $0.expectedToSend == Int64(size) })
    #expect(response.metrics.values.requestBodyBytes == Int64(size))
  }

  @Test("A body of several buffers is sent completely") func severalBuffers() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.ok)
    let client = Client()
    let bytes = Content.bytes(200_000)
    let slice = Data(bytes)[1000..<150_000]
    _ = try await client.send(client.request(server.url("/"), "PUT", body: .bytes(slice)))
    #expect(try await server.takeRequest().body == Array(bytes[1000..<150_000]))
  }

  @Test("Zero bytes do not end a body") func zeroBytes() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.ok)
    let client = Client()
    let bytes: [UInt8] = [0, 1, 0, 0, 2, 0]
    _ = try await client.send(client.request(server.url("/"), "POST", body: .bytes(Data(bytes))))
    #expect(try await server.takeRequest().body == bytes)
  }

  @Test("A body is sent again when a reused connection was closed", arguments: [4, 100_000])
  func repeatedBody(size: Int) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.ok, .text("again"))
    let client = Client()
    _ = try await client.get(server.url("/"))
    server.closeIdleConnections()
    let bytes = Content.bytes(size)
    let response = try await client.send(client.request(server.url("/"), "POST", body: .bytes(Data(bytes))))
    #expect(response.text == "again")
    #expect(server.recordedRequests.last?.body == bytes)
    #expect(server.requestCount == 2)
    #expect(server.connectionCount == 2)
  }

  @Test("A response can arrive before the whole body is sent", arguments: [false, true])
  func earlyResponse(isTLS: Bool) async throws {
    let server = try HTTPTestServer(isTLS ? .tls(.localhost) : .none, routes: .none)
    server.enqueue(.earlyReply(200, then: .afterReply), .earlyReply(413), .text("next"))
    let client = Client()
    let body = RequestBody.bytes(Data(Content.bytes(5 << 20)))
    let first = try await client.send(client.request(server.url("/"), "POST", body: body))
    #expect(first.status == 200)
    let second = try await client.send(client.request(server.url("/"), "POST", body: body))
    #expect(second.status == 413)
    #expect(try await client.get(server.url("/")).text == "next")
  }
}
