import Foundation
import HTTPWire
import Testing

@Suite("Messages of the WebSocket handshake") struct UpgradeTests {
  private static func request(_ url: String, _ fields: [HTTPHeader] = []) throws -> WireRequest {
    let origin = try #require(Origin(url: url))
    return WireRequest(url: url, origin: origin, profile: ConnectionProfile()) { $0.fields = fields }
  }

  private static func head(_ url: String, _ fields: [HTTPHeader] = []) throws -> [String] {
    let handshake = try WebSocketClientHandshake(nonce: (1, 2), subprotocols: ["chat"])
    let data = try request(url, fields).upgradeHead(handshake)
    return String(decoding: data, as: UTF8.self).components(separatedBy: "\r\n")
  }

  @Test(
    "Target and Host come from the URL",
    arguments: [
      ("http://example.com/a?b#c", "/a?b", "example.com"), ("https://example.com?x", "/?x", "example.com"),
      ("http://example.com:8080", "/", "example.com:8080"), ("https://[::1]:443/%7e", "/%7e", "[::1]"),
      ("http://[fe80::1%25eth0]:8080/", "/", "[fe80::1]:8080"),
    ])
  func target(url: String, target: String, host: String) throws {
    let lines = try Self.head(url)
    #expect(lines[0] == "GET \(target) HTTP/1.1")
    #expect(lines[1] == "Host: \(host)")
    #expect(lines.suffix(2) == ["", ""])
  }

  @Test("Fields of the handshake replace the caller's")
  func ownedFields() throws {
    let fields = [
      "Host", "connection", "Upgrade", "Sec-WebSocket-Key", "Sec-WebSocket-Protocol", "Accept-Encoding",
      "Content-Length", "Cookie",
    ].map { HTTPHeader(name: $0, value: "caller") }
    let lines = try Self.head("http://example.com/", fields)
    #expect(lines.filter { $0.hasSuffix(": caller") } == ["Host: caller", "Cookie: caller"])
    #expect(lines.filter { $0.lowercased().hasPrefix("connection:") } == ["Connection: Upgrade"])
    #expect(lines.contains("Sec-WebSocket-Protocol: chat"))
  }

  @Test("Subprotocols of a field are read in their order")
  func namedSubprotocols() throws {
    let field = HTTPHeader(name: "sec-websocket-protocol", value: "v1 ,, \tv2")
    #expect(try Self.request("http://example.com/", [field]).namedSubprotocols == ["v1", "v2"])
  }

  // MARK: Responses

  /// Returns the head, the body and the rest of a response that comes in chunks; `nil` without a complete head.
  private static func read(
    _ text: String, chunk: Int, limit: Int = 1000, largestBody: Int64? = nil
  ) -> (status: Int, body: String, rest: String, isComplete: Bool)? {
    var reader = UpgradeResponseReader(
      headerSizeLimit: limit, bodySizeLimit: 50, largestBody: largestBody)
    var status: Int?
    let bytes = Array(text.utf8)
    var start = 0
    while start < bytes.count {
      let end = min(start + chunk, bytes.count)
      var position = 0
      let isOver = bytes[start..<end].withUnsafeBytes { part -> Bool in
        while true {
          switch reader.read(part, from: &position) {
          case .head(let head):
            status = head.status
            if head.status == 101 { return true }
          case .needsMore: return false
          case .end: return true
          case .refuseHead, .refuseBody, .refuse:
            status = nil
            return true
          }
        }
      }
      guard !isOver else {
        let rest = String(decoding: bytes[(start + position)...], as: UTF8.self)
        return status.map { ($0, String(decoding: reader.body, as: UTF8.self), rest, true) }
      }
      start = end
    }
    return status.map { ($0, String(decoding: reader.body, as: UTF8.self), "", reader.mayEnd) }
  }

  @Test("A response is read in chunks of any size", arguments: [1, 2, 7, 1000])
  func chunks(size: Int) throws {
    let upgrade =
      "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 101 Switching Protocols\r\nA: b\r\n\r\nframes"
    let first = try #require(Self.read(upgrade, chunk: size))
    #expect(first.status == 101 && first.rest == "frames")
    let plain = try #require(Self.read("HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\ngonerest", chunk: size))
    #expect(plain.status == 404 && plain.body == "gone" && plain.isComplete)
    let coded = try #require(
      Self.read(
        "HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n", chunk: size))
    #expect(coded.body == "abcd" && coded.isComplete)
    let open = try #require(Self.read("HTTP/1.1 200 OK\r\n\r\nall of it", chunk: size))
    #expect(open.body == "all of it" && open.isComplete)
    let empty = try #require(Self.read("HTTP/1.1 204 No Content\r\n\r\n", chunk: size))
    #expect(empty.isComplete && empty.body.isEmpty)
  }

  @Test("A body ends at the limit of its size")
  func bodyLimit() throws {
    let text = "HTTP/1.1 200 OK\r\n\r\n" + String(repeating: "x", count: 100)
    #expect(try #require(Self.read(text, chunk: 10)).body.count == 50)
  }

  @Test("A body beyond the caller's limit is refused, and one of that size is read", arguments: [1, 7, 1000])
  func largestBody(size: Int) {
    for (count, isRefused) in [(0, false), (40, false), (41, true), (49, true)] {
      let body = String(repeating: "x", count: count)
      let chunk = count == 0 ? "" : "\(String(count, radix: 16))\r\n\(body)\r\n"
      for rest in [
        "\r\n\(body)", "Content-Length: \(count)\r\n\r\n\(body)",
        "Transfer-Encoding: chunked\r\n\r\n\(chunk)0\r\n\r\n",
      ] {
        let read = Self.read("HTTP/1.1 403 Forbidden\r\n" + rest, chunk: size, largestBody: 40)
        #expect(read?.body == (isRefused ? nil : body), "\(count) bytes, \(rest)")
      }
    }
  }

  @Test("A limit beyond the part that is kept does not change the part")
  func cutBody() throws {
    let text = "HTTP/1.1 200 OK\r\n\r\n" + String(repeating: "x", count: 100)
    #expect(try #require(Self.read(text, chunk: 10, largestBody: 200)).body.count == 50)
  }

  @Test("An incomplete body is not mistaken for a complete one")
  func incompleteBody() throws {
    let short = try #require(Self.read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", chunk: 1000))
    #expect(!short.isComplete)
    let coded = try #require(
      Self.read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", chunk: 1000))
    #expect(!coded.isComplete)
  }

  @Test(
    "Heads that violate the rules are refused",
    arguments: [
      "SSH-2.0-x\r\n\r\n", "HTTP/2 101\r\n\r\n", "HTTP/1.1 101 X\r\nA : b\r\n\r\n",
      "HTTP/1.1 101 X\r\nA: " + String(repeating: "x", count: 1000) + "\r\n\r\n",
      String(repeating: "x", count: 1001),
    ])
  func refusedHeads(text: String) {
    #expect(Self.read(text, chunk: 100) == nil)
  }
}
