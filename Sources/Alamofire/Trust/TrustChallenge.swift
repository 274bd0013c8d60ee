public import Foundation
public import FoundationNetworking
import HTTPWire

/// The method of a challenge with the certificates of a server; Foundation's own constant is unavailable on Linux.
public let NSURLAuthenticationMethodServerTrust = "NSURLAuthenticationMethodServerTrust"
/// The method of a challenge for a client certificate; Foundation's own constant is unavailable on Linux.
public let NSURLAuthenticationMethodClientCertificate = "NSURLAuthenticationMethodClientCertificate"

extension URLProtectionSpace {
  /// The certificates of the server in a challenge of ``NSURLAuthenticationMethodServerTrust``; otherwise `nil`.
  public var serverTrust: ServerTrust? { (self as? ServerProtectionSpace)?.trust }
}

extension URLCredential {
  /// Makes the answer to a challenge of ``NSURLAuthenticationMethodServerTrust`` that accepts the server, regardless
  /// of the evaluators.
  ///
  /// - Parameter trust: The trust of the challenge. The accepted chain is always that of the challenge.
  public convenience init(trust: ServerTrust) {
    self.init(user: "", password: "", persistence: .none)
  }

  /// Whether the credential can accept a server, because it has neither a name nor a password.
  var meansTrust: Bool {
    (user ?? "").isEmpty && (password ?? "").isEmpty && persistence == .none
      && !(self is ClientIdentityCredential)
  }
}

/// A credential with a client certificate: for ``Request/authenticate(with:)``, and the answer to a challenge of
/// ``NSURLAuthenticationMethodClientCertificate``. The certificate is used for one origin: after a redirect to another
/// one it is not sent.
///
/// ```swift
/// session.request("https://example.com/").authenticate(with: ClientIdentityCredential(identity))
/// ```
public final class ClientIdentityCredential: URLCredential, @unchecked Sendable {
  // Unchecked as its superclass is; its own property is a constant.
  /// The client certificate and its key.
  public let clientIdentity: ClientIdentity

  /// Makes a credential for a client certificate.
  public init(_ identity: ClientIdentity) {
    clientIdentity = identity
    super.init(user: identity.subject, password: "", persistence: .none)
  }

  /// Returns `nil`, because client certificates are not archived.
  public required init?(coder: NSCoder) { nil }
}

/// The protection space of a server whose certificates are evaluated.
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
