import COpenSSL
package import FoundationEssentials

/// Public keys with their algorithms (SubjectPublicKeyInfo, RFC 5280 §4.1.2.7), as DER.
package enum X509PublicKey {
  /// Returns the keys of these bytes: one as DER, or those of a PEM text (`PUBLIC KEY`). Returns `nil` if they are
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

  /// Returns the SHA-256 digest of `data`, of which pins are made.
  package static func digest(of data: Data) -> Data {
    var digest = [UInt8](repeating: 0, count: 32)
    data.withUnsafeBytes { bytes in
      _ = EVP_Digest(bytes.baseAddress, bytes.count, &digest, nil, EVP_sha256(), nil)
    }
    return Data(digest)
  }

  /// Returns the algorithm and the length of a key, such as `RSA 2048`; an empty text if the bytes are no key.
  package static func outline(of key: Data) -> String {
    defer { ERR_clear_error() }
    guard let key = read(key) else { return "" }
    defer { EVP_PKEY_free(key) }
    let name = EVP_PKEY_get0_type_name(key).map { String(cString: $0) } ?? "unknown"
    return "\(name) \(EVP_PKEY_get_bits(key))"
  }

  /// Returns the key without its algorithm: PKCS#1 for RSA, usually an uncompressed point (X9.63) for elliptic curves;
  /// `nil` if the bytes are no key.
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
