import COpenSSL
package import FoundationEssentials

/// The output of OpenSSL as Swift values.
package enum OpenSSLBytes {
  /// Returns the output of one of the `i2d` functions; `nil` if it fails.
  package static func of(_ write: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>) -> Int32) -> Data? {
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = write(&bytes)
    guard count > 0, let bytes else {
      ERR_clear_error()
      return nil
    }
    defer { openssl_free(bytes) }
    return Data(bytes: bytes, count: Int(count))
  }

  /// Returns a name on one line (RFC 2253).
  package static func line(of name: OpaquePointer?) -> String {
    guard let name, let memory = OpenSSLMemory() else { return "" }
    X509_NAME_print_ex(memory.pointer, name, 0, openssl_name_style())
    ERR_clear_error()
    return memory.text
  }

  /// Removes and returns the messages of OpenSSL's last errors on this thread.
  package static func errors() -> String {
    var lines: [String] = []
    var code = ERR_get_error()
    while code != 0 {
      if let reason = ERR_reason_error_string(code) { lines.append(String(cString: reason)) }
      code = ERR_get_error()
    }
    return lines.joined(separator: "; ")
  }
}

/// Owned memory that OpenSSL reads or writes like a file.
struct OpenSSLMemory: ~Copyable {
  let pointer: OpaquePointer

  init?() {
    guard let pointer = BIO_new(BIO_s_mem()) else { return nil }
    self.pointer = pointer
  }

  /// Makes a stream that reads a copy of `data`.
  init?(reading data: Data) {
    guard let count = Int32(exactly: data.count), let pointer = BIO_new(BIO_s_mem()) else { return nil }
    let written = data.withUnsafeBytes { count == 0 ? 0 : BIO_write(pointer, $0.baseAddress, count) }
    guard written == count else {
      BIO_free(pointer)
      return nil
    }
    self.pointer = pointer
  }

  deinit { BIO_free(pointer) }

  var text: String {
    var bytes: UnsafeMutablePointer<CChar>?
    let count = openssl_memory_bytes(pointer, &bytes)
    guard let bytes, count > 0 else { return "" }
    return String(decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
  }
}
