import Alamofire
import Testing

/// Bodies of all sizes in both directions.
@Suite(.needsNginx, .timeLimit(.minutes(5))) struct BodyTests {
  /// Returns bytes in which a missing, repeated or misplaced chunk is detected.
  private static func bytes(_ count: Int) -> Data {
    var state: UInt64 = 0x9E37_79B9_7F4A_7C15
    var data = Data(capacity: count + 8)
    while data.count < count {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      withUnsafeBytes(of: state) { data.append(contentsOf: $0) }
    }
    return data.prefix(count)
  }

  private static let large = bytes(20_000_000)
  private static let medium = bytes(1_000_000)

  @Test("A large response is complete", arguments: NginxServer.Entrance.allCases)
  func largeResponse(entrance: NginxServer.Entrance) async throws {
    let server = try await NginxServer.shared
    let session = server.makeSession()
    defer { withExtendedLifetime(session) {} }
    let name = "large-\(entrance)"
    try server.serve(Self.large, as: name)
    let response = await session.request(server.url(entrance, "/files/\(name)")).validate()
      .serializingData().response
    #expect(response.value == Self.large, "\(response.value?.count ?? -1) bytes, \(response.failure)")
    #expect(response.transaction?.countOfResponseBodyBytesReceived == 20_000_000)
  }

  @Test("Concurrent large responses are complete", arguments: [NginxServer.Entrance.https1, .h2])
  func largeResponses(entrance: NginxServer.Entrance) async throws {
    let server = try await NginxServer.shared
    let session = server.makeSession()
    defer { withExtendedLifetime(session) {} }
    let name = "medium-\(entrance)"
    try server.serve(Self.medium, as: name)
    let responses = await Batch.run(60) { _ in session.request(server.url(entrance, "/files/\(name)")) }
    #expect(responses.failures.isEmpty)
    #expect(responses.count { $0.value == Self.medium } == 60)
  }

  @Test(
    "An uploaded body is stored unchanged", arguments: NginxServer.Entrance.allCases,
    [0, 1, 10_000, 70_000, 5_000_000])
  func upload(entrance: NginxServer.Entrance, size: Int) async throws {
    let server = try await NginxServer.shared
    let session = server.makeSession()
    defer { withExtendedLifetime(session) {} }
    let url = server.url(entrance, "/stored/\(entrance)-\(size)")
    let body = Self.large.prefix(size)
    var request = try URLRequest(url: url, method: .put)
    request.httpBody = body
    let put = await session.request(request).validate().serializingData(emptyResponseCodes: [201, 204])
      .response
    #expect(put.response?.statusCode == 201, "\(put.failure)")
    let get = await session.request(url).validate().serializingData(emptyResponseCodes: [200]).response
    #expect(get.data ?? Data() == body, "\(get.failure)")
  }

  @Test("A POST over HTTP/2 is received by an application", .needsHTTPBin) func post() async throws {
    let httpbin = try await HTTPBinServer.shared
    let server = try await NginxServer(
      NginxConfiguration(locations: "location /app/ { proxy_pass http://127.0.0.1:\(httpbin.port)/; }"))
    let session = server.makeSession()
    defer { withExtendedLifetime(session) {} }
    let text = String(repeating: "0123456789", count: 1000)
    let tasks = (0..<20).map { index in
      session.request(
        server.url(.h2, "/app/post"), method: .post, parameters: ["text": text, "index": "\(index)"],
        encoder: .json
      ).validate().serializingDecodable(Echo.self)
    }
    for (index, task) in tasks.enumerated() {
      let response = await task.response
      #expect(response.value?.json == .object(["text": .string(text), "index": .string("\(index)")]))
      #expect(response.transaction?.networkProtocolName == "h2")
    }
  }
}

extension DataResponse {
  /// A description of the failure for messages of tests.
  var failure: String { error.map { "\($0)" } ?? "no failure" }
}
