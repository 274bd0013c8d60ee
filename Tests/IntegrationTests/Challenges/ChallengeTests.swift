import Alamofire
import Testing

/// Basic and Digest with third-party servers.
@Suite("Challenges of httpbin", .needsHTTPBin, .timeLimit(.minutes(5)))
struct HTTPBinChallengeTests {
  /// Returns the statuses of all hops of a request, and its outcome.
  private func statuses(
    _ session: Session, _ url: String, method: HTTPMethod = .get, password: String = "s3cret",
    headers: HTTPHeaders? = nil
  ) async -> [Int] {
    let response = await session.request(
      url, method: method, parameters: method == .post ? ["a": "b c"] : nil, headers: headers
    )
    .authenticate(username: "anna", password: password).serializingData().response
    return response.metrics?.transactionMetrics.compactMap { transaction in
      (transaction.response as? HTTPURLResponse)?.statusCode
    } ?? []
  }

  @Test("Digest is accepted", arguments: ["auth", "auth-int", "both"], ["MD5", "SHA-256", "SHA-512"])
  func digest(quality: String, algorithm: String) async throws {
    let server = try await HTTPBinServer.shared
    let session = Session.isolated()
    let url = server.url("/digest-auth/\(quality)/anna/s3cret/\(algorithm)/never")
    #expect(await statuses(session, url) == [401, 200])
    #expect(await statuses(session, url) == [200])
    #expect(await statuses(session, url, password: "wrong") == [401, 401])
    #expect(await statuses(session, url) == [200])
  }

  @Test("Stale nonces are replaced", arguments: ["0", "1"])
  func stale(after: String) async throws {
    let server = try await HTTPBinServer.shared
    let url = server.url("/digest-auth/auth/anna/s3cret/MD5/\(after)")
    let statuses = await statuses(
      Session.isolated(), url, headers: ["Cookie": "stale_after=\(after); last_nonce=x"])
    // With 0 every nonce is stale, and the request must end nevertheless.
    #expect(after == "0" ? Set(statuses) == [401] && statuses.count == 6 : statuses == [401, 200])
  }

  @Test("Basic is accepted") func basic() async throws {
    let server = try await HTTPBinServer.shared
    let session = Session.isolated()
    let url = server.url("/basic-auth/anna/s3cret")
    #expect(await statuses(session, url) == [401, 200])
    #expect(await statuses(session, url) == [200])
    #expect(await statuses(session, url, password: "wrong") == [401, 401])
  }

  @Test("Basic without a challenge is accepted") func hiddenBasic() async throws {
    let server = try await HTTPBinServer.shared
    let url = server.url("/hidden-basic-auth/anna/s3cret")
    #expect(await statuses(Session.isolated(), url) == [404])
    var options = TransportOptions()
    options.preemptiveBasicAuthentication = true
    #expect(await statuses(Session.isolated(options), url) == [200])
  }
}

@Suite("Challenges of nginx", .needsNginx, .timeLimit(.minutes(5)))
struct NginxChallengeTests {
  @Test("Basic is accepted", arguments: NginxServer.Entrance.allCases)
  func basic(entrance: NginxServer.Entrance) async throws {
    let server = try await NginxServer.shared
    try server.serve(Data("inside".utf8), as: "secret")
    let session = server.makeSession()
    let url = server.url(entrance, "/protected/secret")
    for hops in [2, 1] {
      let response = await session.request(url).authenticate(username: "anna", password: "sésame")
        .serializingString().response
      #expect(response.value == "inside")
      #expect(response.metrics?.transactionMetrics.count == hops)
    }
    let wrong = await session.request(url).authenticate(username: "anna", password: "sesame")
      .serializingData().response
    #expect(wrong.response?.statusCode == 401)
    let none = await session.request(url).serializingData().response
    #expect(none.response?.statusCode == 401)
  }
}

@Suite("Challenges of Apache", .needsApache, .timeLimit(.minutes(5)))
struct ApacheChallengeTests {
  private func get(_ session: Session, _ url: String, password: String = "sésame") async -> (Int?, Int?) {
    let response = await session.request(url).authenticate(username: "anna", password: password)
      .serializingData().response
    return (response.response?.statusCode, response.metrics?.transactionMetrics.count)
  }

  @Test("Digest is accepted") func digest() async throws {
    let server = try await ApacheServer.shared
    let session = Session.isolated()
    #expect(await get(session, server.url("/digest/deep/page?a=%20b")) == (200, 2))
    for _ in 0..<10 { #expect(await get(session, server.url("/digest/deep/page")) == (200, 1)) }
    #expect(await get(session, server.url("/digest/deep/page"), password: "wrong") == (401, 2))
    let none = await session.request(server.url("/digest/deep/page")).serializingData().response
    #expect(none.response?.statusCode == 401)
  }

  @Test("Basic is accepted") func basic() async throws {
    let server = try await ApacheServer.shared
    let session = Session.isolated()
    #expect(await get(session, server.url("/basic/page")) == (200, 2))
    #expect(await get(session, server.url("/basic/page")) == (200, 1))
  }

  /// Checks that a request uses the next nonce (`nextnonce`). Apache sends it if nonces are valid for less than half a
  /// minute.
  @Test("The next nonce is used") func nextNonce() async throws {
    let server = try await ApacheServer.shared
    let session = Session.isolated()
    var announced: String?
    for _ in 0..<5 {
      let response = await session.request(server.url("/short/page"))
        .authenticate(username: "anna", password: "sésame").serializingData().response
      #expect(response.response?.statusCode == 200)
      let authorization = response.metrics?.transactionMetrics.last?.request
        .value(forHTTPHeaderField: "Authorization")
      if let announced { #expect(authorization?.contains(announced) == true) }
      let info = response.response?.value(forHTTPHeaderField: "Authentication-Info") ?? ""
      announced = info.firstMatch(of: /nextnonce="([^"]+)"/).map { String($0.1) }
      #expect(announced != nil)
    }
  }

  /// Waits until the nonce is stale (`stale`). The nonces of this location are valid for eight seconds.
  @Test("A stale nonce is replaced") func staleNonce() async throws {
    let server = try await ApacheServer.shared
    let session = Session.isolated()
    #expect(await get(session, server.url("/brief/page")).0 == 200)
    let pause = ContinuousClock.now + .milliseconds(9500)
    _ = await eventually(within: .seconds(30)) { ContinuousClock.now > pause }
    let (status, hops) = await get(session, server.url("/brief/page"))
    #expect(status == 200)
    #expect(hops ?? 0 >= 2)
  }
}
