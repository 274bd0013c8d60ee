import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

/// Servers that offer a login of the connection in addition to another scheme.
@Suite("Schemes after a login of the connection", .timeLimit(.minutes(5)))
struct LoginFallbackTests {
  private static let basic = HTTPHeader.authorization(username: "u", password: "p").value
  private static let hasNTLM = Engine.connectionSchemes.contains(.ntlm)
  private static let hasNegotiate = Engine.connectionSchemes.contains(.negotiate)

  static let offers: [[String]] = [
    ["Negotiate", "Basic realm=\"r\""], ["Basic realm=\"r\"", "Negotiate"],
    ["Negotiate, Basic realm=\"r\""], ["Basic realm=\"r\", Negotiate"],
    ["Negotiate", "NTLM", "Basic realm=\"r\""], ["NTLM", "Basic realm=\"r\""],
    ["Basic realm=\"r\", NTLM, Negotiate"],
  ]

  private static func challenge(_ offers: [String]) -> Reply {
    offers.reduce(Reply.status(401)) { $0.with(header: "WWW-Authenticate", value: $1) }
  }

  @Test(
    "A password answers Basic when there is no ticket", .enabled(if: hasNTLM && hasNegotiate),
    arguments: offers)
  func basic(offers: [String]) async throws {
    let server = try HTTPTestServer(
      routes: Routes.none.adding("/") { request, _ in
        request.header("Authorization") == Self.basic ? .text("in") : Self.challenge(offers)
      })
    let response = await Session.real().request(server.url("/")).authenticate(username: "u", password: "p")
      .end()
    #expect(response.value == Data("in".utf8), "\(String(describing: response.error))")
    #expect(server.requestCount <= 7, "\(server.requestCount)")
  }

  @Test("A wrong password ends with the 401", .enabled(if: hasNTLM && hasNegotiate), arguments: offers)
  func wrongPassword(offers: [String]) async throws {
    let server = try HTTPTestServer(
      routes: Routes.none.adding("/") { _, _ in
        var reply = Self.challenge(offers)
        reply.body = .bytes(Array("denied".utf8))
        return reply
      })
    let response = await Session.real().request(server.url("/")).authenticate(username: "u", password: "p")
      .end()
    #expect(response.response?.statusCode == 401)
    #expect(response.value == Data("denied".utf8))
    #expect(server.recordedRequests.count { $0.header("Authorization") == Self.basic } == 1)
    #expect(server.requestCount <= 7, "\(server.requestCount)")
  }

  @Test("Digest is preferred, and a password that it refuses goes no further") func digest() async throws {
    let fake = FakeTransport { _, _ in
      FakeReply(
        status: 401,
        fields: [
          HTTPHeader(name: "WWW-Authenticate", value: "Negotiate"),
          HTTPHeader(name: "WWW-Authenticate", value: "Digest realm=\"r\", nonce=\"1\", Basic realm=\"r\""),
        ])
    }
    let response = await Session.retained(fake: fake).request("http://a.test/")
      .authenticate(username: "u", password: "p").end()
    #expect(response.response?.statusCode == 401)
    #expect(fake.requests.contains { $0.value("Authorization")?.hasPrefix("Digest") == true })
    #expect(!fake.requests.contains { $0.value("Authorization")?.hasPrefix("Basic") == true })
  }

  @Test("NTLM that is refused without a message asks twice", .enabled(if: hasNTLM), arguments: [false, true])
  func plainRefusal(closes: Bool) async throws {
    let server = try HTTPTestServer(
      routes: Routes.none.adding("/") { _, _ in
        var reply = Self.challenge(["NTLM"])
        reply.body = .bytes(Array("denied".utf8))
        return closes ? reply.closing() : reply
      })
    let response = await Session.real().request(server.url("/")).authenticate(username: "u", password: "p")
      .end()
    #expect(response.response?.statusCode == 401)
    #expect(response.error == nil, "\(String(describing: response.error))")
    #expect(server.requestCount == 3, "one without a credential, and two of the login")
  }

  @Test("A delegate is asked about a scheme that has not failed first", .enabled(if: hasNegotiate))
  func delegate() async throws {
    final class Delegate: SessionDelegate, @unchecked Sendable {
      let asked = Recorder<String>()

      override func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
      ) {
        asked.add("\(challenge.protectionSpace.authenticationMethod) \(challenge.previousFailureCount)")
        guard challenge.previousFailureCount == 0 else {
          return completionHandler(.cancelAuthenticationChallenge, nil)
        }
        completionHandler(.useCredential, URLCredential(user: "u", password: "p", persistence: .none))
      }
    }
    let server = try HTTPTestServer(
      routes: Routes.none.adding("/") { request, _ in
        request.header("Authorization") == Self.basic
          ? .text("in") : Self.challenge(["Negotiate", "Basic realm=\"r\""])
      })
    let delegate = Delegate()
    let session = Session(configuration: .uncached, delegate: delegate)
    let response = await session.request(server.url("/")).end()
    #expect(response.value == Data("in".utf8), "\(String(describing: response.error))")
    #expect(
      delegate.asked.values == [
        "NSURLAuthenticationMethodNegotiate 0", "NSURLAuthenticationMethodHTTPBasic 0",
      ])
  }
}
