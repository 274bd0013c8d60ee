import Glibc

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
