import FoundationEssentials
import HTTPEngine
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

/// Chunked bodies on the wire; `ChunkedReaderTests` has the grammar.
@Suite("Chunked bodies on the wire", .timeLimit(.minutes(5))) struct ChunkedBodyTests {
  private static let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"

  /// A sink that is full after every piece, and has room again later.
  private final class HesitantSink: BodySink {
    private struct State {
      var bytes: [UInt8] = []
      var pauses = 0
      var wake: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())
    var bytes: [UInt8] { state.withLock { $0.bytes } }
    var pauses: Int { state.withLock { $0.pauses } }

    func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure? {
      state.withLock { $0.wake = wake }
      return nil
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
      state.withLock { state in
        state.bytes += Array(bytes)
        state.pauses += 1
        Task { [wake = state.wake] in wake?() }
        return .pause
      }
    }

    func finish() -> TransportFailure? { nil }
  }

  @Test(
    "Chunks outside the grammar end the request and its connection",
    arguments: [
      ("5 garbage\r\nhello\r\n0\r\n\r\n", "chunk size"), ("5x\r\nhello\r\n0\r\n\r\n", "chunk size"),
      ("5;\r\nhello\r\n0\r\n\r\n", "extension"), ("5;a\nhello\r\n0\r\n\r\n", "extension"),
      ("5;a=\"\r\nhello\r\n0\r\n\r\n", "extension"), ("5\r\nhello\r\r\n0\r\n\r\n", "line break"),
      ("5\r\nhello\r\n0x0\r\n\r\n", "chunk size"), ("5\r\nhello\r\n0\r\nA : b\r\n\r\n", "white space"),
      ("5\r\nhello\r\n0\r\nA: b\rc\r\n\r\n", "carriage return"),
      ("5\r\nhello\r\n0\r\nA\u{0}: b\r\n\r\n", "field name"),
    ])
  func malformedChunks(body: String, word: String) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.raw(Self.head + "\r\n" + body, closes: false), .text("next"))
    let client = Client()
    let failure = try await client.failure(of: server.url("/"))
    #expect(failure.kind == .badServerResponse, "\(failure.message)")
    #expect(failure.message.contains(word), "\(failure.message)")
    #expect(try await client.get(server.url("/")).text == "next")
    #expect(server.connectionCount == 2)
  }

  @Test("Connection is reused after chunks, extensions and trailers")
  func keptConnection() async throws {
    let server = try HTTPTestServer(routes: .none)
    let body = "5 \r\nhello\r\n1;a=b;c=\"d\"\r\n!\r\n000\r\nDigest: x\r\n folded\r\n\r\n"
    server.enqueue(.raw(Self.head + "\r\n" + body, closes: false), .text("next"))
    let client = Client()
    #expect(try await client.get(server.url("/")).text == "hello!")
    #expect(try await client.get(server.url("/")).text == "next")
    #expect(server.connectionCount == 1)
  }

  @Test("Bytes after the last chunk close the connection")
  func excess() async throws {
    let server = try HTTPTestServer(routes: .none)
    let body = "5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
    server.enqueue(.raw(Self.head + "\r\n" + body, closes: false), .text("next"), .text("third"))
    let client = Client()
    #expect(try await client.get(server.url("/")).text == "hello")
    #expect(try await client.get(server.url("/")).text == "next")
    #expect(try await client.get(server.url("/")).text == "third")
    #expect(server.connectionCount == 2)
  }

  @Test(
    "Full sink pauses in the middle of chunks, with and without a content coding", arguments: [false, true])
  func pauses(isCoded: Bool) async throws {
    let server = try HTTPTestServer(routes: .none)
    let bytes = Content.bytes(1_000_000)
    let sent = isCoded ? Array(try #require(Deflater.compress(Data(bytes), .gzip))) : bytes
    var raw = Array((Self.head + (isCoded ? "Content-Encoding: gzip\r\n\r\n" : "\r\n")).utf8)
    var start = 0
    var random = 7
    while start < sent.count {
      random = (random * 75 + 74) % 65_537
      let end = min(start + 1 + random % 9000, sent.count)
      raw +=
        Array("\(String(end - start, radix: 16));n=\(start)\r\n".utf8) + sent[start..<end] + [0x0D, 0x0A]
      start = end
    }
    server.enqueue(.raw(raw + Array("0\r\n\r\n".utf8), closes: false))
    let sink = HesitantSink()
    let client = Client()
    let url = server.url("/")
    let request = try client.request(url, sink: sink)
    #expect(try await client.send(request).status == 200)
    #expect(sink.pauses > 10)
    let isWhole = sink.bytes == bytes
    #expect(isWhole)
  }

  @Test("Bodies of HEAD and 304 are not read as chunks")
  func noBody() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      .raw(Self.head + "\r\n", closes: false),
      .raw("HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", closes: false), .text("next"))
    let client = Client()
    #expect(try await client.send(client.request(server.url("/"), "HEAD")).status == 200)
    #expect(try await client.get(server.url("/")).status == 304)
    #expect(try await client.get(server.url("/")).text == "next")
  }

  @Test("Chunks that end with the connection are a lost connection")
  func truncated() async throws {
    for body in ["", "5", "5\r\nhel", "5\r\nhello\r\n", "5\r\nhello\r\n0\r\n", "5\r\nhello\r\n0\r\nA: b\r\n"]
    {
      let server = try HTTPTestServer(routes: .none)
      server.enqueue(.raw(Self.head + "\r\n" + body))
      let failure = try await Client().failure(of: server.url("/"))
      #expect(failure.kind == .connectionLost, "\(body): \(failure.message)")
    }
  }
}
