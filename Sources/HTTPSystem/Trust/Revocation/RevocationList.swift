import COpenSSL
package import FoundationEssentials
import HTTPWire
import Synchronization

/// A list of revoked certificates (CRL, RFC 5280 §5) of OpenSSL.
///
/// Unchecked: the list is only read, and OpenSSL locks its own cached values.
final class RevocationList: @unchecked Sendable {
  private let pointer: OpaquePointer
  /// Whether an entry has a critical extension that is not understood. The list says nothing about certificates that it
  /// does not name (RFC 5280 §5.3).
  private let hasUnknownEntries: Bool

  private init(owning pointer: OpaquePointer) {
    self.pointer = pointer
    hasUnknownEntries = openssl_list_has_unknown_entries(pointer) != 0
  }

  deinit { X509_CRL_free(pointer) }

  /// The time of the next update, in seconds since 1970; `nil` if the list has none.
  var end: Int? { OpenSSLTime.seconds(X509_CRL_get0_nextUpdate(pointer)) }

  /// The most lists of a download. The URL in a certificate leads to a single list (RFC 5280 §4.2.1.13), but a server
  /// may send several in a PEM text. An attacker can send a hundred thousand, and their signatures are verified.
  static let downloadLimit = 16

  /// Returns all lists of a PEM text, or the one in DER bytes; `nil` if the bytes are neither, if a list is broken, or
  /// if there are more than `limit`.
  static func all(in data: Data, limit: Int = .max) -> [RevocationList]? {
    ERR_clear_error()
    defer { ERR_clear_error() }
    if let one = one(der: data) { return [one] }
    guard let memory = OpenSSLMemory(reading: data) else { return nil }
    var lists: [RevocationList] = []
    while let pointer = openssl_next_list(memory.pointer) {
      lists.append(RevocationList(owning: pointer))
      guard lists.count <= limit else { return nil }
    }
    // OpenSSL reports the end of the text as an error, too.
    let isEnd = openssl_error_reason(ERR_peek_last_error()) == PEM_R_NO_START_LINE
    return isEnd && !lists.isEmpty && lists.count == beginnings(in: data) ? lists : nil
  }

  /// Returns the number of lists that a reader would see in a PEM text. OpenSSL ignores a list that begins after a
  /// space, or in a line that ends with a carriage return alone. Then the certificates that it revokes would be
  /// trusted.
  private static func beginnings(in text: Data) -> Int {
    let mark = Data("-----BEGIN X509 CRL-----".utf8)
    var count = 0
    var rest = text[...]
    while let range = rest.firstRange(of: mark) {
      let before = rest[..<range.lowerBound]
      let end = before.lastIndex { $0 == 0x0A || $0 == 0x0D } ?? before.startIndex
      if before[end...].allSatisfy({ $0 <= 0x20 || $0 >= 0x80 }) { count += 1 }
      rest = rest[range.upperBound...]
    }
    return count
  }

  private static func one(der: Data) -> RevocationList? {
    der.withUnsafeBytes { bytes -> RevocationList? in
      var position = bytes.bindMemory(to: UInt8.self).baseAddress
      guard let start = position, let pointer = d2i_X509_CRL(nil, &position, bytes.count) else { return nil }
      let list = RevocationList(owning: pointer)
      return position == start + bytes.count ? list : nil
    }
  }

  /// Returns the status of a certificate of `issuer` by this list. Returns `nil` if the list does not concern it, or
  /// was not signed by its issuer.
  func status(
    of certificate: X509Certificate, issuer: X509Certificate, at now: Int, _ signatures: inout SignatureChecks
  ) -> RevocationStatus? {
    defer { ERR_clear_error() }
    guard let scope = scope(for: certificate), signatures.isSigned(self, by: issuer) else { return nil }
    let obstacle = obstacle(in: scope, issuer)
    let hasBegun = OpenSSLTime.seconds(X509_CRL_get0_lastUpdate(pointer)).map {
      $0 <= now + RevocationStatus.skew
    }
    // A revoked certificate stays revoked, even if the list is old.
    if names(certificate) {
      return (obstacle ?? (hasBegun == true ? nil : "it is not valid yet")).map { .listed($0) } ?? .revoked
    }
    guard hasBegun == true else { return .unknown("the list of its issuer is not valid yet") }
    guard scope == .whole, obstacle == nil else { return nil }
    guard openssl_is_weak_signature(X509_CRL_get_signature_nid(pointer)) == 0 else {
      return .unknown("the signature of the list of its issuer is too weak")
    }
    guard let end else { return .unknown("the list of its issuer does not say how long it is valid") }
    guard now <= end + RevocationStatus.skew else { return .unknown("the list of its issuer is out of date") }
    return .good(until: end)
  }

  /// Whether the list has an entry for this certificate, by the name of the issuer and the serial number. Signatures
  /// are not verified. An entry that withdraws a revocation (`removeFromCRL`) does not count.
  func names(_ certificate: X509Certificate) -> Bool {
    var entry: OpaquePointer?
    return X509_CRL_get0_by_cert(pointer, &entry, certificate.pointer) == 1
  }

  /// Whether the list may have certificates of other issuers than its own (indirect, RFC 5280 §5.2.5).
  var isIndirect: Bool {
    guard let raw = X509_CRL_get_ext_d2i(pointer, NID_issuing_distribution_point, nil, nil) else {
      return false
    }
    let point = raw.assumingMemoryBound(to: ISSUING_DIST_POINT.self)
    defer { ISSUING_DIST_POINT_free(point) }
    return point.pointee.indirectCRL > 0
  }

  /// The reason why an indirect list is not used.
  static let indirect = "it has certificates of other issuers (indirect)"

  /// Whether the list has the name of an issuer.
  func names(issuer: X509Certificate) -> Bool {
    X509_NAME_cmp(X509_CRL_get_issuer(pointer), X509_get_subject_name(issuer.pointer)) == 0
  }

  /// Whether the key of an issuer fits the signature.
  func isSigned(by issuer: X509Certificate) -> Bool {
    guard let key = X509_get0_pubkey(issuer.pointer) else { return false }
    return X509_CRL_verify(pointer, key) == 1
  }

  private enum Scope: Equatable {
    /// A complete list: every certificate that it does not name is good.
    case whole
    /// A list that names some of the revoked certificates.
    case part
    /// A list that must not be used, with the reason.
    case unusable(String)
  }

  /// Returns the reason why the list must not be used, if there is one.
  private func obstacle(in scope: Scope, _ issuer: X509Certificate) -> String? {
    if case .unusable(let reason) = scope { return reason }
    guard X509_get_key_usage(issuer.pointer) & UInt32(KU_CRL_SIGN) == 0 else { return nil }
    return "its issuer may not sign lists (cRLSign)"
  }

  /// Returns the part of the certificates like this one that the list covers; `nil` if it covers none.
  private func scope(for certificate: X509Certificate) -> Scope? {
    // Unknown critical extensions must not be ignored (RFC 5280 §5.2). A list of changes cannot be used alone.
    let understood = [NID_issuing_distribution_point, NID_authority_key_identifier, NID_crl_number]
    if X509_CRL_get_ext_by_NID(pointer, NID_delta_crl, -1) >= 0 {
      return .unusable("it holds only what has changed since another list (delta)")
    }
    for index in 0..<X509_CRL_get_ext_count(pointer) {
      guard let rule = X509_CRL_get_ext(pointer, index), X509_EXTENSION_get_critical(rule) == 1 else {
        continue
      }
      guard understood.contains(OBJ_obj2nid(X509_EXTENSION_get_object(rule))) else {
        return .unusable("it has a critical extension that is not understood")
      }
    }
    if hasUnknownEntries { return .unusable("an entry has a critical extension that is not understood") }
    guard X509_CRL_get_ext_by_NID(pointer, NID_issuing_distribution_point, -1) >= 0 else { return .whole }
    guard let raw = X509_CRL_get_ext_d2i(pointer, NID_issuing_distribution_point, nil, nil) else {
      return .unusable("its distribution point cannot be read")
    }
    let point = raw.assumingMemoryBound(to: ISSUING_DIST_POINT.self)
    defer { ISSUING_DIST_POINT_free(point) }
    return scope(of: point.pointee, openssl_list_names(point), for: certificate)
  }

  private func scope(
    of point: ISSUING_DIST_POINT, _ names: OpaquePointer?, for certificate: X509Certificate
  ) -> Scope? {
    // Attribute certificates may have the numbers of other certificates.
    guard point.onlyattr <= 0 else { return nil }
    // The entries of other issuers need extensions that are not read here.
    if point.indirectCRL > 0 { return .unusable(Self.indirect) }
    guard point.onlyuser <= 0 || !certificate.isAuthority, point.onlyCA <= 0 || certificate.isAuthority else {
      return .unusable("it is for other kinds of certificates")
    }
    if point.onlysomereasons != nil { return .part }
    guard point.distpoint != nil else { return .whole }
    // Issuers with many certificates split their list. The certificate names the part that would list it.
    let places = names.map { OpenSSLNames.texts(of: $0, kind: GEN_URI) } ?? []
    return places.contains(where: Set(certificate.listURLs).contains) ? .whole : .part
  }
}

/// The signatures of certificates and lists that were verified. Each one is verified once with each key, because
/// servers choose the certificates, and the keys in them may be slow.
package struct SignatureChecks {
  private enum Signed: Hashable {
    case certificate(X509Certificate)
    case list(ObjectIdentifier)
  }

  private var results: [Data: [Signed: Bool]] = [:]

  /// The number of signatures that were verified.
  package var count: Int { results.values.reduce(0) { $0 + $1.count } }

  package init() {}

  mutating func isSigned(_ list: RevocationList, by issuer: X509Certificate) -> Bool {
    guard list.names(issuer: issuer) else { return false }
    return result(.list(ObjectIdentifier(list)), issuer) { list.isSigned(by: issuer) }
  }

  /// Returns the signers of a certificate among the first ones of `shown`.
  mutating func issuers(
    of certificate: X509Certificate, among shown: [X509Certificate]
  ) -> [X509Certificate] {
    var issuers: [X509Certificate] = []
    for candidate in shown.prefix(PathEffort.certificateLimit)
    where candidate != certificate && !issuers.contains(candidate) {
      guard X509_check_issued(candidate.pointer, certificate.pointer) == X509_V_OK else { continue }
      let isIssuer = result(.certificate(certificate), candidate) { certificate.isSigned(by: candidate) }
      if isIssuer { issuers.append(candidate) }
    }
    return issuers
  }

  private mutating func result(_ signed: Signed, _ issuer: X509Certificate, _ verify: () -> Bool) -> Bool {
    guard let key = issuer.publicKey else { return false }
    if let known = results[key]?[signed] { return known }
    let result = verify()
    results[key, default: [:]][signed] = result
    return result
  }
}

/// The lists of revoked certificates that the user gave.
package struct RevocationLists: Sendable {
  private let lists: [RevocationList]

  package static let none = RevocationLists([])

  init(_ lists: [RevocationList]) { self.lists = lists }

  /// The lists of users that were loaded, for the loop, attempts and the threads of users.
  private static let kept = TrackedMutex(SizedTable<[Data], RevocationLists>(countLimit: 16))

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
    let bytes = texts.reduce(0) { $0 + $1.count }
    kept.withLock { $0.keep(lists, for: texts, bytes: bytes) }
    return .success(lists)
  }

  /// Returns the status of one certificate by all lists. The certificate is revoked if one list says so.
  func status(of certificate: X509Certificate, issuer: X509Certificate, at now: Int) -> RevocationStatus {
    var signatures = SignatureChecks()
    return status(of: certificate, issuer: issuer, at: now, &signatures)
  }

  /// Returns the same, and stores the signatures that were verified.
  func status(
    of certificate: X509Certificate, issuer: X509Certificate, at now: Int, _ signatures: inout SignatureChecks
  ) -> RevocationStatus {
    var best: RevocationStatus?
    for list in lists {
      switch list.status(of: certificate, issuer: issuer, at: now, &signatures) {
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
  /// - Parameter presented: All that the server sent. The issuer of a certificate that is trusted itself is found
  ///   there, if it is there.
  func fault(of path: [X509Certificate], presented: [X509Certificate], at now: Int) -> ChainFault? {
    guard !lists.isEmpty else { return nil }
    var signatures = SignatureChecks()
    for (depth, certificate) in path.enumerated() {
      let issuers =
        depth + 1 < path.count ? [path[depth + 1]] : signatures.issuers(of: certificate, among: presented)
      if let fault = fault(of: certificate, issuers, depth, now, &signatures) { return fault }
    }
    return nil
  }

  /// Returns the fault of the first certificate of a chain that is revoked, if one is. The chain need not lead to a
  /// trusted certificate.
  package func fault(
    ofLinked chain: [X509Certificate], presented: [X509Certificate]
  ) -> ChainFault? {
    var signatures = SignatureChecks()
    return fault(ofLinked: chain, presented: presented, &signatures)
  }

  /// Returns the same, and counts the signatures that were verified.
  package func fault(
    ofLinked chain: [X509Certificate], presented: [X509Certificate], _ signatures: inout SignatureChecks
  ) -> ChainFault? {
    guard !lists.isEmpty else { return nil }
    let now = OpenSSLTime.now
    for (depth, certificate) in chain.enumerated() {
      let issuers = signatures.issuers(of: certificate, among: chain + presented)
      if let fault = fault(of: certificate, issuers, depth, now, &signatures) { return fault }
    }
    return nil
  }

  /// Checks one certificate. A server may withhold the certificate of its issuer. Then the certificate is revoked if a
  /// list of an issuer with that name has it, because the program trusts its own lists.
  private func fault(
    of certificate: X509Certificate, _ issuers: [X509Certificate], _ depth: Int, _ now: Int,
    _ signatures: inout SignatureChecks
  ) -> ChainFault? {
    if issuers.isEmpty { return lists.contains { $0.names(certificate) } ? .revoked(depth: depth) : nil }
    for issuer in issuers {
      switch status(of: certificate, issuer: issuer, at: now, &signatures) {
      case .revoked: return .revoked(depth: depth)
      case .listed(let reason): return .listed(reason, depth: depth)
      case .good, .unknown: continue
      }
    }
    // An indirect list has the signature of another issuer. The program trusts it.
    return lists.contains { $0.names(certificate) && $0.isIndirect }
      ? .listed(RevocationList.indirect, depth: depth) : nil
  }

  private static let unreadable = ChainFault(
    kind: .certificateUntrusted,
    message: "A list of revoked certificates (CRL) could not be read; check that it is DER or complete PEM.")
}
