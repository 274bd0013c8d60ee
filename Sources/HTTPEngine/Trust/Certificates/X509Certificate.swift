import COpenSSL
package import FoundationEssentials

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

  /// Returns all certificates of a PEM text, or the one of DER bytes. The list is empty if the bytes are neither.
  /// Returns `nil` if one of several certificates is broken.
  package static func all(in data: Data) -> [X509Certificate]? {
    if let one = X509Certificate(der: data) { return [one] }
    guard let memory = OpenSSLMemory(reading: data) else { return nil }
    var result: [X509Certificate] = []
    ERR_clear_error()
    while let pointer = PEM_read_bio_X509(memory.pointer, nil, nil, nil) {
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
