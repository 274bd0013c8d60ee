package import FoundationEssentials
package import HTTPWire

/// Whether any certificate of a verified path was revoked.
///
/// Only for paths that lead to a trusted certificate: it goes to the addresses that stand in the certificates.
package struct RevocationCheck: Sendable {
  private let asksResponders: Bool
  private let readsLists: Bool
  private let prefersLists: Bool
  private let requiresAnswer: Bool
  private let usesNetwork: Bool
  private let publicOnly: Bool
  private let proxies: ProxyTable?
  private let lists: RevocationLists
  private let stapledResponse: Data?

  /// - Parameters:
  ///   - requiresAnswer:  Whether a certificate about which nothing can be learned is refused.
  ///   - usesNetwork:     Whether others may be asked; the thread waits for them.
  ///   - publicOnly:      Whether those at addresses that are not of the public Internet are not asked.
  ///   - proxies:         Through whom they are asked; `nil` leaves it to the environment of the process.
  ///   - stapledResponse: What the server has sent along; about its own certificate.
  package init(
    asksResponders: Bool, readsLists: Bool, prefersLists: Bool, requiresAnswer: Bool, usesNetwork: Bool,
    publicOnly: Bool, proxies: ProxyTable?,
    lists: RevocationLists, stapledResponse: Data?
  ) {
    self.asksResponders = asksResponders
    self.readsLists = readsLists
    self.prefersLists = prefersLists
    self.requiresAnswer = requiresAnswer
    self.usesNetwork = usesNetwork
    self.publicOnly = publicOnly
    self.proxies = proxies
    self.lists = lists
    self.stapledResponse = stapledResponse
  }

  /// What is wrong with `path`, from the server's certificate to the trusted one, which nobody can revoke.
  package func fault(of path: [X509Certificate]) -> ChainFault? {
    let now = OpenSSLTime.now
    for (depth, (certificate, issuer)) in zip(path, path.dropFirst()).enumerated() {
      switch status(of: certificate, issuer: issuer, isLeaf: depth == 0, at: now) {
      case .good: continue
      case .revoked: return .revoked(depth: depth)
      case .listed(let reason): return .listed(reason, depth: depth)
      case .unknown(let reason): if requiresAnswer { return .revocationUnknown(reason, depth: depth) }
      }
    }
    return nil
  }

  private func status(
    of certificate: X509Certificate, issuer: X509Certificate, isLeaf: Bool, at now: Int
  ) -> RevocationStatus {
    // What is there already comes before what has to be waited for.
    var reasons: [String] = []
    var sources: [() -> RevocationStatus?] = []
    let question = OCSPQuestion(certificate, issuer: issuer)
    let given = { lists.status(of: certificate, issuer: issuer, at: now) }
    let stapled = { isLeaf ? stapledResponse.map { question.status(in: $0, at: now) } : nil }
    let asked = { ask(question, at: certificate.statusURLs, now) }
    let fetched = { fetch(certificate, issuer, now) }
    sources.append(given)
    if asksResponders { sources.append(stapled) }
    let responders = asksResponders ? [asked] : []
    let files = readsLists ? [fetched] : []
    if usesNetwork { sources += prefersLists ? files + responders : responders + files }
    for source in sources {
      switch source() {
      case .good(let end): return .good(until: end)
      case .revoked: return .revoked
      case .listed(let reason): return .listed(reason)
      case .unknown(let reason): reasons.append(reason)
      case nil: break
      }
    }
    return .unknown(reasons.joined(separator: ", "))
  }

  private func ask(_ question: OCSPQuestion, at urls: [String], _ now: Int) -> RevocationStatus? {
    if let known = RevocationMemory.shared.answer(to: question, at: now) { return known }
    guard let request = question.request else { return nil }
    var last: RevocationStatus?
    for url in urls.prefix(3) {
      let response = RevocationDownload.response(
        from: url, to: request, publicOnly: publicOnly, proxies: proxies)
      guard let response else {
        last = .unknown("the OCSP responder \(url) does not answer")
        continue
      }
      let status = question.status(in: response, at: now)
      if case .unknown = status {
        last = status
        continue
      }
      if let end = status.end(revokedUntil: now + 3600) {
        RevocationMemory.shared.keep(status, for: question, until: end, at: now)
      }
      return status
    }
    return last ?? .unknown("the certificate names no OCSP responder")
  }

  private func fetch(_ certificate: X509Certificate, _ issuer: X509Certificate, _ now: Int)
    -> RevocationStatus?
  {
    var last: RevocationStatus?
    for url in certificate.listURLs.prefix(3) {
      if let kept = RevocationMemory.shared.list(at: url, at: now) {
        let status = RevocationLists(kept).status(of: certificate, issuer: issuer, at: now)
        // What is kept may be of another issuer, whose certificates name the same place.
        if case .unknown = status {} else { return status }
      }
      guard let data = RevocationDownload.list(at: url, publicOnly: publicOnly, proxies: proxies),
        let list = RevocationList.all(in: data)
      else {
        last = .unknown("there is no list at \(url)")
        continue
      }
      let status = RevocationLists(list).status(of: certificate, issuer: issuer, at: now)
      if case .unknown = status {
        last = status
        continue
      }
      // Kept only now: anybody can put something there that nobody has signed.
      if let end = list.compactMap(\.end).min(), end > now {
        RevocationMemory.shared.keep(list, at: url, size: data.count, until: end)
      }
      return status
    }
    return last ?? .unknown("the certificate names no place of a list")
  }

  /// Forgets what others have said in this process; for tests.
  package static func forgetAnswers() { RevocationMemory.shared.removeAll() }
}

extension RevocationStatus {
  fileprivate func end(revokedUntil end: Int) -> Int? {
    switch self {
    case .good(let until): until
    case .revoked: end
    case .listed, .unknown: nil
    }
  }
}

/// What is known about whether a certificate was revoked.
package enum RevocationStatus: Sendable, Equatable {
  /// Its issuer says that it was not. The time, in seconds since 1970, is how long that may be believed; `nil`
  /// when the issuer does not say.
  case good(until: Int?)
  case revoked
  /// A list names it, and cannot be used; the sentence tells why.
  case listed(String)
  /// Nobody who may say it has said anything. The sentence tells why, for the message of an error.
  case unknown(String)

  /// Clocks of issuers and clients differ by no more than this, in seconds.
  static let skew = 300
}
