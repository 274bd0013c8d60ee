import COpenSSL
import FoundationEssentials

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
