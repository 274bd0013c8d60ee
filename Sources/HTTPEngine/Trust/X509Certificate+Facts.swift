import COpenSSL
import FoundationEssentials
import Glibc

extension X509Certificate {
  /// From when to when it is valid, in seconds since 1970; both included.
  package var validity: ClosedRange<Int>? {
    guard let start = OpenSSLTime.seconds(X509_get0_notBefore(pointer)),
      let end = OpenSSLTime.seconds(X509_get0_notAfter(pointer)), start <= end
    else { return nil }
    return start...end
  }

  /// The number that its issuer gave it, as hexadecimal digits.
  package var serialNumber: String {
    guard let number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(pointer), nil) else { return "" }
    defer { BN_free(number) }
    guard let digits = BN_bn2hex(number) else { return "" }
    defer { openssl_free(digits) }
    return String(cString: digits)
  }

  /// The host names of its alternative names (SAN), wildcards included.
  package var hostNames: [String] {
    alternativeNames { names in OpenSSLNames.texts(of: names, kind: GEN_DNS) }
  }

  /// The IPv4 and IPv6 addresses of its alternative names (SAN).
  package var addresses: [String] {
    alternativeNames { names in
      OpenSSLNames.values(of: names, kind: GEN_IPADD).compactMap(OpenSSLNames.address)
    }
  }

  var hasAlternativeNames: Bool { X509_get_ext_by_NID(pointer, NID_subject_alt_name, -1) >= 0 }

  /// Whether it may issue others.
  var isAuthority: Bool { X509_check_ca(pointer) > 0 }

  /// Where its issuer answers whether it was revoked (RFC 5280 §4.2.2.1).
  var statusURLs: [String] {
    guard let strings = X509_get1_ocsp(pointer) else { return [] }
    defer { X509_email_free(strings) }
    return (0..<max(0, openssl_string_count(strings))).compactMap { index in
      openssl_string_at(strings, index).map { String(cString: $0) }
    }
  }

  /// Where lists are that would name it, if it was revoked (RFC 5280 §4.2.1.13).
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

/// OpenSSL's lists of names, as values of ours.
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
    guard bytes.count == 4 || bytes.count == 16 else { return nil }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { text in
      let family = bytes.count == 4 ? AF_INET : AF_INET6
      guard let start = text.baseAddress,
        inet_ntop(family, bytes, start, socklen_t(INET6_ADDRSTRLEN)) != nil
      else { return nil }
      return String(cString: start)
    }
  }
}

/// OpenSSL's times, as values of ours.
enum OpenSSLTime {
  /// Seconds since 1970.
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
