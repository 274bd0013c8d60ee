import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct ContentCodingTests {
  @Test(arguments: ["gzip", "deflate"])
  func aCodedBodyIsDecoded(coding: String) async throws {
    let server = try HTTPTestServer()
    let watcher = Watcher()
    let response = try await Client().get(server.url("/\(coding)"), watcher: watcher)
    #expect(response.text.contains(coding == "gzip" ? "\"gzipped\"" : "\"deflated\""))
    #expect(response.head.block.value(of: "Content-Encoding") == coding)
    #expect(watcher.counts.allSatisfy { $0.expectedToReceive == -1 }, "its length tells nothing")
    #expect(response.metrics.values.decodedBodyBytes == Int64(response.bytes.count))
    #expect(watcher.last?.received == Int64(response.bytes.count))
  }

  /// "hello hello hello hello\n" in the codings that the test server does not make.
  static let prepared: [(String, String)] = [
    ("br", "cAEQaGVsbG8gaGVsbG8gaGVsbG8gaGVsbG8KAw=="), ("zstd", "KLUv/QRYbQAAOGhlbGxvIAoBAJlLEah8Lqg="),
    ("deflate", "y0jNyclXyEAnuQA="), ("gzip", "H4sIAAAAAAACA8tIzcnJV8hAJ7kAAIhZCxgAAAA="),
    ("x-gzip", "H4sIAAAAAAACA8tIzcnJV8hAJ7kAAIhZCxgAAAA="), ("identity", "aGVsbG8gaGVsbG8gaGVsbG8gaGVsbG8K"),
  ]

  @Test(arguments: prepared)
  func aPreparedBodyIsDecodedWhereLibcurlCan(coding: String, base64: String) async throws {
    let known = CurlLibrary.shared.contentCodings
    guard known.contains(coding) || coding == "identity" || (coding == "x-gzip" && known.contains("gzip"))
    else {
      return
    }
    let bytes = Array(try #require(Data(base64Encoded: base64)))
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.data(bytes).with(header: "Content-Encoding", value: coding))
    let response = try await Client().get(server.url("/"))
    #expect(response.text == "hello hello hello hello\n")
  }

  @Test func aBodyInTwoCodingsIsDecodedTwice() async throws {
    guard CurlLibrary.shared.contentCodings.contains("zstd") else { return }
    let bytes = Array(
      try #require(Data(base64Encoded: "KLUv/QRY6QAAH4sIAAAAAAACA8tIzcnJV8hAJ7kAAIhZCxgAAACr4DgR")))
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.data(bytes).with(header: "Content-Encoding", value: "gzip, zstd"))
    #expect(try await Client().get(server.url("/")).text == "hello hello hello hello\n")
  }

  @Test func aCodingThatNobodyKnowsIsAClearFailure() async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("body").with(header: "Content-Encoding", value: "snappy"))
    let failure = try await Client().failure(of: server.url("/"))
    #expect(failure.kind == .cannotDecodeContent)
    #expect(failure.helps(host: "127.0.0.1"))
  }

  @Test func theListOfCodingsIsNotEmpty() {
    #expect(CurlLibrary.shared.isUsable)
    #expect(CurlLibrary.shared.contentCodings.contains("gzip"))
    #expect(CurlLibrary.shared.usesOpenSSL)
  }
}
