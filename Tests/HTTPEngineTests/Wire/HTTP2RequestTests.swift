import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

/// The fields of requests over HTTP/2 (RFC 9113 §8.2, §8.3).
@Suite("Fields of requests over HTTP/2", .timeLimit(.minutes(5)))
struct HTTP2RequestTests {
  /// Sends a request to a server that speaks HTTP/2, and returns the fields that the server received.
  private func receivedFields(
    _ method: String = "GET", _ sent: [HTTPHeader] = [], path: String = "/", body: RequestBody = .none
  ) async throws -> (fields: [HTTPHeader], port: Int) {
    let blocks = Mutex<[[HTTPHeader]]>([])
    let server = try HTTP2Server.start { http2, connection in
      var decoder = HeaderDecoder()
      while true {
        let frame = try http2.next()
        if frame.kind == .headers {
          let fields = try decoder.fields(of: frame)
          blocks.withLock { $0.append(fields) }
        }
        if frame.endsStream { try http2.respond(200, on: frame.stream) }
      }
    }
    let client = Client()
    let url = "https://localhost:\(server.port)\(path)"
    // The second request refers to fields that the first one has put into the table.
    for _ in 0..<2 {
      #expect(try await client.send(client.request(url, method, fields: sent, body: body)).status == 200)
    }
    let received = blocks.withLock { $0 }
    try #require(received.count == 2)
    #expect(received[0] == received[1])
    return (received[0], server.port)
  }

  @Test("The pseudo-fields come first, and Host is none of the fields") func pseudoFields() async throws {
    let (fields, port) = try await receivedFields(path: "/a/%7E?x=1")
    let pseudo = fields.prefix { $0.name.hasPrefix(":") }
    #expect(Set(pseudo.map(\.name)) == [":method", ":scheme", ":authority", ":path"])
    #expect(pseudo.count == 4)
    #expect(!fields.dropFirst(4).contains { $0.name.hasPrefix(":") || $0.name == "host" }, "\(fields)")
    let values = Dictionary(uniqueKeysWithValues: pseudo.map { ($0.name, $0.value) })
    #expect(values[":method"] == "GET" && values[":scheme"] == "https" && values[":path"] == "/a/%7E?x=1")
    #expect(values[":authority"] == "localhost:\(port)")
  }

  @Test("The authority is the given Host") func givenHost() async throws {
    let (fields, _) = try await receivedFields("GET", [HTTPHeader(name: "Host", value: "other.example:81")])
    #expect(fields.filter { $0.name == ":authority" }.map(\.value) == ["other.example:81"])
    #expect(!fields.contains { $0.name == "host" })
  }

  @Test("Names are in lower case, and values, repeats and the order stay") func names() async throws {
    let sent = [("X-Upper", "A b"), ("x-lower", "1"), ("X-UPPER", "C"), ("X-Empty", "")]
    let (fields, _) = try await receivedFields("GET", sent.map { HTTPHeader(name: $0.0, value: $0.1) })
    let received = fields.filter { $0.name.hasPrefix("x-") }
    #expect(received.map(\.name) == ["x-upper", "x-lower", "x-upper", "x-empty"])
    #expect(received.map(\.value) == ["A b", "1", "C", ""])
    #expect(fields.allSatisfy { $0.name == $0.name.lowercased() }, "\(fields)")
  }

  @Test("Fields about the connection are left out") func connectionFields() async throws {
    let sent = [
      ("Connection", "keep-alive"), ("Keep-Alive", "timeout=5"), ("Proxy-Connection", "keep-alive"),
      ("X-Kept", "1"),
    ]
    let (fields, _) = try await receivedFields("GET", sent.map { HTTPHeader(name: $0.0, value: $0.1) })
    #expect(fields.filter { !$0.name.hasPrefix(":") }.map(\.name) == ["x-kept"])
  }

  @Test(
    "TE is sent if it names trailers, and then names only them",
    arguments: [("trailers", ["trailers"]), ("gzip, trailers", ["trailers"]), ("gzip", [])])
  func acceptedTrailers(value: String, expected: [String]) async throws {
    let (fields, _) = try await receivedFields("GET", [HTTPHeader(name: "TE", value: value)])
    #expect(fields.filter { $0.name == "te" }.map(\.value) == expected)
  }

  @Test("The length of a body is announced once", arguments: [0, 10])
  func contentLength(length: Int) async throws {
    let (fields, _) = try await receivedFields("POST", body: .bytes(Data(repeating: 0x61, count: length)))
    #expect(fields.filter { $0.name == "content-length" }.map(\.value) == ["\(length)"])
    #expect(!fields.contains { $0.name == "transfer-encoding" || $0.name == "expect" }, "\(fields)")
  }
}
