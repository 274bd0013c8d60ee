import COpenSSL
import Glibc

/// Decrypts parts of the TLS records of one direction of a connection, anywhere within a record. The records are not
/// authenticated here: OpenSSL does that, before libcurl sees a byte of them.
final class TrafficKeys {
  /// The ciphers of the suites for HTTP/2 (RFC 9113 §9.2.2).
  enum Cipher {
    case aes128
    case aes256
    case chaCha20

    init?(of session: OpaquePointer) {
      switch SSL_CIPHER_get_cipher_nid(SSL_get_current_cipher(session)) {
      case NID_aes_128_gcm: self = .aes128
      case NID_aes_256_gcm: self = .aes256
      case NID_chacha20_poly1305: self = .chaCha20
      default: return nil
      }
    }

    var keySize: Int { self == .aes128 ? 16 : 32 }
    var blockSize: Int { self == .chaCha20 ? 64 : 16 }

    /// The cipher without its authentication.
    var function: OpaquePointer? {
      switch self {
      case .aes128: EVP_aes_128_ctr()
      case .aes256: EVP_aes_256_ctr()
      case .chaCha20: EVP_chacha20()
      }
    }
  }

  let cipher: Cipher
  /// The traffic secret of TLS 1.3 and its hash function; `nil` for TLS 1.2.
  private var secret: (bytes: [UInt8], digest: OpaquePointer)?
  /// The initialization vector; of TLS 1.2 with AES the part that is not in the record.
  private var vector: [UInt8]
  private let context: OpaquePointer
  /// The nonce of the record at hand, and the place of the counter.
  private var block = [UInt8](repeating: 0, count: 16)
  private var scratch = [UInt8](repeating: 0, count: 192)

  /// Makes the keys of TLS 1.3 (RFC 8446 §7.3).
  convenience init?(_ cipher: Cipher, secret: [UInt8], digest: OpaquePointer) {
    guard let key = Self.expand(secret, "key", cipher.keySize, digest),
      let vector = Self.expand(secret, "iv", 12, digest)
    else { return nil }
    self.init(cipher, key: key, vector: vector)
    self.secret = (secret, digest)
  }

  /// Makes the keys of TLS 1.2, of which `vector` has four bytes for AES (RFC 5288 §3) and twelve for ChaCha20 (RFC
  /// 7905 §2).
  init?(_ cipher: Cipher, key: [UInt8], vector: [UInt8]) {
    guard let context = EVP_CIPHER_CTX_new() else { return nil }
    self.cipher = cipher
    self.vector = vector
    self.context = context
    guard EVP_DecryptInit_ex(context, cipher.function, nil, key, block) == 1 else { return nil }
  }

  deinit {
    EVP_CIPHER_CTX_free(context)
    OPENSSL_cleanse(&vector, vector.count)
    secret?.bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) }
  }

  /// The number of bytes of the nonce before the text of an AES record; 0 in TLS 1.3.
  var explicitNonceSize: Int { vector.count == 4 ? 8 : 0 }

  /// Begins a record.
  ///
  /// - Parameters:
  ///   - sequence: The number of the record.
  ///   - explicit: The part of the nonce that the record has.
  func begin(_ sequence: UInt64, explicit: UnsafeRawBufferPointer) {
    let start = cipher == .chaCha20 ? 4 : 0
    for index in vector.indices { block[start + index] = vector[index] }
    if vector.count == 4 {
      for index in 0..<8 { block[4 + index] = explicit[index] }
    } else {
      for index in 0..<8 {
        block[start + 4 + index] ^= UInt8(truncatingIfNeeded: sequence >> (56 - 8 * index))
      }
    }
  }

  /// Decrypts the bytes of a record that begin at `position`. Returns false if that is not possible.
  func decrypt(_ text: UnsafeRawBufferPointer, at position: Int, into target: UnsafeMutableRawBufferPointer)
    -> Bool
  {
    let size = cipher.blockSize
    let first = position / size
    let lead = position - first * size
    setCounter(UInt32(truncatingIfNeeded: first))
    let length = lead + target.count
    guard first * size + length <= text.count, EVP_DecryptInit_ex(context, nil, nil, nil, block) == 1 else {
      return false
    }
    if scratch.count < length { scratch = [UInt8](repeating: 0, count: length) }
    var written: Int32 = 0
    let source = text.baseAddress?.advanced(by: first * size).assumingMemoryBound(to: UInt8.self)
    guard EVP_DecryptUpdate(context, &scratch, &written, source, Int32(length)) == 1, written == length else {
      return false
    }
    scratch.withUnsafeBytes { target.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[lead..<length])) }
    return true
  }

  /// Sets the counter of a block: AES counts from 2 in the last four bytes, ChaCha20 from 1 in the first.
  private func setCounter(_ number: UInt32) {
    if cipher == .chaCha20 {
      let counter = number &+ 1
      for index in 0..<4 { block[index] = UInt8(truncatingIfNeeded: counter >> (8 * UInt32(index))) }
    } else {
      let counter = number &+ 2
      for index in 0..<4 {
        block[12 + index] = UInt8(truncatingIfNeeded: counter >> (24 - 8 * UInt32(index)))
      }
    }
  }

  /// Returns the keys after KeyUpdate (RFC 8446 §7.2).
  func next() -> TrafficKeys? {
    guard let (bytes, digest) = secret, let next = Self.expand(bytes, "traffic upd", bytes.count, digest)
    else { return nil }
    return TrafficKeys(cipher, secret: next, digest: digest)
  }

  /// Returns the keys of both sides for a session of TLS 1.2 (RFC 5246 §6.3).
  static func keys(ofTLS12 session: OpaquePointer, _ cipher: Cipher) -> (
    client: TrafficKeys, server: TrafficKeys
  )? {
    guard let digest = SSL_CIPHER_get_handshake_digest(SSL_get_current_cipher(session)),
      let resumable = SSL_get_session(session)
    else { return nil }
    var secret = [UInt8](repeating: 0, count: 48)
    var client = [UInt8](repeating: 0, count: 32)
    var server = [UInt8](repeating: 0, count: 32)
    guard SSL_SESSION_get_master_key(resumable, &secret, 48) == 48,
      SSL_get_client_random(session, &client, 32) == 32, SSL_get_server_random(session, &server, 32) == 32
    else { return nil }
    defer { OPENSSL_cleanse(&secret, 48) }
    let vectorSize = cipher == .chaCha20 ? 12 : 4
    let count = 2 * (cipher.keySize + vectorSize)
    let seed = Array("key expansion".utf8) + server + client
    guard let block = pseudorandom(secret, seed, count, digest) else { return nil }
    func part(_ start: Int, _ length: Int) -> [UInt8] { Array(block[start..<start + length]) }
    let size = cipher.keySize
    guard
      let client = TrafficKeys(cipher, key: part(0, size), vector: part(2 * size, vectorSize)),
      let server = TrafficKeys(
        cipher, key: part(size, size), vector: part(2 * size + vectorSize, vectorSize))
    else { return nil }
    return (client, server)
  }

  /// Computes HKDF-Expand-Label without a context (RFC 8446 §7.1), for at most one block of output.
  private static func expand(_ secret: [UInt8], _ label: String, _ count: Int, _ digest: OpaquePointer)
    -> [UInt8]?
  {
    let name = Array("tls13 \(label)".utf8)
    let info = [UInt8(count >> 8), UInt8(count & 0xFF), UInt8(name.count)] + name + [0, 1]
    guard let output = code(secret, info, digest), output.count >= count else { return nil }
    return Array(output.prefix(count))
  }

  /// Computes P_hash (RFC 5246 §5).
  private static func pseudorandom(
    _ secret: [UInt8], _ seed: [UInt8], _ count: Int, _ digest: OpaquePointer
  ) -> [UInt8]? {
    var output: [UInt8] = []
    var link = seed
    while output.count < count {
      guard let next = code(secret, link, digest), let part = code(secret, next + seed, digest) else {
        return nil
      }
      link = next
      output += part
    }
    return output
  }

  private static func code(_ key: [UInt8], _ bytes: [UInt8], _ digest: OpaquePointer) -> [UInt8]? {
    var output = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var length: UInt32 = 0
    guard HMAC(digest, key, Int32(key.count), bytes, bytes.count, &output, &length) != nil else { return nil }
    return Array(output.prefix(Int(length)))
  }
}

/// The application traffic secrets of a connection of TLS 1.3 (RFC 8446 §7.1).
struct TrafficSecrets {
  private var client: [UInt8] = []
  private var server: [UInt8] = []

  /// Takes a line for a key log.
  mutating func take(_ line: UnsafePointer<CChar>) {
    let isClient = strncmp(line, "CLIENT_TRAFFIC_SECRET_0 ", 24) == 0
    guard isClient || strncmp(line, "SERVER_TRAFFIC_SECRET_0 ", 24) == 0 else { return }
    // A label, 32 random bytes and the secret, separated by blanks.
    let digits = UnsafeRawBufferPointer(start: line, count: strlen(line)).dropFirst(24 + 64 + 1)
    let secret = Self.bytes(digits)
    if isClient { client = secret } else { server = secret }
  }

  func keys(_ cipher: TrafficKeys.Cipher, _ session: OpaquePointer)
    -> (client: TrafficKeys, server: TrafficKeys)?
  {
    guard let digest = SSL_CIPHER_get_handshake_digest(SSL_get_current_cipher(session)), !client.isEmpty,
      let client = TrafficKeys(cipher, secret: client, digest: digest),
      let server = TrafficKeys(cipher, secret: server, digest: digest)
    else { return nil }
    return (client, server)
  }

  mutating func clear() {
    OPENSSL_cleanse(&client, client.count)
    OPENSSL_cleanse(&server, server.count)
    self = TrafficSecrets()
  }

  private static func bytes(_ digits: Slice<UnsafeRawBufferPointer>) -> [UInt8] {
    var bytes: [UInt8] = []
    var high: UInt8?
    for digit in digits {
      guard let value = Character(UnicodeScalar(digit)).hexDigitValue.map(UInt8.init) else { break }
      if let first = high {
        bytes.append(first << 4 | value)
        high = nil
      } else {
        high = value
      }
    }
    return bytes
  }
}
