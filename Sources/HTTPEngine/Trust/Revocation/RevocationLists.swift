package import FoundationEssentials
import HTTPWire
import Synchronization

/// The lists of revoked certificates that the user gave.
package struct RevocationLists: Sendable {
  private let lists: [RevocationList]

  package static let none = RevocationLists([])

  init(_ lists: [RevocationList]) { self.lists = lists }

  private static let kept = Mutex<[[Data]: RevocationLists]>([:])

  /// Reads lists, each as DER or PEM. A text is read once, however many connections ask for it.
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

  /// What they say together about one certificate: that it was revoked, if one of them does.
  func status(of certificate: X509Certificate, issuer: X509Certificate, at now: Int) -> RevocationStatus {
    var best: RevocationStatus?
    for list in lists {
      switch list.status(of: certificate, issuer: issuer, at: now) {
      case .revoked: return .revoked
      case .good(let end): best = .good(until: end)
      case .unknown(let reason): best = best ?? .unknown(reason)
      case nil: break
      }
    }
    return best ?? .unknown("no list (CRL) of its issuer is there")
  }

  /// The first certificate of a verified path that is revoked, if one is.
  func fault(of path: [X509Certificate], at now: Int) -> ChainFault? {
    guard !lists.isEmpty else { return nil }
    for (depth, (certificate, issuer)) in zip(path, path.dropFirst()).enumerated()
    where status(of: certificate, issuer: issuer, at: now) == .revoked {
      return .revoked(depth: depth)
    }
    return nil
  }

  private static let unreadable = ChainFault(
    kind: .certificateUntrusted,
    message: "A list of revoked certificates (CRL) could not be read; check that it is DER or complete PEM.")
}
