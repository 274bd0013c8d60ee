import COpenSSL

/// Reading and writing OpenSSL's objects as PEM text (RFC 7468).
enum PEM {
  static func text(of certificate: CertificateHandle) throws(ServerError) -> String {
    try text { PEM_write_bio_X509($0, certificate.pointer) == 1 }
  }

  static func text(of key: KeyHandle) throws(ServerError) -> String {
    try text { PEM_write_bio_PrivateKey($0, key.pointer, nil, nil, 0, nil, nil) == 1 }
  }

  /// Returns all certificates of a text.
  static func certificates(_ text: String) throws(ServerError) -> [CertificateHandle] {
    guard let memory = MemoryHandle(reading: text) else { throw .openSSL("reading a certificate") }
    var result: [CertificateHandle] = []
    while let pointer = PEM_read_bio_X509(memory.pointer, nil, nil, nil) {
      result.append(CertificateHandle(owning: pointer))
    }
    guard !result.isEmpty else { throw .openSSL("reading a certificate") }
    ERR_clear_error()
    return result
  }

  static func key(_ text: String) throws(ServerError) -> KeyHandle {
    guard let memory = MemoryHandle(reading: text),
      let pointer = PEM_read_bio_PrivateKey(memory.pointer, nil, nil, nil)
    else { throw .openSSL("reading a private key") }
    return KeyHandle(owning: pointer)
  }

  private static func text(_ write: (OpaquePointer) -> Bool) throws(ServerError) -> String {
    guard let memory = MemoryHandle(), write(memory.pointer) else { throw .openSSL("writing PEM") }
    return memory.text
  }
}

/// Owns an `X509`.
final class CertificateHandle {
  let pointer: OpaquePointer
  init(owning pointer: OpaquePointer) { self.pointer = pointer }
  deinit { X509_free(pointer) }
}

/// Owns an `EVP_PKEY`.
final class KeyHandle {
  let pointer: OpaquePointer
  init(owning pointer: OpaquePointer) { self.pointer = pointer }
  deinit { EVP_PKEY_free(pointer) }
}

/// Owns a `BIO` in memory.
final class MemoryHandle {
  let pointer: OpaquePointer

  init?() {
    guard let pointer = BIO_new(BIO_s_mem()) else { return nil }
    self.pointer = pointer
  }

  convenience init?(reading text: String) {
    self.init()
    let bytes = Array(text.utf8)
    guard BIO_write(pointer, bytes, Int32(bytes.count)) == Int32(bytes.count) else { return nil }
  }

  deinit { BIO_free(pointer) }

  var text: String {
    var bytes: UnsafeMutablePointer<CChar>?
    let count = openssl_memory_bytes(pointer, &bytes)
    guard let bytes, count > 0 else { return "" }
    return String(
      decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
  }
}
