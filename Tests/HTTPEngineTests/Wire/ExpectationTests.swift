import FoundationEssentials
import HTTPTestServer
import HTTPSystem
import HTTPWire
import Synchronization
import Testing

/// Requests with `Expect: 100-continue` (RFC 9110 §10.1.1), and responses that come before a body was sent.
@Suite("Bodies that wait for the server", .timeLimit(.minutes(5))) struct ExpectationTests {
  private static let expectation = [HTTPHeader(name: "Expect", value: "100-continue")]
  private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

  private func upload(
    to server: StreamTestServer, by client: Client = Client(), _ fields: [HTTPHeader] = expectation,
    body: RequestBody = .bytes(Data("0123456789".utf8))
  ) throws -> WireRequest {
    try client.request("http://127.0.0.1:\(server.port)/", "POST", fields: fields, body: body)
  }

  @Test(
    "A body is sent after 100, and other informational responses before it do not matter",
    arguments: ["", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"])
  func continues(before: String) async throws {
    let bodies = Received()
    let server = try StreamTestServer { connection in
      _ = try connection.readHead()
      try connection.write(before + "HTTP/1.1 100 Continue\r\n\r\n")
      bodies.add(try connection.readExactly(10))
      try connection.write(Self.ok)
      connection.waitForEnd()
    }
    let client = Client()
    #expect(try await client.send(upload(to: server, by: client)).text == "ok")
    #expect(bodies.values == [Array("0123456789".utf8)])
  }

  @Test("A body is sent to a server that never sends 100") func silentServer() async throws {
    let server = try StreamTestServer { connection in
      _ = try connection.readHead()
      _ = try connection.readExactly(10)
      try connection.write(Self.ok)
      connection.waitForEnd()
    }
    let client = Client()
    #expect(try await client.send(upload(to: server, by: client)).text == "ok")
    #expect(server.connectionCount == 1)
  }

  @Test(
    "A final response before 100 ends the request, and its body is never sent", arguments: [401, 413])
  func finalResponse(status: Int) async throws {
    let bodies = Received()
    let server = try StreamTestServer { connection in
      _ = try connection.readHead()
      try connection.write("HTTP/1.1 \(status) Status\r\nContent-Length: 2\r\n\r\nno")
      bodies.add(try connection.readToEnd())
    }
    let client = Client()
    let response = try await client.send(upload(to: server, by: client))
    #expect(response.status == status)
    #expect(response.text == "no")
    #expect(await ProcessFacts.eventually { !bodies.values.isEmpty }, "the connection was not closed")
    #expect(bodies.values == [[]], "the connection carried bytes after the head of the request")
  }

  @Test(
    "If its expectation fails, a request is sent once more without it", arguments: [false, true])
  func failedExpectation(isForEver: Bool) async throws {
    let heads = Received()
    let server = try StreamTestServer { connection in
      while true {
        let head = try connection.readHead()
        heads.add(head)
        let expects = String(decoding: head, as: UTF8.self).contains("Expect")
        if !expects { _ = try connection.readExactly(10) }
        try connection.write(
          expects || isForEver
            ? "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\nno" : Self.ok)
      }
    }
    let client = Client()
    let response = try await client.send(upload(to: server, by: client))
    #expect(response.status == (isForEver ? 417 : 200))
    #expect(heads.texts.map { $0.contains("Expect") } == [true, false])
  }

  @Test("The response 417 to content that can be read once is delivered") func lateRefusal() async throws {
    let server = try StreamTestServer { connection in
      _ = try connection.readHead()
      // It waits until the client sends content although no response has let it continue.
      _ = try connection.readExactly(1)
      try connection.write("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\nno")
      connection.waitForEnd()
    }
    let client = Client()
    let body = RequestBody.source(ScriptedSource(.bytes([1, 2, 3]), .wait, isRepeatable: false))
    let response = try await client.send(upload(to: server, by: client, body: body))
    #expect(response.status == 417 && response.text == "no")
    #expect(server.connectionCount == 1)
  }

  @Test("An early response below 400 does not stop the upload") func earlySuccess() async throws {
    let length = 4 << 20
    let whole = Received()
    let server = try StreamTestServer { connection in
      _ = try connection.readHead()
      try connection.write(Self.ok)
      var rest = length
      while rest > 0 {
        let bytes = try connection.read(atMost: rest)
        if bytes.isEmpty { break }
        rest -= bytes.count
      }
      if rest == 0 { whole.add([]) }
      connection.waitForEnd()
    }
    let client = Client()
    let body = RequestBody.bytes(Data(Content.bytes(length)))
    let response = try await client.send(upload(to: server, by: client, [], body: body))
    #expect(response.text == "ok")
    let isWhole = await ProcessFacts.eventually { whole.values.count == 1 }
    #expect(isWhole, "the server did not receive the whole body")
  }

  @Test("An upload that times out after an early response ends at that time") func timeoutAfterEarlySuccess()
    async throws
  {
    let server = try StreamTestServer { connection in
      _ = try connection.readHead()
      _ = try connection.readExactly(1)
      try connection.write(Self.ok)
      connection.waitForEnd()
    }
    let client = Client()
    let source = ScriptedSource(.bytes([1, 2, 3]), .wait, isRepeatable: false)
    let request = try upload(to: server, by: client, [], body: .source(source)).changing {
      $0.deadline = .now + .milliseconds(300)
    }
    let failure = try await client.failure(of: request)
    let values = try #require(failure.metrics?.values)
    #expect(failure.kind == .timedOut && values.responseStart > 0)
    #expect(values.end > values.responseStart)
  }

  @Test(
    "An early response from 400 on stops the upload and closes the connection", arguments: [400, 413, 503])
  func earlyError(status: Int) async throws {
    let length = 64 << 20
    let received = Received()
    let server = try StreamTestServer { connection in
      _ = try connection.readHead()
      _ = try connection.readExactly(1)
      try connection.write("HTTP/1.1 \(status) Status\r\nContent-Length: 2\r\n\r\nno")
      var count = 1
      while case let bytes = try connection.read(), !bytes.isEmpty { count += bytes.count }
      received.add([count < length ? 1 : 0])
    }
    let client = Client()
    let body = RequestBody.source(PatternSource(length: Int64(length)))
    let response = try await client.send(upload(to: server, by: client, [], body: body))
    #expect(response.status == status)
    #expect(response.text == "no")
    #expect(response.metrics.values.requestEnd == -1, "the last byte of the request was not sent")
    _ = await ProcessFacts.eventually { server.openConnectionCount == 0 }
    #expect(server.openConnectionCount == 0, "the connection was not closed")
    #expect(!received.values.contains([0]), "the whole body was sent in spite of the response")
  }
}

/// The bytes that scripts of servers have received, in their order.
final class Received: Sendable {
  private let state = Mutex<[[UInt8]]>([])

  var values: [[UInt8]] { state.withLock { $0 } }
  var texts: [String] { values.map { String(decoding: $0, as: UTF8.self) } }

  func add(_ bytes: [UInt8]) { state.withLock { $0.append(bytes) } }
}

extension StreamTestConnection {
  /// Reads the head of a request, byte for byte, with its empty line.
  func readHead() throws -> [UInt8] {
    var head: [UInt8] = []
    while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) { head += try readExactly(1) }
    return head
  }
}
