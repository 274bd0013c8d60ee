import Alamofire
import Foundation
import FoundationNetworking
import Testing

/// A server that asks for a client certificate when it knows the path.
@Suite("Client certificates by renegotiation", .needsApache, .timeLimit(.minutes(5)))
struct RenegotiationServerTests {
  /// A client without an identity, with one, and one that chooses one or none when the server asks.
  enum Party: CaseIterable { case anonymous, identified, choosing, declining }

  /// Unchecked, as its superclass is.
  private final class Chooser: SessionDelegate, @unchecked Sendable {
    let identity: ClientIdentity?

    init(_ identity: ClientIdentity?) {
      self.identity = identity
      super.init()
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      let asksForIdentity =
        challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodClientCertificate
      guard asksForIdentity, let identity else { return completionHandler(.performDefaultHandling, nil) }
      completionHandler(.useCredential, ClientIdentityCredential(identity))
    }
  }

  private static func session(_ client: Party, of server: RenegotiatingServer) throws -> Session {
    let ada = try ClientIdentity(pkcs12: Data(contentsOf: server.client), passphrase: "tea")
    var options = TransportOptions()
    options.trustStore = .file(server.authority)
    if client == .identified { options.clientIdentity = ada }
    let delegate: SessionDelegate =
      switch client {
      case .anonymous, .identified: SessionDelegate()
      case .choosing: Chooser(ada)
      case .declining: Chooser(nil)
      }
    return Session(configuration: .isolated, delegate: delegate, transportOptions: options)
  }

  @Test(
    "A server that accepts clients without a certificate is used with and without one",
    arguments: Party.allCases)
  func optional(client: Party) async throws {
    let server = try await RenegotiatingServer()
    let session = try Self.session(client, of: server)
    let name = client == .identified || client == .choosing ? "Ada" : "(null)"
    for (path, method) in [
      ("/open/page", HTTPMethod.get), ("/optional/page", .get), ("/optional/page", .post),
    ] {
      let body = ["some": "body"]
      let response = await session.request(server.url(path), method: method, parameters: body)
        .serializingString().response
      #expect(
        response.response?.statusCode == 200, "\(method) \(path): \(String(describing: response.error))")
      guard path != "/open/page" else { continue }
      #expect(response.response?.headers["X-Client"] == name, "\(method) \(path)")
    }
  }

  @Test(
    "A server that requires a certificate is answered, or the error says what it wants",
    arguments: Party.allCases)
  func required(client: Party) async throws {
    let server = try await RenegotiatingServer()
    let session = try Self.session(client, of: server)
    let response = await session.request(server.url("/required/page")).serializingString().response
    guard client == .identified || client == .choosing else {
      let error = response.error?.underlyingError as? URLError
      #expect(error?.code == .clientCertificateRequired, "\(String(describing: response))")
      return
    }
    #expect(response.value == "required" && response.response?.headers["X-Client"] == "Ada")
  }
}
