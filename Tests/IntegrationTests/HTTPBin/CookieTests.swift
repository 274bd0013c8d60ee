import Alamofire
import Testing

@Suite(.needsHTTPBin, .timeLimit(.minutes(5))) struct CookieTests {
  private struct Echo: Decodable { let cookies: [String: String] }

  @Test("Cookies are stored and sent with later requests") func cookies() async throws {
    let server = try await HTTPBinServer.shared
    let session = Session(configuration: .af.ephemeral)
    defer { withExtendedLifetime(session) {} }
    let ask = { (path: String) in
      try await session.request(server.url(path)).validate().serializingDecodable(Echo.self).value.cookies
    }
    #expect(try await ask("/cookies") == [:])
    #expect(try await ask("/cookies/set/first/1") == ["first": "1"])
    #expect(try await ask("/cookies/set?second=2&third=3") == ["first": "1", "second": "2", "third": "3"])
    #expect(try await ask("/cookies/delete?second") == ["first": "1", "third": "3"])
    let storage = try #require(session.sessionConfiguration.httpCookieStorage)
    #expect(Set(storage.cookies?.map(\.name) ?? []) == ["first", "third"])
    // Sessions with different storages do not share cookies.
    let other = Session(configuration: .af.ephemeral)
    defer { withExtendedLifetime(other) {} }
    let cookies = try await other.request(server.url("/cookies")).serializingDecodable(Echo.self).value
      .cookies
    #expect(cookies == [:])
  }

  @Test("A Cookie field of the request has priority") func ownField() async throws {
    let server = try await HTTPBinServer.shared
    let session = Session(configuration: .af.ephemeral)
    defer { withExtendedLifetime(session) {} }
    _ = try await session.request(server.url("/cookies/set/stored/1")).serializingData().value
    let cookies = try await session.request(server.url("/cookies"), headers: ["Cookie": "own=2"])
      .serializingDecodable(Echo.self).value.cookies
    #expect(cookies == ["own": "2"])
  }
}
