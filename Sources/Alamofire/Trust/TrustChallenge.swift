public import Foundation
public import FoundationNetworking
import HTTPWire

/// The challenge of a server that shows its certificates; Foundation's own constant is not available on Linux.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"
/// The challenge of a server that asks for a certificate of the client; Foundation's own constant is not available
/// on Linux.
public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"

extension URLProtectionSpace {
  /// What the server has shown, in a challenge of ``NSURLAuthenticationMethodServerTrust``; otherwise `nil`.
  public var serverTrust: ServerTrust? { (self as? ServerProtectionSpace)?.trust }
}

extension URLCredential {
  /// The answer to a challenge of ``NSURLAuthenticationMethodServerTrust`` that accepts the server, whatever the
  /// evaluators would say.
  ///
  /// - Parameter trust: What the challenge brought; what was accepted is the chain of the challenge in any case.
  public convenience init(trust: ServerTrust) {
    self.init(user: "", password: "", persistence: .none)
  }

  /// Whether it can be one that accepts a server, and is no name and password: those are for other challenges.
  var meansTrust: Bool {
    (user ?? "").isEmpty && (password ?? "").isEmpty && persistence == .none
      && !(self is ClientIdentityCredential)
  }
}

/// A credential that is a client certificate: for ``Request/authenticate(with:)``, and the answer to a challenge of
/// ``NSURLAuthenticationMethodClientCertificate``. It is for one origin: no redirect takes it to another.
///
/// ```swift
/// session.request("https://example.com/").authenticate(with: ClientIdentityCredential(identity))
/// ```
public final class ClientIdentityCredential: URLCredential, @unchecked Sendable {
  // Unchecked as its superclass is; its own property is a constant.
  /// Who the client is.
  public let clientIdentity: ClientIdentity

  /// Makes a credential that counts for the request that it is given to.
  public init(_ identity: ClientIdentity) {
    clientIdentity = identity
    super.init(user: identity.subject, password: "", persistence: .none)
  }

  /// A client certificate is not read from archives: `nil`.
  public required init?(coder: NSCoder) { nil }
}

/// A server whose certificates are in question.
final class ServerProtectionSpace: URLProtectionSpace, @unchecked Sendable {
  // Unchecked as its superclass is; its own property is a constant.
  let trust: ServerTrust

  init(_ trust: ServerTrust, _ chain: PresentedChain) {
    self.trust = trust
    super.init(
      host: chain.host, port: chain.port, protocol: "https", realm: nil,
      authenticationMethod: NSURLAuthenticationMethodServerTrust)
  }

  required init?(coder: NSCoder) { nil }
}
