import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct BrokenResponseTests {
  struct Fault: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let reply: Reply
    let kinds: [TransportFailure.FailureKind]

    init(_ name: String, _ reply: Reply, _ kinds: TransportFailure.FailureKind...) {
      testDescription = name
      self.reply = reply
      self.kinds = kinds
    }
  }

  static let faults: [Fault] = [
    Fault("reset before the reply", .reset, .connectionLost),
    Fault("close before the reply", .closeBeforeReply, .connectionLost),
    Fault("reset in the body", .resetAfterBody(bytes: 500), .connectionLost),
    Fault("close in the body", .closeAfterBody(bytes: 500), .connectionLost),
    Fault("close before the body", .closeAfterBody(bytes: 0), .connectionLost),
    Fault("cut in the body", .cutAfterBody(bytes: 500), .connectionLost),
    Fault("length too large", .wrongLength(claimed: 200), .connectionLost),
    Fault("garbage", .garbage, .badServerResponse),
    Fault("bad status line", .garbageHead(.statusLine), .badServerResponse),
    Fault("length is not a number", .garbageHead(.lengthIsNoNumber), .badServerResponse),
    Fault("negative length", .garbageHead(.negativeLength), .badServerResponse),
    Fault("head ends early", .garbageHead(.endsEarly), .connectionLost),
    Fault("bad chunk", .badChunk, .badServerResponse, .connectionLost),
    Fault("truncated chunks", .truncatedChunked, .connectionLost),
    Fault("bad gzip", .badGzip, .cannotDecodeContent),
    Fault("truncated gzip", .truncatedGzip, .cannotDecodeContent),
    Fault(
      "zero in the head", .raw("HTTP/1.1 200 OK\r\nA: \u{0}b\r\nContent-Length: 0\r\n\r\n"),
      .badServerResponse),
    Fault(
      "version from the future", .raw("HTTP/7.3 200 OK\r\nContent-Length: 0\r\n\r\n"), .badServerResponse),
    Fault("status with two digits", .raw("HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n"), .badServerResponse),
    Fault("nothing but an empty line", .raw("\r\n\r\n"), .badServerResponse, .connectionLost),
    Fault("HTTP/0.9", .raw("<html>hello</html>"), .badServerResponse),
    Fault("a single byte", .raw("H"), .badServerResponse, .connectionLost),
    Fault("only informational", .raw("HTTP/1.1 100 Continue\r\n\r\n"), .connectionLost, .badServerResponse),
  ]

  @Test("Each fault has its kind and a message", arguments: faults)
  func kinds(fault: Fault) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(fault.reply, .text("next"))
    let client = Client()
    let watcher = Watcher()
    let request = try client.request(server.url("/"), idleTimeout: .seconds(10))
    let failure = try await client.failure(of: request, watcher: watcher)
    #expect(fault.kinds.contains(failure.kind), "\(failure.kind): \(failure.message)")
    #expect(failure.helps(host: "127.0.0.1"), "\(failure.message)")
    #expect(failure.metrics != nil)
    #expect(watcher.endedCount == 1 && watcher.callsAfterEnd == 0)
    #expect(try await client.get(server.url("/")).text == "next")
  }

  @Test(
    "Each fault over TLS has its kind and a message",
    arguments: [
      Fault("close in the body", .closeAfterBody(bytes: 500), .connectionLost),
      Fault("cut in the body", .cutAfterBody(bytes: 500), .connectionLost),
      Fault("reset in the body", .resetAfterBody(bytes: 500), .connectionLost),
      Fault("truncated chunks", .truncatedChunked, .connectionLost),
      Fault("close before the reply", .closeBeforeReply, .connectionLost),
      Fault("reset before the reply", .reset, .connectionLost),
    ])
  func kindsOverTLS(fault: Fault) async throws {
    let server = try HTTPTestServer(.tls(.localhost), routes: .none)
    server.enqueue(fault.reply, .text("next"))
    let client = Client()
    let failure = try await client.failure(of: server.url("/"))
    #expect(fault.kinds.contains(failure.kind), "\(failure.kind): \(failure.message)")
    #expect(failure.helps(host: "localhost"), "\(failure.message)")
    #expect(try await client.get(server.url("/")).text == "next")
  }

  @Test("A length that is too small ends the body") func smallLength() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.wrongLength(claimed: 40), .text("next"))
    let client = Client()
    #expect(try await client.get(server.url("/")).bytes == Reply.patternBytes(40))
    // The excess bytes must not be mistaken for the response to the next request.
    #expect(try await client.get(server.url("/")).text == "next")
  }

  /// Excess bytes can arrive in one piece with the body, after a head that was read, or after the end of the response.
  @Test("Excess bytes are not the next response", arguments: [false, true], 0..<3)
  func excessBytes(isTLS: Bool, arrival: Int) async throws {
    let server = try HTTPTestServer(isTLS ? .tls(.localhost) : .none, routes: .none)
    let before = Gate()
    let behind = Gate()
    let next = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
    let parts: [Reply.Part] =
      switch arrival {
      case 0: [.bytes(Array("0123\(next)".utf8))]
      case 1: [.gate(before), .bytes(Array("0123\(next)".utf8))]
      default: ["0123", .gate(before), .bytes(Array(next.utf8))]
      }
    server.enqueue(
      Reply(body: .parts(parts + [.gate(behind)])).with(header: "Content-Length", value: "4"), .text("next"))
    let client = Client()
    let watcher = Watcher()
    async let first = client.get(server.url("/"), watcher: watcher)
    if arrival == 1 { await watcher.headCame.wait() }
    if arrival < 2 { before.open() }
    #expect(try await first.text == "0123")
    before.open()
    await behind.waitForArrival()
    #expect(try await client.get(server.url("/")).text == "next")
    behind.open()
  }

  @Test("Contradicting lengths do not truncate the body silently") func contradictingLengths() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.garbageHead(.contradictingLengths), .text("next"))
    let client = Client()
    do throws(TransportFailure) {
      let response = try await client.transport.send(
        client.plainRequest(server.url("/")), observer: Watcher())
      #expect(response.bytes == Reply.patternBytes(response.bytes.count))
    } catch {
      #expect([.badServerResponse, .connectionLost].contains(error.kind))
    }
    #expect(try await client.get(server.url("/")).text == "next")
  }

  @Test("A line without a colon is not a field") func missingColon() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.garbageHead(.fieldWithoutColon))
    let client = Client()
    do throws(TransportFailure) {
      let response = try await client.transport.send(
        client.plainRequest(server.url("/")), observer: Watcher())
      #expect(response.head.block.fields.allSatisfy { !$0.name.contains(" ") })
    } catch {
      #expect(error.kind == .badServerResponse)
    }
  }

  @Test("A reused connection that fails at the next request is replaced once") func replacedConnection()
    async throws
  {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("1"), .closeBeforeReply, .text("2"))
    let client = Client()
    _ = try await client.get(server.url("/"))
    #expect(try await client.get(server.url("/")).text == "2")
    #expect(server.connectionCount == 2)
  }
}

extension Client {
  func plainRequest(_ url: String) -> WireRequest {
    WireRequest(
      url: url, origin: Origin(url: url) ?? Origin(scheme: "http", host: "", port: 0), profile: profile
    ) { $0.idleTimeout = .seconds(10) }
  }
}
