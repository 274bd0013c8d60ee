import COpenSSL
import Glibc
import HTTPWire

/// The observer of the frames of one connection of HTTP/2 over TLS. libcurl reports only some of the errors that end a
/// stream, which Documentation/Libcurl.md lists. Belongs to the loop's thread.
///
/// OpenSSL calls back with the bytes that it reads and writes. It gives the secrets of the connection to the callback
/// for key logs, if HTTP/2 was negotiated. They never leave this object.
final class FrameObserver {
  /// The connection, until OpenSSL frees it.
  private final class Session {
    var pointer: OpaquePointer?

    init(_ pointer: OpaquePointer) { self.pointer = pointer }

    /// Whether OpenSSL has authenticated all bytes that it has read. After a record that it refuses, it reads no more
    /// and cannot exchange data.
    var isAuthentic: Bool { pointer.map { SSL_in_init($0) == 0 } ?? false }
  }

  let record: ConnectionRecord
  private let session: Session
  private unowned(unsafe) let loop: LoopCore
  private let key: HostQueues.Key
  @exclusivity(unchecked) private var incoming: RecordReader
  @exclusivity(unchecked) private var outgoing: RecordReader

  /// - Parameters:
  ///   - session: A connection whose handshake has just been completed.
  ///   - key: The requests that can share the connection.
  init?(of session: OpaquePointer, _ secrets: TrafficSecrets, _ key: HostQueues.Key, loop: LoopCore) {
    guard let cipher = TrafficKeys.Cipher(of: session), SSL_has_pending(session) == 0 else { return nil }
    let isTLS13 = SSL_version(session) == TLS1_3_VERSION
    let pair = isTLS13 ? secrets.keys(cipher, session) : TrafficKeys.keys(ofTLS12: session, cipher)
    guard let pair else { return nil }
    self.loop = loop
    self.key = key
    let state = Session(session)
    self.session = state
    record = ConnectionRecord { state.isAuthentic }
    incoming = RecordReader(pair.server, isTLS13: isTLS13, ofClient: false)
    outgoing = RecordReader(pair.client, isTLS13: isTLS13, ofClient: true)
    observe(SSL_get_rbio(session))
    observe(SSL_get_wbio(session))
  }

  private func observe(_ stream: OpaquePointer?) {
    guard let stream else { return }
    BIO_set_callback_arg(
      stream, Unmanaged.passUnretained(self).toOpaque().assumingMemoryBound(to: CChar.self))
    BIO_set_callback_ex(stream, Self.bytesMoved)
  }

  /// OpenSSL calls it before and after each step of the stream below it. The context of the connection keeps the
  /// observer alive until after the stream is freed.
  private static let bytesMoved: BIO_callback_fn_ex = { stream, step, bytes, _, _, _, result, count in
    guard let context = BIO_get_callback_arg(stream) else { return Int(result) }
    Unmanaged<FrameObserver>.fromOpaque(context)._withUnsafeGuaranteedRef { observer in
      switch step {
      case BIO_CB_READ, BIO_CB_WRITE: observer.record.confirm()
      case BIO_CB_READ | BIO_CB_RETURN, BIO_CB_WRITE | BIO_CB_RETURN:
        guard result > 0, let count = count?.pointee else { return }
        let moved = UnsafeRawBufferPointer(start: bytes, count: count)
        if step == BIO_CB_WRITE | BIO_CB_RETURN { observer.sent(moved) } else { observer.received(moved) }
      case BIO_CB_FREE:
        observer.record.confirm()
        observer.session.pointer = nil
      default: break
      }
    }
    return Int(result)
  }

  private func received(_ bytes: UnsafeRawBufferPointer) {
    guard !record.isLost else { return }
    let breakCount = record.breakCount
    let limit = record.streamLimit
    incoming.read(bytes) { record.received($0) }
    if record.breakCount != breakCount { loop.hasBrokenStreams = true }
    if record.streamLimit != limit { loop.limitedConnections.append((key, record)) }
    if incoming.isLost { record.lose() }
  }

  private func sent(_ bytes: UnsafeRawBufferPointer) {
    guard !outgoing.isLost else { return }
    let hadFailed = record.hasFailed
    outgoing.read(bytes) { record.sent($0) }
    if outgoing.isLost { record.lose() }
    if record.hasFailed, !hadFailed { loop.hasBrokenStreams = true }
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
