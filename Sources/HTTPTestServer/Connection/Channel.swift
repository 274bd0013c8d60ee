import Glibc

/// The bytes of one accepted connection, plain or over TLS; used by the thread of the connection only.
///
/// The socket never blocks: every wait is a `poll` that also ends when the server is stopped.
final class Channel {
  /// The reason why a connection cannot continue.
  enum Failure: Error {
    /// The server is being stopped.
    case stopped
    /// The client has closed or reset the connection.
    case clientGone
    /// The time was over.
    case timedOut
    /// A TLS handshake or record is invalid.
    case tls
  }

  /// `POLLRDHUP` of Linux, which the C library's module does not export: the client closed its side.
  private static let hangUp: Int32 = 0x2000

  let descriptor: Int32
  private let stopSignal: Waker
  /// The number of bytes that may still be read or written after the server was stopped: enough for a short response
  /// that is under way. Without a limit, a client that is always ready would keep the thread from ever waiting, and so
  /// from noticing the stop.
  private var countAfterStop = 65_536
  var tls: TLSSession?

  init(descriptor: Int32, stopSignal: Waker) {
    self.descriptor = descriptor
    self.stopSignal = stopSignal
  }

  /// Reads available bytes, up to `count`; empty at the end of the stream.
  func read(atMost count: Int) throws(Failure) -> [UInt8] {
    var received = 0
    var failure: Failure?
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      do throws(Failure) {
        received = try read(into: UnsafeMutableRawBufferPointer(buffer))
      } catch {
        failure = error
      }
      initialized = received
    }
    if let failure { throw failure }
    return bytes
  }

  private func read(into buffer: UnsafeMutableRawBufferPointer) throws(Failure) -> Int {
    if let tls {
      let count = try tls.read(into: buffer, over: self)
      try note(count)
      return count
    }
    while true {
      let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
      if count >= 0 {
        try note(count)
        return count
      }
      switch errno {
      case EAGAIN: try wait(for: POLLIN)
      case EINTR: continue
      default: throw .clientGone
      }
    }
  }

  /// Notes that bytes were read or written. Throws if the server was stopped, and too many have followed since.
  func note(_ count: Int) throws(Failure) {
    guard stopSignal.isAwake else { return }
    countAfterStop -= count
    if countAfterStop < 0 { throw .stopped }
  }

  /// Writes all bytes; waits while the client does not read.
  ///
  /// - Parameter connection: The connection that waits for its next request after the last byte. Default: `nil`, if
  ///   more has to be done before.
  func write(_ bytes: [UInt8], finishing connection: AcceptedConnection? = nil) throws(Failure) {
    var failure: Failure?
    bytes.withUnsafeBytes { buffer in
      do throws(Failure) { try write(buffer, finishing: connection) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  private func write(
    _ buffer: UnsafeRawBufferPointer, finishing connection: AcceptedConnection?
  ) throws(Failure) {
    if let tls { return try tls.write(buffer, over: self, finishing: connection) }
    var rest = buffer[...]
    while !rest.isEmpty {
      let part = UnsafeRawBufferPointer(rebasing: rest)
      var (count, code) = (0, Int32(0))
      Self.attempt(finishing: connection) {
        count = send(descriptor, part.baseAddress, part.count, Int32(MSG_NOSIGNAL))
        code = errno
        return count == part.count
      }
      if count >= 0 {
        rest = rest.dropFirst(count)
        try note(count)
        continue
      }
      switch code {
      case EAGAIN: try wait(for: POLLOUT)
      case EINTR: continue
      default: throw .clientGone
      }
    }
  }

  /// Performs a step that writes without waiting, and returns whether the last byte was written.
  static func attempt(finishing connection: AcceptedConnection?, _ step: () -> Bool) {
    if let connection { connection.finish(step) } else { _ = step() }
  }

  /// Waits until the socket is ready for one of these events, without limit by default.
  func wait(for events: Int32, until deadline: ContinuousClock.Instant? = nil) throws(Failure) {
    _ = try poll(socketEvents: events, also: nil, until: deadline)
  }

  /// Waits for a while; ends early with a failure when the client closes its side.
  func pause(for duration: Duration) throws(Failure) {
    guard duration > .zero else { return }
    let deadline = ContinuousClock.now.advanced(by: duration)
    do throws(Failure) {
      _ = try poll(socketEvents: Self.hangUp, also: nil, until: deadline)
    } catch {
      if case .timedOut = error { return }
      throw error
    }
    throw .clientGone
  }

  /// Waits until the gate is open, the client closes its side or the server is stopped.
  func pass(_ gate: Gate) throws(Failure) {
    guard case .closed(let waker) = gate.reached() else { return }
    guard let waker else {
      while !gate.isOpen { try pause(for: .milliseconds(10)) }
      return
    }
    let isWoken = try poll(socketEvents: Self.hangUp, also: waker, until: nil)
    if !isWoken { throw .clientGone }
  }

  /// Does nothing until the client closes its side or the server is stopped.
  func stall() throws(Failure) {
    _ = try poll(socketEvents: Self.hangUp, also: nil, until: nil)
    throw .clientGone
  }

  /// Waits until one of two can be read. Returns whether it is this one.
  func isReadable(before other: Channel) throws(Failure) -> Bool {
    var entries = [stopSignal.descriptor, descriptor, other.descriptor].map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    while Glibc.poll(&entries, 3, -1) < 0 { guard errno == EINTR else { throw .clientGone } }
    if entries[0].revents != 0 { throw .stopped }
    return entries[1].revents != 0
  }

  /// Returns whether it was the waker that ended the wait.
  private func poll(
    socketEvents: Int32, also waker: Waker?, until deadline: ContinuousClock.Instant?
  ) throws(Failure) -> Bool {
    var entries = [
      pollfd(fd: stopSignal.descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: descriptor, events: Int16(socketEvents), revents: 0),
      pollfd(fd: waker?.descriptor ?? -1, events: Int16(POLLIN), revents: 0),
    ]
    while true {
      let count = Glibc.poll(&entries, 3, PollTimeout.milliseconds(until: deadline))
      if count < 0, errno != EINTR { throw .clientGone }
      if count > 0 {
        if entries[0].revents != 0 { throw .stopped }
        if entries[2].revents != 0 { return true }
        return false
      }
      if let deadline, ContinuousClock.now >= deadline { throw .timedOut }
    }
  }
}

/// The timeout of `poll`.
enum PollTimeout {
  /// Returns the milliseconds until the deadline, rounded up, because `poll` must not return early; −1 without a
  /// deadline.
  static func milliseconds(until deadline: ContinuousClock.Instant?) -> Int32 {
    guard let deadline else { return -1 }
    let (seconds, attoseconds) = ContinuousClock.now.duration(to: deadline).components
    if seconds < 0 || attoseconds < 0 { return 0 }
    // At most an hour at a time.
    return seconds >= 3600
      ? 3_600_000 : Int32(seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
  }
}

extension Channel {
  /// Ends the connection. The caller closes the descriptor afterwards.
  ///
  /// If `hasUnread` is true, or bytes are waiting, received bytes are discarded for up to two seconds. Closing a
  /// socket with unread bytes resets the connection and can destroy the response.
  func end(_ ending: ConnectionEnding, hasUnread: Bool) {
    switch ending {
    case .keepAlive, .close:
      tls?.sendClosingAlert()
      shutdown(descriptor, Int32(SHUT_WR))
      if hasUnread || bytesWait() { drainInput(for: .seconds(2)) }
    case .cut:
      shutdown(descriptor, Int32(SHUT_WR))
      if hasUnread || bytesWait() { drainInput(for: .seconds(2)) }
    case .reset:
      waitForOutput()
      var option = linger(l_onoff: 1, l_linger: 0)
      setsockopt(
        descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }
  }

  private func bytesWait() -> Bool {
    var byte: UInt8 = 0
    return recv(descriptor, &byte, 1, Int32(MSG_PEEK)) > 0
  }

  /// Discards received bytes, below TLS.
  private func drainInput(for limit: Duration) {
    let deadline = ContinuousClock.now.advanced(by: limit)
    withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 16) { buffer in
      while ContinuousClock.now < deadline {
        let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
        if count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR) { return }
        if count > 0 { continue }
        do { try wait(for: POLLIN, until: deadline) } catch { return }
      }
    }
  }

  /// Waits, at most a second, until the client's side has acknowledged the written bytes, because a reset destroys
  /// the send buffer.
  private func waitForOutput() {
    let deadline = ContinuousClock.now.advanced(by: .seconds(1))
    var unsent: Int32 = 0
    while ioctl(descriptor, UInt(TIOCOUTQ), &unsent) == 0, unsent > 0, ContinuousClock.now < deadline {
      let soon = ContinuousClock.now.advanced(by: .milliseconds(1))
      do throws(Failure) {
        try wait(for: 0, until: soon)
        return
      } catch {
        guard case .timedOut = error else { return }
      }
    }
  }
}
