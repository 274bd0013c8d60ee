import CLinux
import Glibc
import HTTPSystem
import HTTPWire

/// One socket of the loop, watched by its poller, and closed exactly once. Belongs to the loop's thread.
///
/// A socket remembers the events that were reported: it is readable until a read has found it empty, and writable until
/// a write had to wait. An open socket and its owner keep each other until ``close()``.
final class Socket: PollTarget {
  /// The time without bytes after which the system asks whether the peer is there, and the pause between two
  /// questions, in seconds.
  private static let keepAliveSeconds: Int32 = 60
  /// The number of times that a file is tried again because the socket has room although it had none.
  private static let mostAttempts = 3

  @exclusivity(unchecked) private(set) var descriptor: Int32
  private let host: String
  private let poller: Poller
  @exclusivity(unchecked) private var token: PollToken?
  @exclusivity(unchecked) var owner: (any PipeOwner)?
  @exclusivity(unchecked) private var isReadable = true
  @exclusivity(unchecked) private var isWritable = true
  /// Whether the peer may have ended the connection. Then a short read does not mean that the socket is empty.
  @exclusivity(unchecked) private var mayEnd = false
  /// The failure of a write that the peer has reset. The system reports it once, so that reading then ends as if the
  /// peer had finished sending.
  @exclusivity(unchecked) private var reset: TransportFailure?

  /// Takes ownership of a descriptor.
  ///
  /// - Parameter host: The name of the peer in messages.
  convenience init(adopting descriptor: Int32, host: String, _ poller: Poller) {
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    self.init(nonblocking: descriptor, host: host, poller)
  }

  private init(nonblocking descriptor: Int32, host: String, _ poller: Poller) {
    self.descriptor = descriptor
    self.host = host
    self.poller = poller
  }

  deinit { if descriptor >= 0 { Glibc.close(descriptor) } }

  /// Opens a socket for a family of addresses. Returns `nil` if the system refuses; `errno` says why.
  static func open(family: Int32, host: String, _ poller: Poller) -> Socket? {
    let descriptor = linux_stream_socket(family)
    guard descriptor >= 0 else { return nil }
    let socket = Socket(nonblocking: descriptor, host: host, poller)
    if family != AF_UNIX { socket.setOptions() }
    return socket
  }

  /// Sets what every connection over TCP has.
  func setOptions() {
    // A small write must not wait for the acknowledgement of the previous one (Nagle's algorithm).
    set(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
    set(SOL_SOCKET, SO_KEEPALIVE, 1)
    set(Int32(IPPROTO_TCP), TCP_KEEPIDLE, Self.keepAliveSeconds)
    set(Int32(IPPROTO_TCP), TCP_KEEPINTVL, Self.keepAliveSeconds)
  }

  private func set(_ level: Int32, _ name: Int32, _ value: Int32) {
    var value = value
    setsockopt(descriptor, level, name, &value, socklen_t(MemoryLayout<Int32>.size))
  }

  /// Begins to connect, and notifies `owner` when that has succeeded or failed. Returns the `errno` of a failure.
  func connect(to address: SocketAddress, for owner: any PipeOwner) -> Int32? {
    let status = address.withPointer { Glibc.connect(descriptor, $0, $1) }
    guard status == 0 || errno == EINPROGRESS else { return errno }
    return watch(for: owner)
  }

  /// Notifies `owner` from now on when bytes can be read or written. Returns the `errno` of a failure.
  func watch(for owner: any PipeOwner) -> Int32? {
    token = poller.watch(descriptor, for: self)
    guard token != nil else { return errno }
    self.owner = owner
    return nil
  }

  /// The `errno` of the attempt to connect; 0 if it has succeeded, `nil` if it is still in progress.
  var connectResult: Int32? {
    var code: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size)
    guard code == 0 else { return code }
    // A socket that is not connected has no peer.
    var peer = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let status = withUnsafeMutablePointer(to: &peer) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) }
    }
    return status == 0 ? 0 : nil
  }

  func ready(_ events: PollEvents) {
    if !events.isDisjoint(with: [.readable, .ended]) { isReadable = true }
    if !events.isDisjoint(with: [.writable, .ended]) { isWritable = true }
    if !events.isDisjoint(with: .ended) { mayEnd = true }
    owner?.pipeIsReady()
  }

  func close() {
    if let token { poller.forget(token) }
    token = nil
    owner = nil
    if descriptor >= 0 { Glibc.close(descriptor) }
    descriptor = -1
  }
}

extension Socket: Pipe {
  var keepsWrites: Bool { false }
  var isDrained: Bool { !isReadable }

  func read(into room: UnsafeMutableRawBufferPointer) -> PipeStep {
    while isReadable {
      let count = recv(descriptor, room.baseAddress, room.count, 0)
      if count > 0 {
        if count < room.count, !mayEnd { isReadable = false }
        return .moved(count)
      }
      if count == 0 { return reset.map { .failed($0) } ?? .ended }
      switch errno {
      case EINTR: continue
      case EAGAIN: isReadable = false
      default: return .failed(.lost(host, errno))
      }
    }
    return .waitsToRead
  }

  func write(_ bytes: UnsafeRawBufferPointer) -> PipeStep {
    while isWritable {
      let count = send(descriptor, bytes.baseAddress, bytes.count, linux_no_signal)
      if count >= 0 { return .moved(count) }
      switch errno {
      case EINTR: continue
      case EAGAIN: isWritable = false
      // The peer had finished sending before.
      case EPIPE: return .failed(.lost(host, EPIPE))
      default:
        let failure = TransportFailure.lost(host, errno)
        reset = failure
        return .failed(failure)
      }
    }
    return .waitsToWrite
  }

  func write(_ count: Int, ofFile file: Int32) -> PipeStep? {
    var attempts = 0
    while isWritable {
      let sent = sendfile(descriptor, file, nil, count)
      if sent > 0 { return .moved(sent) }
      // The file has ended.
      guard sent < 0 else { return nil }
      let code = errno
      if code == EINTR { continue }
      // The error may be the file's, such as one on a network. Reading the file then tells.
      let state = events
      if state & (POLLERR | POLLHUP) != 0, code != EAGAIN {
        let failure = TransportFailure.lost(host, code)
        if code != EPIPE { reset = failure }
        return .failed(failure)
      }
      guard code == EAGAIN, attempts < Self.mostAttempts else { return nil }
      // The peer may have made room in between.
      if state & POLLOUT == 0 { isWritable = false }
      attempts += 1
    }
    return .waitsToWrite
  }

  /// The state of the socket at this moment, as `poll` reports it.
  private var events: Int32 {
    var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    return poll(&state, 1, 0) > 0 ? Int32(state.revents) : 0
  }

  func shutWriting() -> PipeStep {
    shutdown(descriptor, Int32(SHUT_WR))
    return .moved(0)
  }
}

extension TransportFailure {
  /// Returns the failure of a connection that broke, with an `errno`.
  static func lost(_ host: String, _ code: Int32) -> TransportFailure {
    TransportFailure(
      .connectionLost, "The connection to \(host) broke: \(String(cString: strerror(code))).")
  }
}

/// The result of an attempt to move bytes without waiting.
enum PipeStep {
  case moved(Int)
  /// The wait until the socket can be read; until then nothing can be done.
  case waitsToRead
  /// The wait until the socket can be written; until then nothing can be done.
  case waitsToWrite
  /// The peer has finished sending.
  case ended
  case failed(TransportFailure)
  /// The watcher has to evaluate the server first.
  case undecided(PresentedChain)
  /// The server asks for a client certificate, and the watcher chooses it.
  case asksForIdentity
}

/// A connection as its user sees it: a socket, or a tunnel that is secure itself. Belongs to the loop's thread, and
/// lasts until ``close()``.
protocol Pipe: AnyObject {
  var descriptor: Int32 { get }
  /// The user of the connection, called when bytes may move.
  var owner: (any PipeOwner)? { get set }
  /// Whether the connection is secure itself. Then a write that has to wait must be repeated with the same bytes, and
  /// each read and write clears OpenSSL's messages.
  var keepsWrites: Bool { get }

  /// Whether a read would have to wait, as far as it is known without asking the system.
  var isDrained: Bool { get }
  func read(into room: UnsafeMutableRawBufferPointer) -> PipeStep
  func write(_ bytes: UnsafeRawBufferPointer) -> PipeStep
  /// Writes the next bytes of an open file, without reading them into memory, and moves the offset of the file. Returns
  /// `nil` if that is not possible; the bytes then have to be read. SIGPIPE must be blocked.
  func write(_ count: Int, ofFile descriptor: Int32) -> PipeStep?
  /// Ends writing. Returns `.moved` if the peer will learn of it.
  func shutWriting() -> PipeStep
  func close()
}

extension Pipe {
  func write(_ count: Int, ofFile descriptor: Int32) -> PipeStep? { nil }
}

/// The user of a connection, called when bytes may move.
protocol PipeOwner: AnyObject {
  func pipeIsReady()
}

/// A connection with bytes that were read too early; they are read first. Belongs to the loop's thread.
final class UnreadPipe: Pipe {
  private let pipe: any Pipe
  private var unread: ArraySlice<UInt8>

  init(_ unread: ArraySlice<UInt8>, before pipe: any Pipe) {
    self.unread = unread
    self.pipe = pipe
  }

  var hasUnread: Bool { !unread.isEmpty }
  var descriptor: Int32 { pipe.descriptor }
  var owner: (any PipeOwner)? {
    get { pipe.owner }
    set { pipe.owner = newValue }
  }
  var keepsWrites: Bool { pipe.keepsWrites }
  var isDrained: Bool { unread.isEmpty && pipe.isDrained }

  func read(into room: UnsafeMutableRawBufferPointer) -> PipeStep {
    guard !unread.isEmpty else { return pipe.read(into: room) }
    let count = min(room.count, unread.count)
    room.copyBytes(from: unread.prefix(count))
    unread = unread.dropFirst(count)
    return .moved(count)
  }

  func write(_ bytes: UnsafeRawBufferPointer) -> PipeStep { pipe.write(bytes) }
  func write(_ count: Int, ofFile file: Int32) -> PipeStep? { pipe.write(count, ofFile: file) }
  func shutWriting() -> PipeStep { pipe.shutWriting() }
  func close() { pipe.close() }
}
