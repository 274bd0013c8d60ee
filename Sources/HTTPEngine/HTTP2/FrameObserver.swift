import COpenSSL
import HTTPWire

/// The observer of the frames of one connection of HTTP/2 over TLS. libcurl reports only some of the errors that end a
/// stream, which Documentation/Libcurl.md lists. Belongs to the loop's thread.
///
/// OpenSSL calls back with the bytes that it reads and writes. If HTTP/2 was negotiated, OpenSSL gives the secrets of
/// the connection to the callback for key logs. The secrets never leave this object.
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

  /// Makes the observer of a connection, or `nil` if its keys are not known or OpenSSL has buffered bytes of it
  /// already.
  ///
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

/// Finds the frames of HTTP/2 in the TLS records of one direction of a connection (RFC 8446 §5, RFC 5246 §6.2). Only
/// the headers of the frames are decrypted, which costs less than a microsecond a record.
struct RecordReader {
  private enum Content {
    static let alert: UInt8 = 21
    static let handshake: UInt8 = 22
    static let application: UInt8 = 23
  }

  private static let headSize = 5
  private static let tagSize = 16

  private var keys: TrafficKeys
  private var scanner: FrameScanner
  private let isTLS13: Bool
  /// The number of the record at hand.
  private var sequence: UInt64
  private var head = [UInt8](repeating: 0, count: Self.headSize)
  private var headCount = 0
  /// The part of a record that has come, if it did not come at once.
  private var body: [UInt8] = []
  private var bodySize = 0
  private(set) var isLost = false

  /// Begins with the first record after the handshake. In TLS 1.2, `Finished` was the first with these keys.
  init(_ keys: TrafficKeys, isTLS13: Bool, ofClient isClient: Bool) {
    self.keys = keys
    self.isTLS13 = isTLS13
    sequence = isTLS13 ? 0 : 1
    scanner = FrameScanner(ofClient: isClient)
  }

  /// Takes the next bytes of the connection.
  mutating func read(_ bytes: UnsafeRawBufferPointer, found: (FrameScanner.Frame) -> Void) {
    var rest = bytes[...]
    while !isLost, !rest.isEmpty {
      guard headCount == Self.headSize else {
        head[headCount] = rest[rest.startIndex]
        headCount += 1
        rest = rest.dropFirst()
        if headCount == Self.headSize { bodySize = Int(head[3]) << 8 | Int(head[4]) }
        continue
      }
      let part = UnsafeRawBufferPointer(rebasing: rest.prefix(bodySize - body.count))
      rest = rest.dropFirst(part.count)
      if part.count == bodySize {
        take(part, found)
      } else {
        body += part
        guard body.count == bodySize else { continue }
        body.withUnsafeBytes { take($0, found) }
        body.removeAll(keepingCapacity: true)
      }
      headCount = 0
    }
  }

  private mutating func take(_ record: UnsafeRawBufferPointer, _ found: (FrameScanner.Frame) -> Void) {
    defer { sequence &+= 1 }
    let nonceSize = keys.explicitNonceSize
    let size = record.count - nonceSize - Self.tagSize
    // TLS 1.2 shows the kind of a record. Another handshake changes the keys; RFC 9113 §9.2.1 forbids it.
    guard size >= 0, isTLS13 ? head[0] == Content.application : head[0] != Content.handshake else {
      isLost = true
      return
    }
    guard head[0] == Content.application else { return }
    keys.begin(sequence, explicit: UnsafeRawBufferPointer(rebasing: record.prefix(nonceSize)))
    let text = UnsafeRawBufferPointer(rebasing: record[nonceSize..<nonceSize + size])
    guard isTLS13 else { return scan(text, size, found) }
    guard let (kind, length) = kind(of: text) else {
      isLost = true
      return
    }
    switch kind {
    case Content.application: scan(text, length, found)
    case Content.handshake: updateKeys(after: text, length)
    default: break
    }
  }

  private mutating func scan(
    _ text: UnsafeRawBufferPointer, _ length: Int, _ found: (FrameScanner.Frame) -> Void
  ) {
    let keys = keys
    scanner.scan(length, read: { keys.decrypt(text, at: $0, into: $1) }, found: found)
    isLost = scanner.isLost
  }

  /// Returns the kind of a record of TLS 1.3, which is its last byte that is not zero, and the length of its content.
  private func kind(of text: UnsafeRawBufferPointer) -> (UInt8, Int)? {
    var byte: UInt8 = 0
    var end = text.count
    while end > 0 {
      let isRead = withUnsafeMutableBytes(of: &byte) { keys.decrypt(text, at: end - 1, into: $0) }
      guard isRead else { return nil }
      end -= 1
      if byte != 0 { return (byte, end) }
    }
    return nil
  }

  /// Changes the keys after KeyUpdate, which ends its record (RFC 8446 §5.1). In practice KeyUpdate follows no other
  /// message.
  private mutating func updateKeys(after text: UnsafeRawBufferPointer, _ length: Int) {
    guard length == 5 else { return }
    var message = [UInt8](repeating: 0, count: 5)
    let isRead = message.withUnsafeMutableBytes { keys.decrypt(text, at: 0, into: $0) }
    guard isRead, let next = message[0] == UInt8(SSL3_MT_KEY_UPDATE) ? keys.next() : nil else { return }
    keys = next
    // The next record has the number 0.
    sequence = .max
  }
}
