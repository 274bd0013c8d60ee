import Glibc
import Synchronization

/// A connection of a ``StreamTestServer``; used by its script only. Every wait throws if the client is gone or the
/// server is stopped.
public final class StreamTestConnection {
  let channel: Channel
  private let core: StreamTestServer.Core
  let stopSignal: Waker
  private(set) var isReset = false

  init(_ channel: Channel, _ core: StreamTestServer.Core, _ stopSignal: Waker) {
    self.channel = channel
    self.core = core
    self.stopSignal = stopSignal
  }

  /// The protocol that ALPN chose (RFC 7301), or `nil`.
  public var applicationProtocol: String? { channel.tls?.details.applicationProtocol }

  /// Reads available bytes, up to `count`; waits for the first. Empty at the end.
  public func read(atMost count: Int = 65_536) throws -> [UInt8] {
    let bytes = try channel.read(atMost: count)
    core.state.withLock { $0.received += bytes.count }
    return bytes
  }

  /// Reads a line without its end, byte for byte, so that no later byte is read. The rest at the end of the stream is
  /// a line.
  public func line() throws -> String {
    var bytes: [UInt8] = []
    while let byte = try read(atMost: 1).first, byte != UInt8(ascii: "\n") { bytes.append(byte) }
    if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Reads until the other side sends no more.
  public func readToEnd() throws -> [UInt8] {
    var all: [UInt8] = []
    while true {
      let bytes = try read()
      if bytes.isEmpty { return all }
      all += bytes
    }
  }

  /// Writes all bytes.
  public func write(_ bytes: [UInt8]) throws { try channel.write(bytes) }

  /// Writes a text as UTF-8.
  public func write(_ text: String) throws { try channel.write(Array(text.utf8)) }

  /// Sends received bytes back until the peer closes its side.
  public func echo() throws {
    while true {
      let bytes = try read()
      if bytes.isEmpty { return }
      try write(bytes)
    }
  }

  /// Closes the writing side; reads are still possible.
  public func closeWriting() {
    channel.tls?.sendClosingAlert()
    shutdown(channel.descriptor, Int32(SHUT_WR))
  }

  /// Ends the sending side of TCP without the closing alert of TLS, as an attacker on the network path could.
  public func cutOff() { shutdown(channel.descriptor, Int32(SHUT_WR)) }

  /// Changes the keys of both directions (RFC 8446 §4.6.3), before the next bytes are written. Only for TLS 1.3.
  public func updateKeys() throws { try channel.tls?.updateKeys() }

  /// Changes bytes of the next TLS record that is written, as someone on the network path could. Nothing happens
  /// without TLS.
  ///
  /// - Parameter changes: Masks for an exclusive or, by their offsets in the record, whose header has five bytes.
  public func changeNextRecord(_ changes: [Int: UInt8]) { channel.tls?.changeNextRecord(changes) }

  /// Resets the connection when the script ends.
  public func reset() { isReset = true }

  /// Waits until the gate is open.
  public func pass(_ gate: Gate) throws { try channel.pass(gate) }

  /// Does nothing until the client closes its side or the server is stopped; then throws.
  public func stall() throws { try channel.stall() }

  /// Begins TLS as a server.
  public func startTLS(_ identity: TestIdentity, _ options: TLSOptions = TLSOptions()) throws {
    try startTLS(TLSContext(identity, options))
  }

  func startTLS(_ context: TLSContext) throws {
    guard let session = context.makeSession(descriptor: channel.descriptor) else {
      throw ServerError.tls("there is no memory for a session")
    }
    try session.accept(over: channel)
    channel.tls = session
  }
}
