import COpenSSL
package import FoundationEssentials
package import HTTPWire

/// The hashes of Digest, by OpenSSL.
package struct OpenSSLHashes: HashFunctions {
  package init() {}

  package func hash(_ algorithm: DigestChallenge.Algorithm, _ bytes: [UInt8]) -> [UInt8]? {
    guard let hash = OpenSSLRunningHash(algorithm) else { return nil }
    bytes.withUnsafeBytes { hash.add($0) }
    return hash.finish()
  }

  /// Returns the SHA-1 of some bytes, which the WebSocket handshake needs; `nil` if OpenSSL is set to refuse it.
  package static func sha1(_ bytes: [UInt8]) -> [UInt8]? {
    var hash = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var length: UInt32 = 0
    guard let function = HashAlgorithms.shared.sha1,
      EVP_Digest(bytes, bytes.count, &hash, &length, function, nil) == 1
    else {
      ERR_clear_error()
      return nil
    }
    return Array(hash.prefix(Int(length)))
  }

  package func makeRunningHash(_ algorithm: DigestChallenge.Algorithm) -> (any RunningHash)? {
    OpenSSLRunningHash(algorithm)
  }
}

extension Journal {
  /// The journals of this library.
  package static let standard = Journal(hashes: OpenSSLHashes())
}

extension FieldDigests {
  /// Makes the digests of the fields of a request by OpenSSL.
  package init(of fields: [HTTPHeader]) { self.init(of: fields, hashes: OpenSSLHashes()) }
}

/// Owns one of OpenSSL's hash contexts.
private final class OpenSSLRunningHash: RunningHash {
  private let context: OpaquePointer
  private var isWhole = true

  /// Starts a hash; `nil` when OpenSSL is set to refuse the algorithm, such as MD5 where FIPS holds.
  init?(_ algorithm: DigestChallenge.Algorithm) {
    guard let context = EVP_MD_CTX_new() else { return nil }
    self.context = context
    guard let function = HashAlgorithms.shared.function(of: algorithm),
      EVP_DigestInit_ex(context, function, nil) == 1
    else {
      ERR_clear_error()
      return nil
    }
  }

  deinit { EVP_MD_CTX_free(context) }

  func add(_ bytes: UnsafeRawBufferPointer) {
    if EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) != 1 { isWhole = false }
  }

  func finish() -> [UInt8]? {
    var isComplete = false
    let hash = [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { hash, count in
      var length: UInt32 = 0
      isComplete = isWhole && EVP_DigestFinal_ex(context, hash.baseAddress, &length) == 1
      count = isComplete ? Int(length) : 0
    }
    if !isComplete { ERR_clear_error() }
    return isComplete ? hash : nil
  }
}

/// OpenSSL's implementations of the hashes, looked up once. With `EVP_sha256()` and its like, OpenSSL searches its
/// providers for each hash, which takes longer than hashing a line.
///
/// Unchecked, because the implementations are constants that OpenSSL counts references to and never changes.
private final class HashAlgorithms: @unchecked Sendable {
  static let shared = HashAlgorithms()

  private let md5 = fetched("MD5")
  private let sha256 = fetched("SHA256")
  private let sha512Half = fetched("SHA512-256")
  private let sha512 = fetched("SHA512")
  /// `nil` when OpenSSL is set to refuse it.
  let sha1 = fetched("SHA1")

  private static func fetched(_ name: String) -> OpaquePointer? {
    defer { ERR_clear_error() }
    return EVP_MD_fetch(nil, name, nil)
  }

  /// Returns the implementation of an algorithm; `nil` when OpenSSL is set to refuse it.
  func function(of algorithm: DigestChallenge.Algorithm) -> OpaquePointer? {
    switch algorithm {
    case .md5: md5
    case .sha256: sha256
    case .sha512Half: sha512Half
    case .sha512: sha512
    }
  }
}

/// Random numbers that cannot be predicted.
package enum OpenSSLRandom {
  /// Returns random words; `nil` if OpenSSL has no entropy.
  package static func words(_ count: Int) -> [UInt32]? {
    var words = [UInt32](repeating: 0, count: count)
    let status = words.withUnsafeMutableBytes { bytes in
      RAND_bytes(bytes.bindMemory(to: UInt8.self).baseAddress, Int32(bytes.count))
    }
    return status == 1 ? words : nil
  }
}

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
