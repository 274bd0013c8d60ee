import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@Suite("Options of requests with client certificates", .timeLimit(.minutes(5)))
struct IdentityOptionTests {
  private let hosts = StrictTransportSecurity()

  private static func ada() throws -> ClientIdentity {
    let ada = try TestIdentity(.init(commonName: "Ada", issuer: .localhostAuthority))
    return try ClientIdentity(pem: Data(ada.certificatePEM.utf8), privateKey: Data(ada.privateKeyPEM.utf8))
  }

  private func session(_ fake: FakeTransport, _ delegate: SessionDelegate = SessionDelegate()) -> Session {
    var options = TransportOptions()
    options.strictTransportSecurity = hosts
    options.redirectLimit = 3
    return .retained(
      fake: fake, options: options, observers: SessionObservers(delegate: delegate, eventMonitors: []))
  }

  private func strict(_ reply: FakeReply) -> FakeReply {
    var reply = reply
    reply.fields.append(HTTPHeader(name: "Strict-Transport-Security", value: "max-age=1000"))
    return reply
  }

  @Test(
    "A chosen certificate keeps the other options, the policies of hosts, and the credential of the request")
  func chosen() async throws {
    let ada = try Self.ada()
    let delegate = IdentityChooser(ada)
    let fake = FakeTransport(
      .failure(.identityUndecided), strict(.challenge()), .redirect(302, to: "https://b.test/"),
      .text("there"))
    let request = session(fake, delegate).request("https://a.test/")
      .authenticate(username: "ann", password: "pass").transportOptions { $0.bodySizeLimit = 77 }
    let response = await request.end()
    #expect(response.data == Data("there".utf8))
    let sent = fake.requests
    try #require(sent.count == 4)
    #expect(sent.map { $0.profile.options.clientIdentity != nil } == [false, true, true, false])
    #expect(
      sent.allSatisfy { $0.profile.options.bodySizeLimit == 77 && $0.profile.options.redirectLimit == 3 })
    #expect(sent.map { $0.value("Authorization") != nil } == [false, false, true, false])
    #expect(hosts.hosts == ["a.test"])
    #expect(delegate.calls.values == ["a.test request"])
  }

  @Test(
    "Options apply to a certificate's server and to others, before and after it is set",
    arguments: [true, false])
  func order(isFirst: Bool) async throws {
    let ada = try Self.ada()
    let fake = FakeTransport(
      .redirect(302, to: "https://b.test/"), strict(.redirect(302, to: "http://a.test/home")), .text("home"))
    let request = session(fake).request("https://a.test/")
    if isFirst { request.transportOptions { $0.bodySizeLimit = 77 } }
    request.authenticate(with: ClientIdentityCredential(ada))
    if !isFirst { request.transportOptions { $0.bodySizeLimit = 77 } }
    #expect(await request.end().data == Data("home".utf8))
    let sent = fake.requests
    try #require(sent.count == 3)
    #expect(sent.map { $0.profile.options.bodySizeLimit } == [77, 77, 77])
    #expect(
      sent.map { $0.profile.options.clientIdentity != nil } == [true, false, false], "http: is another origin"
    )
    #expect(hosts.hosts == ["b.test"], "the policies of hosts are noted elsewhere, too")
  }

  @Test("A certificate is presented again at its own origin, and no second one is asked for") func back()
    async throws
  {
    let ada = try Self.ada()
    let delegate = IdentityChooser(ada)
    let fake = FakeTransport(
      .failure(.identityUndecided), .redirect(302, to: "https://b.test/"),
      .redirect(302, to: "https://a.test/home"), .failure(.identityUndecided), .text("home"))
    #expect(await session(fake, delegate).request("https://a.test/").end().data == Data("home".utf8))
    #expect(
      fake.requests.map { $0.profile.options.clientIdentity != nil } == [false, true, false, false, true])
    #expect(delegate.calls.count == 2)
  }

  @Test("The certificate of a request is presented again when redirects lead back to its origin")
  func ownBack() async throws {
    let ada = try Self.ada()
    let fake = FakeTransport(
      .redirect(302, to: "https://b.test/"), .redirect(302, to: "https://a.test/home"), .text("home"))
    let request = session(fake).request("https://a.test/").authenticate(with: ClientIdentityCredential(ada))
    #expect(await request.end().data == Data("home".utf8))
    #expect(fake.requests.map { $0.profile.options.clientIdentity != nil } == [true, false, true])
  }

  @Test("A delegate that chooses no certificate is not asked again by the next request") func anonymous()
    async throws
  {
    let delegate = IdentityChooser(nil)
    let fake = FakeTransport(.failure(.identityUndecided), .text("one"), .text("two"))
    let session = session(fake, delegate)
    for text in ["one", "two"] {
      #expect(await session.request("https://a.test/").end().data == Data(text.utf8))
    }
    #expect(fake.requests.allSatisfy { $0.profile.options.clientIdentity == nil })
    #expect(delegate.calls.count == 1)
  }
}
