@testable import HTTPTestServer
import Testing

/// The strictness of ``UploadEndpoint``, which a client that breaks the rules meets.
@Suite(.timeLimit(.minutes(5)))
struct UploadTests {
  /// A server with one endpoint, and a connection to it.
  private struct Peer {
    let uploads: UploadEndpoint
    let server: HTTPTestServer
    let client: RawClient

    init(_ dialect: UploadEndpoint.Dialect, _ options: UploadEndpoint.Options = .init()) throws {
      uploads = UploadEndpoint(dialect, options)
      server = try HTTPTestServer(routes: Routes.none.adding(uploads, at: "/files"))
      client = try RawClient(server)
    }

    private var fields: [String] {
      uploads.dialect == .tus ? ["Tus-Resumable: 1.0.0"] : ["Upload-Draft-Interop-Version: 6"]
    }

    /// Sends a request with a content, and returns the status of its final response.
    ///
    /// - Parameter length: The value of `Content-Length`; `nil` for chunks.
    func send(
      _ method: String, _ path: String, _ own: [String], _ content: String = "", length: String?
    ) throws -> Int {
      let framing = length.map { "Content-Length: \($0)" } ?? "Transfer-Encoding: chunked"
      try client.ask(method, path, fields + own + [framing])
      let size = String(content.utf8.count, radix: 16)
      try client.write(length == nil ? "\(size)\r\n\(content)\r\n0\r\n\r\n" : content)
      while true {
        let status = try client.readResponse().status
        if status >= 200 { return status }
      }
    }

    /// Sends a content after the bytes that the first upload has.
    func append(_ content: String, at offset: Int, _ own: [String] = [], length: String?) throws -> Int {
      let type = uploads.dialect == .tus ? "offset+octet-stream" : "partial-upload"
      return try send(
        "PATCH", "/files/0", ["Upload-Offset: \(offset)", "Content-Type: application/\(type)"] + own, content,
        length: length)
    }
  }

  @Test(
    "A length that would overflow the offset is refused", arguments: [UploadEndpoint.Dialect.tus, .draft])
  func hugeLength(_ dialect: UploadEndpoint.Dialect) throws {
    let peer = try Peer(dialect)
    let isEnd = dialect == .tus ? [] : ["Upload-Complete: ?0"]
    #expect(try peer.send("POST", "/files", ["Upload-Length: 5"] + isEnd, "a", length: "1") == 201)
    let status = try peer.append("", at: 1, isEnd, length: "\(Int.max)")
    #expect(status == (dialect == .tus ? 413 : 400))
    #expect(peer.uploads.uploads.map(\.content) == [[0x61]])
  }

  @Test("Content beyond the length of a tus upload is refused, and not kept", arguments: [true, false])
  func excess(isChunked: Bool) throws {
    let peer = try Peer(.tus)
    #expect(try peer.send("POST", "/files", ["Upload-Length: 5"], length: "0") == 201)
    #expect(try peer.append("0123456789", at: 0, length: isChunked ? nil : "10") == 413)
    #expect(peer.uploads.uploads.map(\.content) == [[]])
    #expect(peer.uploads.receivedByteCount == 0)
    #expect(peer.uploads.processedCount == 0)
  }

  @Test("A chunked content that is exactly the rest completes a tus upload") func chunkedRest() throws {
    let peer = try Peer(.tus)
    #expect(try peer.send("POST", "/files", ["Upload-Length: 5"], "ab", length: "2") == 201)
    #expect(try peer.append("cde", at: 2, length: nil) == 204)
    #expect(peer.uploads.uploads.map(\.isComplete) == [true])
  }

  @Test("A draft upload that ends with another length than announced is refused", arguments: ["2", nil])
  func inconsistentEnd(length: String?) throws {
    let peer = try Peer(.draft)
    let status = try peer.send(
      "POST", "/files", ["Upload-Length: 4", "Upload-Complete: ?1"], "ab", length: length)
    #expect(status == 400)
    #expect(peer.uploads.processedCount == 0)
    let other = try Peer(.draft)
    #expect(
      try other.send("POST", "/files", ["Upload-Length: 4", "Upload-Complete: ?0"], "ab", length: length)
        == 201)
    #expect(try other.append("c", at: 2, ["Upload-Complete: ?1"], length: length.map { _ in "1" }) == 400)
    #expect(other.uploads.uploads.map(\.isComplete) == [false])
  }

  @Test("The limits of an endpoint apply to content in chunks too") func limits() throws {
    var options = UploadEndpoint.Options()
    options.maximumAppendSize = 3
    let small = try Peer(.draft, options)
    #expect(try small.send("POST", "/files", ["Upload-Complete: ?0"], "abc", length: nil) == 201)
    #expect(try small.append("defg", at: 3, ["Upload-Complete: ?1"], length: nil) == 413)
    options.maximumAppendSize = nil
    options.maximumSize = 5
    let limited = try Peer(.draft, options)
    #expect(try limited.send("POST", "/files", ["Upload-Complete: ?0"], "abc", length: nil) == 201)
    #expect(try limited.append("def", at: 3, ["Upload-Complete: ?1"], length: nil) == 413)
    #expect(limited.uploads.uploads.map(\.content) == [Array("abc".utf8)])
    // An ordinary request has no length of its own.
    #expect(try Peer(.draft, options).send("POST", "/files", [], "abcdef", length: nil) == 413)
  }

  @Test("A recorded request says whether its content came in chunks, and has the trailers") func record()
    throws
  {
    let peer = try Peer(.tus)
    #expect(try peer.send("POST", "/files", ["Upload-Length: 5"], "ab", length: "2") == 201)
    let fields = [
      "Tus-Resumable: 1.0.0", "Upload-Offset: 2", "Content-Type: application/offset+octet-stream",
    ]
    try peer.client.ask("PATCH", "/files/0", fields + ["Transfer-Encoding: chunked"])
    try peer.client.write("3\r\ncde\r\n0\r\nSum: 3\r\n\r\n")
    #expect(try peer.client.readResponse().status == 204)
    let requests = peer.server.recordedRequests
    #expect(requests.map(\.isChunked) == [false, true])
    #expect(requests.map { $0.trailers.map(\.description) } == [[], ["Sum: 3"]])
    #expect(requests.map(\.bodyLength) == [2, 3])
  }

  @Test("Only the last of several concurrent requests has an upload") func turns() async throws {
    let uploads = UploadEndpoint(.tus)
    let route = UploadRoute(endpoint: uploads, path: "/files", index: 0)
    let head = { (method: String, own: [(String, String)]) in
      let fields = own.map { HTTPHeader(name: $0.0, value: $0.1) }
      return RequestHead(
        method: method, target: "/files", minorVersion: 1,
        headers: [HTTPHeader(name: "Tus-Resumable", value: "1.0.0")] + fields)
    }
    let create = head("POST", [("Upload-Length", "5")])
    #expect(uploads.begin(create, UploadRoute(endpoint: uploads, path: "/files")).refusal == nil)
    let append = head(
      "PATCH", [("Upload-Offset", "0"), ("Content-Type", "application/offset+octet-stream")])
    let turns = await withTaskGroup(of: [Int].self) { group in
      for _ in 0..<4 {
        group.addTask { (0..<2000).compactMap { _ in uploads.begin(append, route).target?.turn } }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
    #expect(Set(turns).count == 8000)
  }

  @Test("A fault of content applies to content in chunks, too", arguments: [true, false])
  func chunkedFault(isCut: Bool) throws {
    let peer = try Peer(.tus)
    #expect(try peer.send("POST", "/files", ["Upload-Length: 5"], length: "0") == 201)
    peer.uploads.enqueue(isCut ? .cut(afterBytes: 2) : .statusAfterContent(503))
    if isCut {
      #expect(throws: RawClient.Failure.self) { try peer.append("abcde", at: 0, length: nil) }
      #expect(peer.uploads.uploads.map(\.content) == [Array("ab".utf8)])
    } else {
      #expect(try peer.append("abcde", at: 0, length: nil) == 503)
    }
    #expect(peer.uploads.pendingFaultCount == 0)
  }
}
