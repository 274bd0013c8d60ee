import Glibc
import Synchronization

/// A server for any protocol over TCP, inside the process of a test: each connection runs a script.
///
/// ```swift
/// let server = try StreamTestServer { connection in
///   try connection.write("220 ready\r\n")
///   guard try connection.line() == "STARTTLS" else { return }
///   try connection.write("220 go on\r\n")
///   try connection.startTLS(.localhost)
///   try connection.echo()
/// }
/// ```
///
/// It listens on 127.0.0.1. Each script runs on a separate thread, until it returns or throws. Stopping the server ends
/// all scripts, because their reads and writes then throw.
public final class StreamTestServer: Sendable {
  /// The code that serves a connection. An error that it throws ends the connection.
  public typealias Script = @Sendable (StreamTestConnection) throws -> Void

  let core: Core

  /// Starts a server; it listens when this returns. Throws as ``HTTPTestServer/init(_:port:routes:)``.
  ///
  /// - Parameters:
  ///   - security: Whether connections begin with TLS.
  ///   - script: Default: sends received bytes back.
  public init(
    _ security: HTTPTestServer.Security = .none, script: @escaping Script = { try $0.echo() }
  ) throws(ServerError) {
    var tls: TLSContext?
    if case .tls(let identity, let options) = security { tls = try TLSContext(identity, options) }
    core = try Core(tls: tls, script: script)
  }

  deinit { core.stop() }

  /// The port on 127.0.0.1.
  public var port: Int { core.port }

  /// The number of connections accepted since the start.
  public var connectionCount: Int { core.state.withLock { $0.accepted } }

  /// The number of open connections.
  public var openConnectionCount: Int { core.state.withLock { $0.open } }

  /// The number of bytes that scripts have read since the start, without TLS handshakes.
  public var receivedByteCount: Int { core.state.withLock { $0.received } }

  /// Closes everything and waits for the end of all threads, unless a script calls it.
  public func stop() { core.stop() }

  final class Core: Sendable {
    struct CoreState {
      var accepted = 0
      var open = 0
      var received = 0
      var acceptor: pthread_t?
    }

    /// The counts of connections and bytes, for the server and tests.
    let state = Mutex(CoreState())
    let port: Int
    private let tls: TLSContext?
    private let script: Script
    private let stopSignal: Waker
    let threads: ConnectionThreads

    init(tls: TLSContext?, script: @escaping Script) throws(ServerError) {
      self.tls = tls
      self.script = script
      stopSignal = try Waker()
      threads = try ConnectionThreads()
      let listener = try Listener(backlog: 1024)
      port = listener.port
      let thread = try ServerThread.start { self.accept(from: listener) }
      state.withLock { $0.acceptor = thread }
    }

    func stop() {
      stopSignal.wake()
      guard let thread = state.withLock({ $0.acceptor.take() }) else { return }
      threads.release(acceptor: thread)
    }

    private func accept(from listener: Listener) {
      while let descriptor = listener.next(until: stopSignal, joining: threads) {
        state.withLock { state in
          state.accepted += 1
          state.open += 1
        }
        do throws(ServerError) {
          try threads.start { self.serve(descriptor) }
        } catch {
          close(descriptor)
          state.withLock { $0.open -= 1 }
        }
      }
      threads.joinAll()
    }

    private func serve(_ descriptor: Int32) {
      let channel = Channel(descriptor: descriptor, stopSignal: stopSignal)
      let connection = StreamTestConnection(channel, self, stopSignal)
      do {
        if let tls { try connection.startTLS(tls) }
        try script(connection)
        channel.end(connection.isReset ? .reset : .close, hasUnread: false)
      } catch {
        // The error only ends the connection; a script reports its failures itself.
        if connection.isReset { channel.end(.reset, hasUnread: false) }
      }
      channel.tls = nil
      close(descriptor)
      state.withLock { $0.open -= 1 }
    }
  }
}

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

  /// Reads available bytes, up to `count`, but at least one; waits for the first. Empty at the end.
  public func read(atMost count: Int = 65_536) throws -> [UInt8] {
    let bytes = try channel.read(atMost: max(1, count))
    core.state.withLock { $0.received += bytes.count }
    return bytes
  }

  /// Reads a line without its end, byte for byte, so that later bytes are not read. The rest at the end of the stream
  /// is a line.
  public func line() throws -> String {
    var bytes: [UInt8] = []
    while let byte = try read(atMost: 1).first, byte != UInt8(ascii: "\n") { bytes.append(byte) }
    if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Reads until the other side has finished sending.
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
  /// - Parameter changes: Masks for an exclusive or, by their offsets in the record, which has a header of five bytes.
  public func changeNextRecord(_ changes: [Int: UInt8]) { channel.tls?.changeNextRecord(changes) }

  /// Resets the connection when the script returns or throws.
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

extension StreamTestConnection {
  /// Connects to another port on 127.0.0.1 and forwards the bytes of both sides, as a proxy does, until both have
  /// ended.
  ///
  /// - Parameters:
  ///   - port: The port of the other server, on 127.0.0.1.
  ///   - begun: Called when the connection is established.
  public func relay(toPort port: Int, begun: () throws -> Void = {}) throws {
    let other = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard other >= 0 else { throw ServerError.system(call: "socket", code: errno) }
    defer { close(other) }
    DescriptorFlags.set(on: other)
    let signal = stopSignal
    try Self.connect(Channel(descriptor: other, stopSignal: signal), toPort: port)
    try begun()
    guard channel.tls == nil else {
      return try takeTurns(with: Channel(descriptor: other, stopSignal: signal))
    }
    let back = try ServerThread.start { [descriptor = channel.descriptor] in
      Self.copy(from: other, to: descriptor, signal)
    }
    Self.copy(from: channel.descriptor, to: other, signal)
    pthread_join(back, nil)
  }

  /// Connects a socket that does not block, and waits until it is connected or the server is stopped.
  private static func connect(_ channel: Channel, toPort port: Int) throws {
    var address = try LoopbackAddress.make(port: port, for: "connect")
    let status = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(channel.descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    if status == 0 { return }
    guard errno == EINPROGRESS || errno == EINTR else {
      throw ServerError.system(call: "connect", code: errno)
    }
    try channel.wait(for: POLLOUT)
    var code: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    if getsockopt(channel.descriptor, SOL_SOCKET, SO_ERROR, &code, &length) != 0 { code = errno }
    if code != 0 { throw ServerError.system(call: "connect", code: code) }
  }

  /// Relays both directions on one thread, because only one can use TLS. As long as one side writes without reading,
  /// the other must not do so.
  private func takeTurns(with far: Channel) throws {
    var isOpen = (near: true, far: true)
    while isOpen.near || isOpen.far {
      let isNear = try isOpen.near && (!isOpen.far || channel.isReadable(before: far))
      let (source, target) = isNear ? (channel, far) : (far, channel)
      // An end without the alert of TLS is handed on as an end.
      let bytes = (try? source.read(atMost: 65_536)) ?? []
      guard bytes.isEmpty else {
        try target.write(bytes)
        continue
      }
      target.tls?.sendClosingAlert()
      shutdown(target.descriptor, Int32(SHUT_WR))
      if isNear { isOpen.near = false } else { isOpen.far = false }
    }
  }

  private static func copy(from source: Int32, to target: Int32, _ signal: Waker) {
    let input = Channel(descriptor: source, stopSignal: signal)
    let output = Channel(descriptor: target, stopSignal: signal)
    while let bytes = try? input.read(atMost: 65_536), !bytes.isEmpty {
      guard (try? output.write(bytes)) != nil else { break }
    }
    shutdown(target, Int32(SHUT_WR))
  }
}
