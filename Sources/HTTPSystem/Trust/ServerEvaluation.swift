import COpenSSL
package import FoundationEssentials
package import HTTPWire

/// The trust evaluation of a server: by the evaluator of the profile or, without one, by the trust store.
package struct ServerEvaluation {
  private let profile: ConnectionProfile
  private let host: String
  private let port: Int

  /// Creates the evaluation of the server at a host and a port.
  package init(profile: ConnectionProfile, host: String, port: Int) {
    self.profile = profile
    self.host = host
    self.port = port
  }

  /// Returns the certificates of OpenSSL's list.
  package static func certificates(_ shown: OpaquePointer?) -> [X509Certificate] {
    (0..<max(0, openssl_certificate_count(shown))).compactMap { index in
      openssl_certificate_at(shown, index).flatMap { pointer in
        X509_up_ref(pointer) == 1 ? X509Certificate(owning: pointer) : nil
      }
    }
  }

  /// Returns the failure if the server is not accepted; `.trustUndecided` if code outside of the handshake has to
  /// decide.
  package func failure(of certificates: [X509Certificate], stapled: Data?) -> TransportFailure? {
    guard let evaluator = profile.evaluator else { return failure(of: certificates) }
    let chain = PresentedChain(
      host: host, port: port, certificates: certificates.map(\.der), stapledResponse: stapled,
      partition: profile.partition)
    switch evaluator.evaluate(chain, for: profile) {
    case .accept: return nil
    case .usual: return failure(of: certificates)
    case .refuse(let error):
      return TransportFailure(
        .trustRefused, "The certificates of \(host) were refused.", cause: error)
    case .ask:
      return TransportFailure(
        .trustUndecided, "The certificates of \(host) have to be evaluated.", chain: chain)
    }
  }

  /// Verifies the certificates by the trust store.
  private func failure(of certificates: [X509Certificate]) -> TransportFailure? {
    let options = profile.options
    let verdict = TrustAnchors.of(options.trustStore).flatMap { anchors in
      RevocationLists.of(options.certificateRevocationLists).flatMap { lists in
        var verifier = ChainVerifier(anchors: anchors, host: host)
        verifier.revocationLists = lists
        return verifier.verify(certificates)
      }
    }
    guard case .failure(let fault) = verdict else { return nil }
    return TransportFailure(fault.kind, fault.message(for: host))
  }
}
