import COpenSSL

/// Answers for an authority whether certificates were revoked (OCSP, RFC 6960).
///
/// ```swift
/// let responder = StatusResponder(authority, revoked: [stolen])
/// let server = try HTTPTestServer(routes: .standard.adding("/ocsp", responder))
/// var options = TLSOptions()
/// options.stapledResponse = try responder.response(about: stolen)
/// ```
public struct StatusResponder: Sendable {
  /// The status of a certificate.
  public enum Status: Int32, Sendable {
    /// The certificate was not revoked.
    case good = 0
    /// The certificate was revoked.
    case revoked = 1
    /// The certificate is unknown to the responder.
    case unknown = 2
  }

  private let authority: TestIdentity
  private let revoked: [TestIdentity]
  /// The signer of responses; `nil`, the default, is the authority.
  public var signer: TestIdentity?
  /// The time of `thisUpdate` relative to now; an hour ago by default.
  public var issued: Duration = .seconds(-3600)
  /// The time of `nextUpdate` relative to now; `nil` omits it. A day by default.
  public var next: Duration? = .seconds(86_400)

  /// The digest of signatures; SHA-256 by default.
  public var digest: TestIdentity.Specification.Digest = .sha256

  /// Makes a responder for the certificates of `authority`; those in `revoked` are revoked.
  public init(_ authority: TestIdentity, revoked: [TestIdentity] = []) {
    self.authority = authority
    self.revoked = revoked
  }

  /// Returns the OCSP response for one certificate, as DER.
  ///
  /// - Parameters:
  ///   - identity: The certificate.
  ///   - status:   The reported status; `nil`, the default, is the real one.
  /// - Throws: ``ServerError/tls(_:)``.
  public func response(about identity: TestIdentity, status: Status? = nil) throws(ServerError) -> [UInt8] {
    ERR_clear_error()
    let issuer = try authority.leaf
    let certificate = try identity.leaf
    guard let id = OCSP_cert_to_id(EVP_sha1(), certificate.pointer, issuer.pointer) else {
      throw .openSSL("naming a certificate")
    }
    defer { OCSP_CERTID_free(id) }
    let isRevoked = revoked.contains { $0.certificatePEM == identity.certificatePEM }
    return try signed([(id, status ?? (isRevoked ? .revoked : .good))])
  }

  /// Returns the OCSP response to a request, as DER.
  ///
  /// - Throws: ``ServerError/tls(_:)`` if the bytes are not an OCSP request.
  public func response(to request: [UInt8]) throws(ServerError) -> [UInt8] {
    ERR_clear_error()
    let parsed = request.withUnsafeBufferPointer { bytes -> OpaquePointer? in
      var position = bytes.baseAddress
      return position == nil ? nil : d2i_OCSP_REQUEST(nil, &position, bytes.count)
    }
    guard let parsed else { throw .openSSL("reading a request for a status") }
    defer { OCSP_REQUEST_free(parsed) }
    var numbers: [CertificateHandle] = []
    for identity in revoked { numbers.append(try identity.leaf) }
    var answers: [(OpaquePointer, Status)] = []
    for index in 0..<max(0, OCSP_request_onereq_count(parsed)) {
      guard let single = OCSP_request_onereq_get0(parsed, index), let id = OCSP_onereq_get0_id(single) else {
        continue
      }
      var number: UnsafeMutablePointer<ASN1_INTEGER>?
      guard OCSP_id_get0_info(nil, nil, nil, &number, id) == 1 else { throw .openSSL("reading a request") }
      let isRevoked = numbers.contains { ASN1_INTEGER_cmp(X509_get0_serialNumber($0.pointer), number) == 0 }
      answers.append((id, isRevoked ? .revoked : .good))
    }
    return try signed(answers)
  }

  private func signed(_ answers: [(id: OpaquePointer, status: Status)]) throws(ServerError) -> [UInt8] {
    guard let basic = OCSP_BASICRESP_new() else { throw .openSSL("making a status") }
    defer { OCSP_BASICRESP_free(basic) }
    guard let start = authority.time(issued) else { throw .openSSL("making a status") }
    defer { ASN1_TIME_free(start) }
    let end = next.flatMap { authority.time($0) }
    defer { ASN1_TIME_free(end) }
    for (id, status) in answers {
      let isAdded = OCSP_basic_add1_status(
        basic, id, status.rawValue, OCSP_REVOKED_STATUS_KEYCOMPROMISE, start, start, end)
      guard isAdded != nil else { throw .openSSL("making a status") }
    }
    let signer = signer ?? authority
    let certificate = try signer.leaf
    let key = try PEM.key(signer.privateKeyPEM)
    guard OCSP_basic_sign(basic, certificate.pointer, key.pointer, digest.algorithm, nil, 0) == 1,
      let response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic)
    else { throw .openSSL("signing a status") }
    defer { OCSP_RESPONSE_free(response) }
    return try authority.bytes { i2d_OCSP_RESPONSE(response, $0) }
  }
}

extension Routes {
  /// Adds a responder: requests that are posted to `pattern` are answered, others get 400.
  public func adding(_ pattern: String, _ responder: StatusResponder) -> Routes {
    adding(pattern, methods: ["POST"]) { request, _ in
      guard let response = try? responder.response(to: request.body) else { return .status(400) }
      return Reply.data(response).with(header: "Content-Type", value: "application/ocsp-response")
    }
  }
}

/// An extension that makes a revocation list unusable as a complete one.
public enum RevocationListRule: Sendable, Equatable {
  /// A critical extension that clients do not know (RFC 5280 §5.2).
  case unknown
  /// Such an extension in each entry (RFC 5280 §5.3).
  case unknownInEntries
  /// A list of the changes since list number 1 (RFC 5280 §5.2.4).
  case delta

  func add(to list: OpaquePointer) throws(ServerError) {
    switch self {
    case .unknown: try Self.addUnknown { X509_CRL_add_ext(list, $0, -1) }
    case .unknownInEntries: break
    case .delta:
      guard let number = ASN1_INTEGER_new() else { throw .openSSL("an extension of a list") }
      defer { ASN1_INTEGER_free(number) }
      guard ASN1_INTEGER_set(number, 1) == 1,
        X509_CRL_add1_ext_i2d(list, NID_delta_crl, number, 1, UInt(X509V3_ADD_DEFAULT)) == 1
      else { throw .openSSL("an extension of a list") }
    }
  }

  func add(toEntry entry: OpaquePointer) throws(ServerError) {
    if self == .unknownInEntries { try Self.addUnknown { X509_REVOKED_add_ext(entry, $0, -1) } }
  }

  private static func addUnknown(_ add: (OpaquePointer) -> Int32) throws(ServerError) {
    guard let kind = OBJ_txt2obj("1.2.3.4.5", 1), let value = ASN1_OCTET_STRING_new() else {
      throw .openSSL("an extension of a list")
    }
    defer {
      ASN1_OBJECT_free(kind)
      ASN1_OCTET_STRING_free(value)
    }
    guard ASN1_OCTET_STRING_set(value, [5, 0], 2) == 1,
      let made = X509_EXTENSION_create_by_OBJ(nil, kind, 1, value)
    else { throw .openSSL("an extension of a list") }
    defer { X509_EXTENSION_free(made) }
    guard add(made) == 1 else { throw .openSSL("an extension of a list") }
  }
}

extension TestIdentity {
  /// Makes a list of revoked certificates (CRL, RFC 5280 §5), signed by this authority, as DER.
  ///
  /// - Parameters:
  ///   - revoked:  The revoked certificates; the authority need not have issued them.
  ///   - issued:   The time of `thisUpdate` relative to now. Default: an hour ago.
  ///   - next:     The time of `nextUpdate` relative to now; `nil` omits it. Default: in a day.
  ///   - digest:   The digest of the signature. Default: SHA-256.
  ///   - rule:     An extension that makes the list unusable as a complete one. Default: none.
  /// - Throws: ``ServerError/tls(_:)``.
  public func revocationList(
    of revoked: [TestIdentity], issued: Duration = .seconds(-3600), next: Duration? = .seconds(86_400),
    digest: Specification.Digest = .sha256, rule: RevocationListRule? = nil
  ) throws(ServerError) -> [UInt8] {
    try revocationList(of: revoked, issued: issued, next: next, digest: digest) {
      (list) throws(ServerError) in
      try rule?.add(to: list)
    } extendEntry: { (entry) throws(ServerError) in
      try rule?.add(toEntry: entry)
    }
  }

  /// Makes a list for a part of the certificates, signed by this authority, as DER.
  ///
  /// - Parameters:
  ///   - scope:  The issuing distribution point (RFC 5280 §5.2.5) in the notation of OpenSSL, such as
  ///     `indirectCRL:TRUE`.
  ///   - issuer: The issuer of the certificates (RFC 5280 §5.3.3). Default: this authority.
  /// - Throws: ``ServerError/tls(_:)``.
  package func revocationList(
    of revoked: [TestIdentity], scope: String, issuer: TestIdentity? = nil
  ) throws(ServerError) -> [UInt8] {
    let issuer = try issuer?.leaf
    return try revocationList(of: revoked) { (list) throws(ServerError) in
      guard let made = X509V3_EXT_conf_nid(nil, nil, NID_issuing_distribution_point, "critical," + scope)
      else {
        throw .openSSL("an extension of a list")
      }
      defer { X509_EXTENSION_free(made) }
      guard X509_CRL_add_ext(list, made, -1) == 1 else { throw .openSSL("an extension of a list") }
    } extendEntry: { (entry) throws(ServerError) in
      guard let issuer else { return }
      guard openssl_set_issuer_of_entry(entry, X509_get_subject_name(issuer.pointer)) == 1 else {
        throw .openSSL("an extension of a list")
      }
    }
  }

  private func revocationList(
    of revoked: [TestIdentity], issued: Duration = .seconds(-3600), next: Duration? = .seconds(86_400),
    digest: Specification.Digest = .sha256, extend: (OpaquePointer) throws(ServerError) -> Void,
    extendEntry: (OpaquePointer) throws(ServerError) -> Void
  ) throws(ServerError) -> [UInt8] {
    ERR_clear_error()
    guard let list = X509_CRL_new() else { throw .openSSL("making a list") }
    defer { X509_CRL_free(list) }
    let certificate = try leaf
    guard let start = time(issued) else { throw .openSSL("making a list") }
    defer { ASN1_TIME_free(start) }
    guard X509_CRL_set_version(list, 1) == 1,
      X509_CRL_set_issuer_name(list, X509_get_subject_name(certificate.pointer)) == 1,
      X509_CRL_set1_lastUpdate(list, start) == 1
    else { throw .openSSL("making a list") }
    if let next {
      guard let end = time(next) else { throw .openSSL("making a list") }
      defer { ASN1_TIME_free(end) }
      guard X509_CRL_set1_nextUpdate(list, end) == 1 else { throw .openSSL("making a list") }
    }
    for identity in revoked { try add(identity, to: list, start, extendEntry) }
    try extend(list)
    let key = try PEM.key(privateKeyPEM)
    guard X509_CRL_sort(list) == 1, X509_CRL_sign(list, key.pointer, digest.algorithm) > 0 else {
      throw .openSSL("signing a list")
    }
    return try bytes { i2d_X509_CRL(list, $0) }
  }

  private func add(
    _ identity: TestIdentity, to list: OpaquePointer, _ time: UnsafeMutablePointer<ASN1_TIME>,
    _ extend: (OpaquePointer) throws(ServerError) -> Void
  ) throws(ServerError) {
    let certificate = try identity.leaf
    guard let entry = X509_REVOKED_new() else { throw .openSSL("filling a list") }
    do throws(ServerError) { try extend(entry) } catch {
      X509_REVOKED_free(entry)
      throw error
    }
    guard X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(certificate.pointer)) == 1,
      X509_REVOKED_set_revocationDate(entry, time) == 1, X509_CRL_add0_revoked(list, entry) == 1
    else {
      X509_REVOKED_free(entry)
      throw .openSSL("filling a list")
    }
  }

  var leaf: CertificateHandle {
    get throws(ServerError) {
      guard let certificate = try PEM.certificates(certificatePEM).first else {
        throw .tls("the identity has no certificate")
      }
      return certificate
    }
  }

  func time(_ offset: Duration) -> UnsafeMutablePointer<ASN1_TIME>? {
    X509_gmtime_adj(nil, Int(offset.components.seconds))
  }

  func bytes(
    _ write: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>) -> Int32
  ) throws(ServerError) -> [UInt8] {
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = write(&bytes)
    guard count > 0, let bytes else { throw .openSSL("writing DER") }
    defer { openssl_free(bytes) }
    return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
  }
}
