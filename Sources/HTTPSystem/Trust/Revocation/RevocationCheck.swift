import COpenSSL
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
    var reasons: [String] = []
    let given = lists.status(of: certificate, issuer: issuer, at: now)
    var isListedAsGood = false
    switch given {
    case .revoked, .listed: return given
    // A responder may know of a revocation that is newer than the list.
    case .good: isListedAsGood = true
    case .unknown(let reason): reasons.append(reason)
    }
    for source in sources(
      for: certificate, issuer: issuer, isLeaf: isLeaf, isListedAsGood: isListedAsGood, at: now)
    {
      switch source() {
      case .good(let end): return .good(until: end)
      case .revoked: return .revoked
      case .listed(let reason): return .listed(reason)
      case .unknown(let reason): reasons.append(reason)
      case nil: break
      }
    }
    return isListedAsGood ? given : .unknown(reasons.joined(separator: ", "))
  }

  /// Returns what is asked besides the given lists, in this order. Local sources come before requests. A list that was
  /// given replaces the issuer's, and also its responder if lists are preferred.
  private func sources(
    for certificate: X509Certificate, issuer: X509Certificate, isLeaf: Bool, isListedAsGood: Bool,
    at now: Int
  ) -> [() -> RevocationStatus?] {
    let question = OCSPQuery(certificate, issuer: issuer)
    var sources: [() -> RevocationStatus?] = []
    if asksResponders, isLeaf, let stapledResponse {
      sources.append { question.status(in: stapledResponse, at: now) }
    }
    guard let downloads else { return sources }
    let asked = { ask(question, at: certificate.statusURLs, now, by: downloads) }
    let fetched = { fetch(certificate, issuer, now, by: downloads) }
    let responders = asksResponders && !(prefersLists && isListedAsGood) ? [asked] : []
    let files = readsLists && !isListedAsGood ? [fetched] : []
    return sources + (prefersLists ? files + responders : responders + files)
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
        // The cached list may belong to another issuer with the same URL in its certificates.
        if case .unknown = status {} else { return status }
      }
      let limit = RevocationList.downloadLimit
      guard let data = downloads.list(at: url),
        let downloaded = RevocationList.all(in: data, limit: limit)
      else {
        last = .unknown("there is no list at \(url), or there are more than \(limit)")
        continue
      }
      var signatures = SignatureChecks()
      let status = RevocationLists(downloaded).status(of: certificate, issuer: issuer, at: now, &signatures)
      if case .unknown = status {
        last = status
        continue
      }
      // A list with the name of the issuer is only cached if the issuer signed it, because an attacker can replace the
      // list at the URL, or add lists to it. Lists of other issuers are verified when a certificate of theirs is.
      let kept = downloaded.filter { !$0.names(issuer: issuer) || signatures.isSigned($0, by: issuer) }
      if let end = kept.compactMap(\.end).min(), end > now {
        RevocationCache.shared.keep(kept, at: url, size: data.count, until: end)
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

  /// The answers of responders until they expire, for the evaluators of the process.
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

/// An OCSP query about one certificate (RFC 6960), and the evaluation of its response.
struct OCSPQuery: Sendable {
  private let certificate: X509Certificate
  private let issuer: X509Certificate

  init(_ certificate: X509Certificate, issuer: X509Certificate) {
    self.certificate = certificate
    self.issuer = issuer
  }

  /// The key of the query in a cache: serial numbers are unique for an issuer.
  var key: Data { X509PublicKey.digest(of: issuer.der) + Data(certificate.serialNumber.utf8) }

  /// The encoded request, without a nonce, because most responders prepare their responses (RFC 5019).
  var request: Data? {
    defer { ERR_clear_error() }
    guard let request = OCSP_REQUEST_new() else { return nil }
    defer { OCSP_REQUEST_free(request) }
    guard let id = OCSP_cert_to_id(EVP_sha1(), certificate.pointer, issuer.pointer) else { return nil }
    guard OCSP_request_add0_id(request, id) != nil else {
      OCSP_CERTID_free(id)
      return nil
    }
    return OpenSSLBytes.of { i2d_OCSP_REQUEST(request, $0) }
  }

  /// Returns the status in a response, if its signer is authorized.
  func status(in response: Data, at now: Int) -> RevocationStatus {
    defer { ERR_clear_error() }
    let parsed = response.withUnsafeBytes { bytes -> OpaquePointer? in
      var position = bytes.bindMemory(to: UInt8.self).baseAddress
      return position == nil ? nil : d2i_OCSP_RESPONSE(nil, &position, bytes.count)
    }
    guard let parsed else { return .unknown("the OCSP response is broken") }
    defer { OCSP_RESPONSE_free(parsed) }
    let result = OCSP_response_status(parsed)
    guard result == OCSP_RESPONSE_STATUS_SUCCESSFUL, let basic = OCSP_response_get1_basic(parsed) else {
      return .unknown("the OCSP responder answered with status \(result)")
    }
    defer { OCSP_BASICRESP_free(basic) }
    guard isSigned(basic) else { return .unknown("the OCSP response was not signed by the issuer") }
    let answer = answer(in: basic, at: now)
    if case .good = answer, openssl_is_weak_signature(openssl_signature_of(basic)) != 0 {
      return .unknown("the signature of the OCSP response is too weak")
    }
    return answer
  }

  /// Whether the response is signed by the issuer, or by a responder that the issuer authorized (RFC 6960 §4.2.2.2).
  private func isSigned(_ basic: OpaquePointer) -> Bool {
    // Only the issuer is trusted, because a responder of another authority must not answer for it.
    guard let anchors = TrustAnchors([issuer]), let stack = openssl_certificate_stack() else { return false }
    defer { openssl_free_certificates(stack) }
    guard let parameters = X509_STORE_get0_param(anchors.store),
      openssl_push_certificate(stack, issuer.pointer) == 1
    else { return false }
    X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_PARTIAL_CHAIN))
    X509_VERIFY_PARAM_set_auth_level(parameters, 2)
    return OCSP_basic_verify(basic, stack, anchors.store, 0) == 1
  }

  private func answer(in basic: OpaquePointer, at now: Int) -> RevocationStatus {
    var best = RevocationStatus.unknown("the OCSP response is about other certificates")
    for index in 0..<max(0, OCSP_resp_count(basic)) {
      guard let single = OCSP_resp_get0(basic, index), isAbout(single) else { continue }
      switch status(of: single, at: now) {
      case .revoked: return .revoked
      case .good(let end): best = .good(until: end)
      case .unknown(let reason): if case .unknown = best { best = .unknown(reason) }
      // Only lists have this status.
      case .listed: continue
      }
    }
    return best
  }

  private func isAbout(_ single: OpaquePointer) -> Bool {
    guard let id = OCSP_SINGLERESP_get0_id(single) else { return false }
    var object: OpaquePointer?
    // Responders may identify certificates by any digest.
    guard OCSP_id_get0_info(nil, &object, nil, nil, id) == 1, let object,
      let digest = openssl_digest_of(object),
      let own = OCSP_cert_to_id(digest, certificate.pointer, issuer.pointer)
    else { return false }
    defer { OCSP_CERTID_free(own) }
    return OCSP_id_cmp(own, id) == 0
  }

  private func status(of single: OpaquePointer, at now: Int) -> RevocationStatus {
    var start: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
    var end: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
    let status = OCSP_single_get0_status(single, nil, nil, &start, &end)
    guard let begin = OpenSSLTime.seconds(start), begin <= now + RevocationStatus.skew else {
      return .unknown("the OCSP response is not valid yet")
    }
    let limit = OpenSSLTime.seconds(end)
    // A response without an end is accepted for a day, because newer information is always available (RFC 6960
    // §4.2.2.1).
    let age = limit ?? begin + 86_400
    guard now <= age + RevocationStatus.skew else { return .unknown("the OCSP response is out of date") }
    switch status {
    case V_OCSP_CERTSTATUS_GOOD: return .good(until: limit)
    case V_OCSP_CERTSTATUS_REVOKED: return .revoked
    default: return .unknown("the OCSP responder does not know the certificate")
    }
  }
}
