package import FoundationEssentials
import HTTPWire
import Synchronization

/// Requests to OCSP responders and for lists. The requests block the calling thread.
package protocol RevocationDownloads: Sendable {
  /// Returns the response of the responder at `url`; `nil` if there is none.
  func response(from url: String, to request: Data) -> Data?
  /// Returns the list at `url`; `nil` if there is none.
  func list(at url: String) -> Data?
}

/// The revocation check of a verified path.
///
/// Only for paths that lead to a trusted certificate, because the check connects to URLs in the certificates.
package struct RevocationCheck: Sendable {
  private let asksResponders: Bool
  private let readsLists: Bool
  private let prefersLists: Bool
  private let requiresAnswer: Bool
  private let downloads: (any RevocationDownloads)?
  private let lists: RevocationLists
  private let stapledResponse: Data?

  /// Makes a check that asks responders, reads lists, or does both.
  ///
  /// - Parameters:
  ///   - requiresAnswer:  Whether a certificate with an unknown status is refused.
  ///   - downloads:       Requests responders and lists, for which the thread waits; `nil` requests nothing.
  ///   - stapledResponse: The stapled OCSP response of the server about its own certificate.
  package init(
    asksResponders: Bool, readsLists: Bool, prefersLists: Bool, requiresAnswer: Bool,
    downloads: (any RevocationDownloads)?, lists: RevocationLists, stapledResponse: Data?
  ) {
    self.asksResponders = asksResponders
    self.readsLists = readsLists
    self.prefersLists = prefersLists
    self.requiresAnswer = requiresAnswer
    self.downloads = downloads
    self.lists = lists
    self.stapledResponse = stapledResponse
  }

  /// Returns the fault of `path`, from the server's certificate to the trusted one. The trusted one itself is not
  /// checked.
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
    // Local sources come before requests.
    var reasons: [String] = []
    var sources: [() -> RevocationStatus?] = []
    let question = OCSPQuery(certificate, issuer: issuer)
    let given = { lists.status(of: certificate, issuer: issuer, at: now) }
    let stapled = { isLeaf ? stapledResponse.map { question.status(in: $0, at: now) } : nil }
    let asked = { downloads.flatMap { ask(question, at: certificate.statusURLs, now, by: $0) } }
    let fetched = { downloads.flatMap { fetch(certificate, issuer, now, by: $0) } }
    sources.append(given)
    if asksResponders { sources.append(stapled) }
    let responders = asksResponders ? [asked] : []
    let files = readsLists ? [fetched] : []
    if downloads != nil { sources += prefersLists ? files + responders : responders + files }
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

  private func ask(
    _ question: OCSPQuery, at urls: [String], _ now: Int, by downloads: any RevocationDownloads
  ) -> RevocationStatus? {
    if let known = RevocationCache.shared.answer(to: question, at: now) { return known }
    guard let request = question.request else { return nil }
    var last: RevocationStatus?
    for url in urls.prefix(3) {
      guard let response = downloads.response(from: url, to: request) else {
        last = .unknown("the OCSP responder \(url) does not answer")
        continue
      }
      let status = question.status(in: response, at: now)
      if case .unknown = status {
        last = status
        continue
      }
      if let end = status.end(revokedUntil: now + 3600) {
        RevocationCache.shared.keep(status, for: question, until: end, at: now)
      }
      return status
    }
    return last ?? .unknown("the certificate names no OCSP responder")
  }

  private func fetch(
    _ certificate: X509Certificate, _ issuer: X509Certificate, _ now: Int,
    by downloads: any RevocationDownloads
  ) -> RevocationStatus? {
    var last: RevocationStatus?
    for url in certificate.listURLs.prefix(3) {
      if let kept = RevocationCache.shared.list(at: url, at: now) {
        let status = RevocationLists(kept).status(of: certificate, issuer: issuer, at: now)
        // The cached list may be that of another issuer whose certificates name the same URL.
        if case .unknown = status {} else { return status }
      }
      guard let data = downloads.list(at: url),
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
      // Only a list with a valid signature is cached, because an attacker can replace the list at the URL.
      if let end = list.compactMap(\.end).min(), end > now {
        RevocationCache.shared.keep(list, at: url, size: data.count, until: end)
      }
      return status
    }
    return last ?? .unknown("the certificate names no place of a list")
  }
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

/// The revocation status of a certificate.
package enum RevocationStatus: Sendable, Equatable {
  /// The certificate is not revoked. The time is the end of the answer's validity, in seconds since 1970; `nil` if the
  /// issuer gives none.
  case good(until: Int?)
  case revoked
  /// A list that cannot be used has the certificate. The text is the reason.
  case listed(String)
  /// No valid answer is known. The text is the reason, for the message of an error.
  case unknown(String)

  /// The largest accepted difference between the clocks of issuers and clients, in seconds.
  static let skew = 300
}

/// The cached answers of responders and lists, as long as they are valid. All sessions of the process share one cache,
/// because the answers are signed.
final class RevocationCache: Sendable {
  static let shared = RevocationCache()

  private struct State {
    var answers: [Data: (status: RevocationStatus, end: Int)] = [:]
    var lists: [String: (list: [RevocationList], end: Int, size: Int)] = [:]
  }

  private let state = TrackedMutex(State())
  /// The limits keep the memory of programs with many servers bounded.
  private let answerLimit = 1024
  private let listSizeLimit = 32 << 20

  func answer(to question: OCSPQuery, at now: Int) -> RevocationStatus? {
    let key = question.key
    return state.withLock { state in
      guard let kept = state.answers[key], now <= kept.end else { return nil }
      return kept.status
    }
  }

  /// Keeps an answer until `end`, in seconds since 1970.
  func keep(_ status: RevocationStatus, for question: OCSPQuery, until end: Int, at now: Int) {
    let key = question.key
    state.withLock { state in
      if state.answers.count >= answerLimit {
        state.answers = state.answers.filter { now <= $0.value.end }
        if state.answers.count >= answerLimit { state.answers.removeAll() }
      }
      state.answers[key] = (status, end)
    }
  }

  func list(at url: String, at now: Int) -> [RevocationList]? {
    state.withLock { state in
      guard let kept = state.lists[url], now <= kept.end else { return nil }
      return kept.list
    }
  }

  /// Keeps the lists of `url`, which have `size` bytes, until `end`.
  func keep(_ list: [RevocationList], at url: String, size: Int, until end: Int) {
    guard size <= listSizeLimit else { return }
    state.withLock { state in
      let replaced = state.lists[url]?.size ?? 0
      let total = state.lists.values.reduce(size - replaced) { $0 + $1.size }
      if total > listSizeLimit { state.lists.removeAll() }
      state.lists[url] = (list, end, size)
    }
  }
}
