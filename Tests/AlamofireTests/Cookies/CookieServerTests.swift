import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Cookies and a server", .timeLimit(.minutes(5)))
struct CookieServerTests {
  private struct Echo: Decodable, Sendable { let cookies: [String: String] }

  private func session(trusting: TestIdentity? = nil) -> Session {
    var options = TransportOptions()
    if trusting != nil { options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8)) }
    return .real(configuration: .af.ephemeral, options: options)
  }

  @Test("Cookies are set, sent and deleted over redirects") func redirects() async throws {
    let server = try HTTPTestServer()
    let session = session()
    let ask = { (path: String) in
      try await session.request(server.url(path)).validate().serializingDecodable(Echo.self).value.cookies
    }
    #expect(try await ask("/cookies/set?a=1&b=2") == ["a": "1", "b": "2"])
    #expect(try await ask("/cookies") == ["a": "1", "b": "2"])
    #expect(try await ask("/cookies/delete?a") == ["b": "2"])
    // Cookies ignore ports: another server of the host receives them as well.
    let other = try HTTPTestServer()
    let cookies = try await session.request(other.url("/cookies")).serializingDecodable(Echo.self).value
      .cookies
    #expect(cookies == ["b": "2"])
  }

  @Test("Cookies are stored before the body is complete") func incompleteBody() async throws {
    let server = try HTTPTestServer()
    let session = session()
    let storage = try #require(session.sessionConfiguration.httpCookieStorage)
    var reply = Reply.text("0123456789").with(header: "Set-Cookie", value: "early=1; Path=/")
    reply.effect = .stallAfterBody(bytes: 3)
    server.enqueue(reply)
    let request = session.streamRequest(server.url("/stream"))
    for await event in request.streamTask().streamingData() {
      guard case .stream = event.event else { continue }
      break
    }
    let echo = try await session.request(server.url("/cookies")).serializingDecodable(Echo.self).value
    #expect(echo.cookies == ["early": "1"])
    #expect(storage.cookies?.map(\.name) == ["early"])
    request.cancel()
  }

  /// Requests that find an empty storage share this result within a turn of the loop.
  @Test("Cookies that are stored before a request are sent") func turnOfLoop() async throws {
    let server = try HTTPTestServer()
    let session = session()
    let storage = try #require(session.sessionConfiguration.httpCookieStorage)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<8 {
        group.addTask {
          while !Task.isCancelled {
            _ = await session.request(server.url("/get")).serializingData().response
          }
        }
      }
      for round in 0..<100 {
        let properties: [HTTPCookiePropertyKey: Any] = [
          .name: "round", .value: "\(round)", .domain: "127.0.0.1", .path: "/",
        ]
        let cookie = HTTPCookie(properties: properties)
        cookie.map { storage.setCookie($0) }
        let echo = try? await session.request(server.url("/cookies")).serializingDecodable(Echo.self).value
        #expect(echo?.cookies == ["round": "\(round)"])
        cookie.map { storage.deleteCookie($0) }
        let last = try? await session.request(server.url("/cookies")).serializingDecodable(Echo.self).value
        #expect(last?.cookies == [:])
      }
      group.cancelAll()
    }
  }

  /// Foundation's parser ends the process for these fields.
  @Test(
    "No cookie ends the process",
    arguments: [
      "ae\u{301}=1", "Secure\u{301}Path=", "session=1; na\u{301}me=", "x\u{301}=\u{301};\u{301}",
    ])
  func noCookieEndsTheProcess(_ field: String) async throws {
    let server = try HTTPTestServer()
    let session = session()
    server.enqueue(.text("ok").with(header: "Set-Cookie", value: field))
    for _ in 0..<2 {
      #expect(await session.request(server.url("/get")).serializingData().response.error == nil)
    }
    let sent = try #require(server.recordedRequests.last?.header("Cookie"))
    #expect(Array(field.utf8).starts(with: sent.utf8), "\(Array(sent.utf8))")
  }

  @Test("Secure cookies are sent over TLS only") func secureCookies() async throws {
    let plain = try HTTPTestServer()
    let secure = try HTTPTestServer(.tls(.localhost))
    let session = session(trusting: .localhost)
    secure.enqueue(
      .text("ok").with(header: "Set-Cookie", value: "__Host-s=1; Secure; Path=/; HttpOnly; SameSite=Strict"))
    plain.enqueue(.text("ok").with(header: "Set-Cookie", value: "t=1; Secure"))
    _ = await session.request(secure.url("/")).serializingData().response
    let local = "http://localhost:\(plain.port)"
    _ = await session.request(local + "/").serializingData().response
    _ = await session.request(local + "/").serializingData().response
    _ = await session.request(secure.url("/")).serializingData().response
    #expect(secure.recordedRequests.map { $0.header("Cookie") } == [nil, "__Host-s=1"])
    #expect(plain.recordedRequests.map { $0.header("Cookie") } == [nil, nil])
  }
}
