import COpenSSL
package import FoundationEssentials
import Glibc
import HTTPWire

/// A certificate (X.509, RFC 5280) of OpenSSL, which counts its references from any thread.
///
/// Unchecked: the certificate is only read, and OpenSSL locks its own cached values.
package final class X509Certificate: @unchecked Sendable {
  let pointer: OpaquePointer
  /// The certificate as DER.
  package let der: Data

  /// Takes ownership of a certificate; `nil` if it cannot be encoded.
  init?(owning pointer: OpaquePointer) {
    self.pointer = pointer
    guard let der = OpenSSLBytes.of({ i2d_X509(pointer, $0) }) else {
      X509_free(pointer)
      return nil
    }
    self.der = der
  }

  /// Reads one certificate; `nil` if the bytes are none, or more than one.
  package convenience init?(der: Data) {
    let pointer = der.withUnsafeBytes { bytes -> OpaquePointer? in
      var position = bytes.bindMemory(to: UInt8.self).baseAddress
      guard let start = position, let pointer = d2i_X509(nil, &position, bytes.count) else { return nil }
      guard position == start + bytes.count else {
        X509_free(pointer)
        return nil
      }
      return pointer
    }
    ERR_clear_error()
    guard let pointer else { return nil }
    self.init(owning: pointer)
  }

  deinit { X509_free(pointer) }

  /// Returns all certificates of a PEM text, or the one in DER bytes. The list is empty if the bytes are neither.
  /// Returns `nil` if one of several certificates is broken.
  package static func all(in data: Data) -> [X509Certificate]? {
    if let one = X509Certificate(der: data) { return [one] }
    guard let memory = OpenSSLMemory(reading: data) else { return nil }
    var result: [X509Certificate] = []
    ERR_clear_error()
    while let pointer = openssl_next_certificate(memory.pointer) {
      guard let certificate = X509Certificate(owning: pointer) else { return nil }
      result.append(certificate)
    }
    let error = ERR_peek_last_error()
    ERR_clear_error()
    // OpenSSL reports the end of the text as an error, too.
    let isEnd = openssl_error_reason(error) == PEM_R_NO_START_LINE
    return isEnd ? result : nil
  }

  /// The public key with its algorithm (SubjectPublicKeyInfo), as DER.
  package var publicKey: Data? {
    guard let key = X509_get_X509_PUBKEY(pointer) else { return nil }
    return OpenSSLBytes.of { i2d_X509_PUBKEY(key, $0) }
  }

  /// The subject on one line (RFC 2253).
  package var subject: String { OpenSSLBytes.line(of: X509_get_subject_name(pointer)) }
  package var issuer: String { OpenSSLBytes.line(of: X509_get_issuer_name(pointer)) }

  package func isSigned(by issuer: X509Certificate) -> Bool {
    defer { ERR_clear_error() }
    guard X509_check_issued(issuer.pointer, pointer) == X509_V_OK,
      let key = X509_get0_pubkey(issuer.pointer)
    else { return false }
    return X509_verify(pointer, key) == 1
  }

  package var isSelfSigned: Bool { isSigned(by: self) }
}

extension X509Certificate: Hashable {
  /// Whether the bytes of two certificates are equal.
  package static func == (left: X509Certificate, right: X509Certificate) -> Bool { left.der == right.der }
  package func hash(into hasher: inout Hasher) { hasher.combine(der) }
}

extension X509Certificate {
  /// The time of validity, in seconds since 1970, with both ends.
  package var validity: ClosedRange<Int>? {
    guard let start = OpenSSLTime.seconds(X509_get0_notBefore(pointer)),
      let end = OpenSSLTime.seconds(X509_get0_notAfter(pointer)), start <= end
    else { return nil }
    return start...end
  }

  /// The serial number as hexadecimal digits.
  package var serialNumber: String {
    guard let number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(pointer), nil) else { return "" }
    defer { BN_free(number) }
    guard let digits = BN_bn2hex(number) else { return "" }
    defer { openssl_free(digits) }
    return String(cString: digits)
  }

  var hasNegativeSerialNumber: Bool {
    guard let number = X509_get0_serialNumber(pointer) else { return false }
    return ASN1_STRING_type(number) == V_ASN1_NEG_INTEGER
  }

  var hasSubject: Bool { X509_NAME_entry_count(X509_get_subject_name(pointer)) > 0 }

  /// Whether the certificate names itself as its issuer, but states another key or serial number for its issuer.
  var contradictsOwnKeyIdentifier: Bool {
    defer { ERR_clear_error() }
    guard X509_NAME_cmp(X509_get_subject_name(pointer), X509_get_issuer_name(pointer)) == 0,
      let raw = X509_get_ext_d2i(pointer, NID_authority_key_identifier, nil, nil)
    else { return false }
    let identifier = raw.assumingMemoryBound(to: AUTHORITY_KEYID.self)
    defer { AUTHORITY_KEYID_free(identifier) }
    return X509_check_akid(pointer, identifier) != X509_V_OK
  }

  /// The host names of the alternative names (SAN), including wildcards.
  package var hostNames: [String] {
    alternativeNames { names in OpenSSLNames.texts(of: names, kind: GEN_DNS) }
  }

  /// The IPv4 and IPv6 addresses of the alternative names (SAN).
  package var addresses: [String] {
    alternativeNames { names in
      OpenSSLNames.values(of: names, kind: GEN_IPADD).compactMap(OpenSSLNames.address)
    }
  }

  var hasAlternativeNames: Bool { X509_get_ext_by_NID(pointer, NID_subject_alt_name, -1) >= 0 }

  /// Whether the certificate may issue others.
  var isAuthority: Bool { X509_check_ca(pointer) > 0 }

  /// Whether the basic constraints say that the certificate may issue others.
  var isStatedAuthority: Bool { X509_check_ca(pointer) == 1 }

  /// The DNS names that the authority may issue for; `nil` without name constraints.
  var nameConstraints: NameConstraints? {
    defer { ERR_clear_error() }
    guard let raw = X509_get_ext_d2i(pointer, NID_name_constraints, nil, nil) else { return nil }
    let constraints = raw.assumingMemoryBound(to: NAME_CONSTRAINTS.self)
    defer { NAME_CONSTRAINTS_free(constraints) }
    func names(_ trees: OpaquePointer?) -> [String] {
      (0..<max(0, openssl_subtree_count(trees))).compactMap { index in
        var count: Int32 = 0
        guard let bytes = openssl_subtree_name(trees, index, &count), count >= 0 else { return nil }
        return String(decoding: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
      }
    }
    return NameConstraints(
      permitted: names(constraints.pointee.permittedSubtrees),
      excluded: names(constraints.pointee.excludedSubtrees))
  }

  /// The common name of the subject, or else the last part of the subject; `nil` if it is empty.
  package var subjectSummary: String? {
    defer { ERR_clear_error() }
    guard let name = X509_get_subject_name(pointer) else { return nil }
    let index = X509_NAME_get_index_by_NID(name, NID_commonName, -1)
    guard let entry = X509_NAME_get_entry(name, index >= 0 ? index : X509_NAME_entry_count(name) - 1),
      let data = X509_NAME_ENTRY_get_data(entry)
    else { return nil }
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = ASN1_STRING_to_UTF8(&bytes, data)
    guard count >= 0, let bytes else { return nil }
    defer { openssl_free(bytes) }
    return String(decoding: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
  }

  /// The URLs of the OCSP responders of the issuer (RFC 5280 §4.2.2.1).
  var statusURLs: [String] {
    guard let strings = X509_get1_ocsp(pointer) else { return [] }
    defer { X509_email_free(strings) }
    return (0..<max(0, openssl_string_count(strings))).compactMap { index in
      openssl_string_at(strings, index).map { String(cString: $0) }
    }
  }

  /// The URLs of the lists that name the certificate if it was revoked (RFC 5280 §4.2.1.13).
  var listURLs: [String] {
    guard let raw = X509_get_ext_d2i(pointer, NID_crl_distribution_points, nil, nil) else { return [] }
    let points = OpaquePointer(raw)
    defer { CRL_DIST_POINTS_free(points) }
    return (0..<max(0, openssl_point_count(points))).flatMap { index in
      openssl_point_names(points, index).map { OpenSSLNames.texts(of: $0, kind: GEN_URI) } ?? []
    }
  }

  private func alternativeNames(_ read: (OpaquePointer) -> [String]) -> [String] {
    defer { ERR_clear_error() }
    guard let raw = X509_get_ext_d2i(pointer, NID_subject_alt_name, nil, nil) else { return [] }
    let names = OpaquePointer(raw)
    defer { GENERAL_NAMES_free(names) }
    return read(names)
  }
}

/// OpenSSL's lists of names as Swift values.
enum OpenSSLNames {
  static func values(of names: OpaquePointer, kind: Int32) -> [[UInt8]] {
    (0..<max(0, openssl_name_count(names))).compactMap { index in
      var count: Int32 = 0
      guard let bytes = openssl_name_bytes(names, index, kind, &count), count >= 0 else { return nil }
      return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
    }
  }

  static func texts(of names: OpaquePointer, kind: Int32) -> [String] {
    values(of: names, kind: kind).map { String(decoding: $0, as: UTF8.self) }
  }

  static func address(_ bytes: [UInt8]) -> String? {
    IPAddress(bytes.count == 4 ? .v4 : .v6, bytes: bytes)?.text
  }
}

/// OpenSSL's times as Swift values.
enum OpenSSLTime {
  /// Returns a time as seconds since 1970.
  static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int? {
    guard let time else { return nil }
    var parts = tm()
    guard ASN1_TIME_to_tm(time, &parts) == 1 else {
      ERR_clear_error()
      return nil
    }
    return timegm(&parts)
  }

  static var now: Int { time(nil) }
}

/// Public keys with their algorithms (SubjectPublicKeyInfo, RFC 5280 §4.1.2.7), as DER.
package enum X509PublicKey {
  /// Returns the keys of these bytes: one as DER, or the keys of a PEM text (`PUBLIC KEY`). Returns `nil` if they are
  /// neither, or if one of them is broken.
  package static func all(in data: Data) -> [Data]? {
    ERR_clear_error()
    defer { ERR_clear_error() }
    if isKey(data) { return [data] }
    guard let memory = OpenSSLMemory(reading: data) else { return nil }
    var keys: [Data] = []
    var name: UnsafeMutablePointer<CChar>?
    var header: UnsafeMutablePointer<CChar>?
    var bytes: UnsafeMutablePointer<UInt8>?
    var count = 0
    while PEM_read_bio(memory.pointer, &name, &header, &bytes, &count) == 1 {
      defer {
        openssl_free(name)
        openssl_free(header)
        openssl_free(bytes)
      }
      guard let name, let bytes, String(cString: name) == PEM_STRING_PUBLIC else { continue }
      let key = Data(bytes: bytes, count: count)
      guard isKey(key) else { return nil }
      keys.append(key)
    }
    // OpenSSL reports the end of the text as an error, too.
    guard openssl_error_reason(ERR_peek_last_error()) == PEM_R_NO_START_LINE else { return nil }
    return keys
  }

  /// Returns the SHA-256 digest of `data`, as used in pins.
  package static func digest(of data: Data) -> Data {
    var digest = [UInt8](repeating: 0, count: 32)
    data.withUnsafeBytes { bytes in
      _ = EVP_Digest(bytes.baseAddress, bytes.count, &digest, nil, EVP_sha256(), nil)
    }
    return Data(digest)
  }

  /// Returns the algorithm and the length of a key, such as `RSA 2048`; an empty text if the bytes are not a key.
  package static func outline(of key: Data) -> String {
    defer { ERR_clear_error() }
    guard let key = read(key) else { return "" }
    defer { EVP_PKEY_free(key) }
    let name = EVP_PKEY_get0_type_name(key).map { String(cString: $0) } ?? "unknown"
    return "\(name) \(EVP_PKEY_get_bits(key))"
  }

  /// Returns the key without its algorithm: PKCS#1 for RSA, usually an uncompressed point (X9.63) for elliptic curves;
  /// `nil` if the bytes are not a key.
  package static func content(of key: Data) -> Data? {
    defer { ERR_clear_error() }
    let parsed = key.withUnsafeBytes { bytes -> OpaquePointer? in
      var position = bytes.bindMemory(to: UInt8.self).baseAddress
      return position == nil ? nil : d2i_X509_PUBKEY(nil, &position, bytes.count)
    }
    guard let parsed else { return nil }
    defer { X509_PUBKEY_free(parsed) }
    var content: UnsafePointer<UInt8>?
    var count: Int32 = 0
    guard X509_PUBKEY_get0_param(nil, &content, &count, nil, parsed) == 1, let content, count > 0 else {
      return nil
    }
    return Data(bytes: content, count: Int(count))
  }

  private static func isKey(_ data: Data) -> Bool {
    guard let key = read(data) else { return false }
    EVP_PKEY_free(key)
    return true
  }

  private static func read(_ data: Data) -> OpaquePointer? {
    data.withUnsafeBytes { bytes -> OpaquePointer? in
      var position = bytes.bindMemory(to: UInt8.self).baseAddress
      guard let start = position, let key = d2i_PUBKEY(nil, &position, bytes.count) else { return nil }
      guard position == start + bytes.count else {
        EVP_PKEY_free(key)
        return nil
      }
      return key
    }
  }
}
