import FoundationEssentials
import HTTPEngine
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct ContentCodingTests {
  @Test("An encoded body is decoded", arguments: ["gzip", "deflate"])
  func decoding(coding: String) async throws {
    let server = try HTTPTestServer()
    let watcher = Watcher()
    let response = try await Client().get(server.url("/\(coding)"), watcher: watcher)
    #expect(response.text.contains(coding == "gzip" ? "\"gzipped\"" : "\"deflated\""))
    #expect(response.head.block.value(of: "Content-Encoding") == coding)
    #expect(
      watcher.counts.allSatisfy { $0.expectedToReceive == -1 },
      "the encoded length says nothing about the body")
    #expect(response.metrics.values.decodedBodyBytes == Int64(response.bytes.count))
    #expect(watcher.last?.received == Int64(response.bytes.count))
  }

  /// "hello hello hello hello\n" in the codings that the test server does not make.
  static let prepared: [(String, String)] = [
    ("br", "cAEQaGVsbG8gaGVsbG8gaGVsbG8gaGVsbG8KAw=="), ("zstd", "KLUv/QRYbQAAOGhlbGxvIAoBAJlLEah8Lqg="),
    ("deflate", "y0jNyclXyEAnuQA="), ("gzip", "H4sIAAAAAAACA8tIzcnJV8hAJ7kAAIhZCxgAAAA="),
    ("x-gzip", "H4sIAAAAAAACA8tIzcnJV8hAJ7kAAIhZCxgAAAA="), ("identity", "aGVsbG8gaGVsbG8gaGVsbG8gaGVsbG8K"),
    ("gzip, zstd", "KLUv/QRY6QAAH4sIAAAAAAACA8tIzcnJV8hAJ7kAAIhZCxgAAACr4DgR"),
  ]

  @Test("A body that other programs encoded is decoded", arguments: prepared)
  func foreignEncoders(coding: String, base64: String) async throws {
    let bytes = Array(try #require(Data(base64Encoded: base64)))
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.data(bytes).with(header: "Content-Encoding", value: coding))
    let response = try await Client().get(server.url("/"))
    #expect(response.text == "hello hello hello hello\n")
    #expect(response.head.block.value(of: "Content-Encoding") == coding)
  }

  /// A server may send any value in that field. Some send a charset or the coding of an upload.
  @Test(
    "A body in an unknown coding is delivered unchanged",
    arguments: ["aws-chunked", "compress", "utf-8", "snappy", "gzip, aws-chunked", "aws-chunked,gzip"])
  func unknownCoding(coding: String) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("as it is").with(header: "Content-Encoding", value: coding))
    let watcher = Watcher()
    let response = try await Client().get(server.url("/"), watcher: watcher)
    #expect(response.text == "as it is")
    #expect(response.head.block.value(of: "Content-Encoding") == coding)
    #expect(watcher.last?.expectedToReceive == 8)
  }

  /// Checks that the body of a redirect that is followed is discarded.
  @Test("Coding and end of a discarded body are ignored") func discardedBody() async throws {
    let server = try HTTPTestServer(.tls(.localhost), routes: .none)
    let coded = Array(try #require(Deflater.compress(Data(Content.bytes(5000)), .gzip)))
    func reply(_ bytes: [UInt8]) -> Reply { .data(bytes).with(header: "Content-Encoding", value: "gzip") }
    server.enqueue(
      reply(Array(coded.prefix(coded.count / 2))), reply(Array("no gzip at all".utf8)),
      .cutAfterBody(bytes: 300).framed(.untilClose), .cutAfterBody(bytes: 300).framed(.contentLength),
      .cutAfterBody(bytes: 300).framed(.chunked))
    let client = Client()
    for _ in 0..<5 {
      let url = server.url("/")
      let sink = ScriptedSink()
      let request = try client.request(url, sink: sink)
      #expect(try await client.send(request, watcher: Watcher(disposition: .discard)).status == 200)
      #expect(sink.heads.isEmpty && sink.bytes.isEmpty)
    }
  }

  @Test("More than five codings are refused") func limit() async throws {
    let server = try HTTPTestServer(routes: .none)
    let list = Array(repeating: "gzip", count: 6).joined(separator: ", ")
    server.enqueue(.text("body").with(header: "Content-Encoding", value: list), .text("next"))
    let client = Client()
    let failure = try await client.failure(of: server.url("/"))
    #expect(failure.kind == .cannotDecodeContent)
    #expect(failure.helps(host: "127.0.0.1"))
    #expect(try await client.get(server.url("/")).text == "next")
  }

  @Test("Decoding can be disabled") func disabled() async throws {
    let server = try HTTPTestServer(routes: .none)
    let bytes = Array(try #require(Data(base64Encoded: "H4sIAAAAAAACA8tIzcnJV8hAJ7kAAIhZCxgAAAA=")))
    let reply = Reply.data(bytes).with(header: "Content-Encoding", value: "gzip")
    server.enqueue(reply, reply)
    let client = Client { $0.decodesContent = false }
    let watcher = Watcher()
    let response = try await client.get(server.url("/"), watcher: watcher)
    #expect(response.bytes == bytes)
    #expect(response.head.block.value(of: "Content-Encoding") == "gzip")
    #expect(watcher.last?.expectedToReceive == Int64(bytes.count))
    // The next request of the handle decodes again.
    let other = try client.request(server.url("/"), profile: Client.profile())
    #expect(try await client.send(other).text == "hello hello hello hello\n")
  }

  @Test("A response without a body is not decoded", arguments: ["gzip", "br", "deflate", "zstd"])
  func noBody(coding: String) async throws {
    let server = try HTTPTestServer(routes: .none)
    let client = Client()
    let field = [HTTPHeader(name: "Content-Encoding", value: coding)]
    server.enqueue(
      Reply(headers: field), Reply(status: 204, headers: field), Reply(status: 304, headers: field),
      Reply(headers: field, body: .bytes([1, 2, 3])), Reply(headers: field).framed(.chunked))
    for (method, status) in [("GET", 200), ("GET", 204), ("GET", 304), ("HEAD", 200), ("GET", 200)] {
      let response = try await client.send(client.request(server.url("/"), method))
      #expect(response.status == status && response.body == nil)
    }
  }

  @Test("Several members of gzip are one body", arguments: [false, true])
  func members(isTLS: Bool) async throws {
    let parts = [Content.bytes(200_000), Content.bytes(300_000), []]
    let coded = try parts.flatMap { Array(try #require(Deflater.compress(Data($0), .gzip))) }
    let server = try HTTPTestServer(isTLS ? .tls(.localhost) : .none, routes: .none)
    server.enqueue(.data(coded).with(header: "Content-Encoding", value: "gzip"))
    #expect(try await Client().get(server.url("/")).bytes == parts[0] + parts[1])
  }

  @Test("A changed bit is a decoding failure") func changedBit() async throws {
    var coded = Array(try #require(Deflater.compress(Data(Content.bytes(100_000)), .gzip)))
    coded[coded.count - 6] ^= 4
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.data(coded).with(header: "Content-Encoding", value: "gzip"), .text("next"))
    let client = Client()
    let failure = try await client.failure(of: server.url("/"))
    #expect(failure.kind == .cannotDecodeContent)
    #expect(failure.message.contains("could not be decoded") && failure.message.contains("gzip"))
    #expect(failure.helps(host: "127.0.0.1"), "\(failure.message)")
    #expect(failure.metrics != nil)
    #expect(try await client.get(server.url("/")).text == "next")
  }

  @Test(
    "A truncated encoded body is a failure", arguments: [Reply.Framing.contentLength, .chunked, .untilClose],
    [1, 8, 500])
  func truncation(framing: Reply.Framing, missing: Int) async throws {
    let coded = Array(try #require(Deflater.compress(Data(Content.bytes(10_000)), .gzip)))
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      .data(coded.dropLast(missing)).with(header: "Content-Encoding", value: "gzip").framed(framing))
    let failure = try await Client().failure(of: server.url("/"))
    #expect(failure.kind == .cannotDecodeContent)
    #expect(failure.message.contains("ended before"))
    #expect(failure.helps(host: "127.0.0.1"), "\(failure.message)")
  }

  /// Checks a partial response. Its range counts encoded bytes, so its end is not the end of the coding.
  @Test("A range of an encoded body can end anywhere") func range() async throws {
    let bytes = Content.bytes(10_000)
    let coded = Array(try #require(Deflater.compress(Data(bytes), .gzip)))
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(
      Reply(
        status: 206,
        headers: [
          HTTPHeader(name: "Content-Encoding", value: "gzip"),
          HTTPHeader(name: "Content-Range", value: "bytes 0-\(coded.count - 9)/\(coded.count)"),
        ], body: .bytes(coded.dropLast(8))))
    #expect(try await Client().get(server.url("/")).bytes == bytes)
  }
}
