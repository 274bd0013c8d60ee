package import FoundationEssentials
import HTTPWire
import Synchronization

/// The lists of revoked certificates that the user gave.
package struct RevocationLists: Sendable {
  private let lists: [RevocationList]

  package static let none = RevocationLists([])

  init(_ lists: [RevocationList]) { self.lists = lists }

  private static let kept = Mutex<[[Data]: RevocationLists]>([:])

  /// Reads lists, each as DER or PEM. A text is read once for all connections.
  package static func of(_ texts: [Data]) -> Result<RevocationLists, ChainFault> {
    guard !texts.isEmpty else { return .success(.none) }
    if let lists = kept.withLock({ $0[texts] }) { return .success(lists) }
    var all: [RevocationList] = []
    for text in texts {
      guard let lists = RevocationList.all(in: text) else { return .failure(unreadable) }
      all += lists
    }
    let lists = RevocationLists(all)
    kept.withLock { kept in
      if kept.count >= 16 { kept.removeAll() }
      kept[texts] = lists
    }
    return .success(lists)
  }

  /// Returns the status of one certificate by all lists. It is revoked if one list says so.
  func status(of certificate: X509Certificate, issuer: X509Certificate, at now: Int) -> RevocationStatus {
    var best: RevocationStatus?
    for list in lists {
      switch list.status(of: certificate, issuer: issuer, at: now) {
      case .revoked: return .revoked
      case .listed(let reason): best = .listed(reason)
      case .good(let end): if !Self.isListed(best) { best = .good(until: end) }
      case .unknown(let reason): best = best ?? .unknown(reason)
      case nil: break
      }
    }
    return best ?? .unknown("no list (CRL) of its issuer is there")
  }

  private static func isListed(_ status: RevocationStatus?) -> Bool {
    if case .listed = status { true } else { false }
  }

  /// Returns the fault of the first certificate of a verified path that is revoked, if one is.
  ///
  /// - Parameter presented: All that the server sent. The issuer of a certificate that is trusted itself is found there,
  ///   if it is there.
  func fault(of path: [X509Certificate], presented: [X509Certificate], at now: Int) -> ChainFault? {
    guard !lists.isEmpty else { return nil }
    for (depth, certificate) in path.enumerated() {
      let issuers =
        depth + 1 < path.count
        ? [path[depth + 1]] : presented.filter { $0.der != certificate.der && certificate.isSigned(by: $0) }
      if let fault = fault(of: certificate, issuers, depth, now) { return fault }
    }
    return nil
  }

  /// Returns the fault of the first certificate of a chain that is revoked, if one is. The chain need not lead to a
  /// trusted certificate.
  package func fault(
    ofLinked chain: [X509Certificate], presented: [X509Certificate]
  ) -> ChainFault? {
    guard !lists.isEmpty else { return nil }
    let now = OpenSSLTime.now
    for (depth, certificate) in chain.enumerated() {
      let issuers = (chain + presented).filter { $0.der != certificate.der && certificate.isSigned(by: $0) }
      if let fault = fault(of: certificate, issuers, depth, now) { return fault }
    }
    return nil
  }

  /// Checks one certificate. A server may withhold the certificate of its issuer. Then the certificate is revoked if a
  /// list of an issuer with that name has it, because the program trusts its own lists.
  private func fault(
    of certificate: X509Certificate, _ issuers: [X509Certificate], _ depth: Int, _ now: Int
  ) -> ChainFault? {
    if issuers.isEmpty { return lists.contains { $0.names(certificate) } ? .revoked(depth: depth) : nil }
    for issuer in issuers {
      switch status(of: certificate, issuer: issuer, at: now) {
      case .revoked: return .revoked(depth: depth)
      case .listed(let reason): return .listed(reason, depth: depth)
      case .good, .unknown: continue
      }
    }
    return nil
  }

  private static let unreadable = ChainFault(
    kind: .certificateUntrusted,
    message: "A list of revoked certificates (CRL) could not be read; check that it is DER or complete PEM.")
}
