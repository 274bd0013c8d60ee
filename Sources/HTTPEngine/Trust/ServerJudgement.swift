import CCurl
import COpenSSL
import FoundationEssentials
import Glibc
import HTTPWire

/// Whether a server is who it has to be: what the judge of the profile says or, without one, the trust store.
struct ServerJudgement {
  let profile: ConnectionProfile
  let host: String
  let port: Int

  /// What libcurl says when a certificate is refused.
  static let code = Int32(CURLE_PEER_FAILED_VERIFICATION.rawValue)

  /// The certificates of OpenSSL's list, which may be none.
  static func certificates(_ shown: OpaquePointer?) -> [X509Certificate] {
    (0..<max(0, openssl_certificate_count(shown))).compactMap { index in
      openssl_certificate_at(shown, index).flatMap { pointer in
        X509_up_ref(pointer) == 1 ? X509Certificate(owning: pointer) : nil
      }
    }
  }

  /// Why the server is not accepted; `.trustUndecided` when that is to be found out elsewhere.
  func failure(of certificates: [X509Certificate], stapled: Data?) -> TransportFailure? {
    guard let judge = profile.judge else { return failure(of: certificates) }
    let chain = PresentedChain(
      host: host, port: port, certificates: certificates.map(\.der), stapledResponse: stapled)
    switch judge.judge(chain, for: profile) {
    case .accept: return nil
    case .usual: return failure(of: certificates)
    case .refuse(let error):
      return TransportFailure(
        .trustRefused, "The certificates of \(host) were refused.", curlCode: Self.code, cause: error)
    case .ask:
      return TransportFailure(
        .trustUndecided, "The certificates of \(host) have to be judged.", curlCode: Self.code, chain: chain)
    }
  }

  /// Without a judge, the trust store decides.
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
    return TransportFailure(fault.kind, fault.message(for: host), curlCode: Self.code)
  }
}

/// The file with the secrets of TLS connections, for whoever wants to read recorded traffic.
enum TLSKeyLog {
  /// Appends one line to the file that the user named for it.
  static func append(_ line: UnsafePointer<CChar>, to file: String) {
    let descriptor = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return }
    // In one piece, so that lines of several processes do not mix.
    let text = String(cString: line) + "\n"
    _ = text.utf8CString.withUnsafeBufferPointer { write(descriptor, $0.baseAddress, $0.count - 1) }
    close(descriptor)
  }
}
