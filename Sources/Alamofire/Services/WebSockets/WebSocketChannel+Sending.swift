import Foundation
import HTTPWire
import Synchronization

/// The answer to a ping.
struct WebSocketPong: Sendable {
  let start: Date
  let end: Date
  let latency: Duration
}

// Messages, pings and the closing handshake.
extension WebSocketChannel {
  /// Sends a message after all earlier ones. The completion is called when the system has accepted its bytes.
  ///
  /// - Parameter limit: The number of unsent bytes from which on the message is refused.
  /// - Returns: The failure of a message that is refused because of the limit, whose completion is not called.
  func send(
    _ message: WebSocketMessage, limit: Int = .max, _ completion: SendCompletion?
  ) -> TransportFailure? {
    let (failure, isFull) = state.withLock { state -> (TransportFailure?, Bool) in
      if let failure = state.writeFailure { return (failure, false) }
      do throws(WebSocketSendError) {
        let overhead = state.sends.count * WebSocketMessage.overhead
        try state.connection.send(message, outputLimit: limit == .max ? .max : limit - overhead)
        guard let completion else { return (nil, false) }
        state.sends.append(PendingSend(end: state.connection.outputEnd, completion: completion))
        return (nil, false)
      } catch {
        let isFull = if case .outputFull = error { true } else { false }
        return (error.failure, isFull)
      }
    }
    if isFull { return failure }
    if let failure { completion?(failure) } else { flush() }
    return nil
  }

  /// Begins the closing handshake. Messages are delivered until the server has closed its side. A code that cannot be
  /// sent is left out with its reason. The reason is limited to 123 bytes.
  func close(_ code: WebSocketCloseCode, reason: String) {
    let hasBegun = state.withLock { state in
      guard state.connection.phase == .open else { return false }
      let shown = WebSocketClosure(code: code, reason: reason.prefix(bytes: 123))
      do throws(WebSocketSendError) {
        try state.connection.close(code.canBeSent ? code : nil, reason: code.canBeSent ? shown.reason : "")
      } catch {
        preconditionFailure("a Close frame that can be sent was refused: \(error.message)")
      }
      let end = state.connection.outputEnd
      state.ownClosure = OwnClosure(closure: shown, end: end)
      state.awaitedEnd = end
      return true
    }
    guard hasBegun else { return }
    setTimer(.closing, after: options.writeTimeout)
    // Another thread may have written the frame before the timer was set.
    let timer = state.withLock { $0.isWriting ? nil : $0.timerAfterWrite(options) }
    if let timer { setTimer(timer.purpose, after: timer.duration) }
    flush()
  }

  /// Sends a ping. Its completion is called with the pong.
  func ping(_ completion: PingCompletion?) {
    let isSent = state.withLock { state in
      guard state.writeFailure == nil else { return false }
      state.pingCount += 1
      let number = state.pingCount
      do throws(WebSocketSendError) {
        try state.connection.sendPing(withUnsafeBytes(of: number.bigEndian) { Data($0) })
      } catch {
        return false
      }
      state.pings.append(
        PendingPing(number: number, start: Date(), instant: .now, completion: completion))
      if completion == nil { state.awaitedEnd = state.connection.outputEnd }
      return true
    }
    if isSent { flush() } else { completion?(.failure(Self.notOpen)) }
  }

  /// Completes the ping that a pong answers, and all earlier pings, because a peer need not answer each (RFC 6455
  /// §5.5.3).
  func answerPings(_ payload: Data) {
    let number = payload.count == 8 ? payload.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } : 0
    let answered: [PendingPing] = state.withLock { state in
      guard let index = state.pings.firstIndex(where: { $0.number == number }) else { return [] }
      defer { state.pings.removeSubrange(...index) }
      return Array(state.pings[...index])
    }
    let (end, instant) = (Date(), ContinuousClock.now)
    for ping in answered {
      ping.completion?(
        .success(WebSocketPong(start: ping.start, end: end, latency: ping.instant.duration(to: instant))))
    }
    if answered.contains(where: { $0.completion == nil }) { schedulePing() }
  }

  // MARK: Writing

  /// Writes the output, unless a write is under way: then its completion continues.
  func flush() {
    let (writes, isOver) = state.withLock { state in
      guard !state.isWriting, state.streamEnd == nil else { return (false, false) }
      state.isWriting = state.connection.hasOutput && state.writeFailure == nil
      return (state.isWriting, state.endsTransport)
    }
    if isOver { return stream.close() }
    guard writes else { return }
    // The output is taken when it is written, so that the messages of one turn of a sender are one write.
    let output: @Sendable () -> Data = { [self] in
      state.withLock { $0.connection.takeOutput(options.writeSize) } ?? Data()
    }
    stream.write(output, timeout: nil) { [self] result in
      if case .failure(let failure) = result { return writingFailed(failure) }
      let (sends, timer) = state.withLock { state in
        state.isWriting = false
        return (state.removeWrittenSends(), state.timerAfterWrite(options))
      }
      if let timer { setTimer(timer.purpose, after: timer.duration) }
      for send in sends { send.completion(nil) }
      flush()
    }
  }

  /// Fails the messages that are not written yet. The stream lasts until all that the server has sent is read, and a
  /// reader may wait for its answer to be sent first.
  private func writingFailed(_ failure: TransportFailure) {
    // The end of the stream follows, and its failure counts.
    guard failure.kind != .cancelled, failure.kind != .shutDown else { return }
    let (sends, timer, shown) = state.withLock { state in
      defer { state.sends = [] }
      let shown = state.failure ?? failure
      state.writeFailure = shown
      state.isWriting = false
      state.connection.discardOutput()
      return (state.sends, state.timerAfterWrite(options), shown)
    }
    if let timer { setTimer(timer.purpose, after: timer.duration) }
    for send in sends { send.completion(shown) }
    flush()
  }

  // MARK: Control

  func suspend() {
    state.withLock { state in
      state.isSuspended = true
      guard state.timerPurpose == .ping || state.timerPurpose == .pong else { return }
      state.timer?.cancel()
      state.timer = nil
    }
    stream.suspend()
  }

  func resume() {
    let wasSuspended = state.withLock { state in
      defer { state.isSuspended = false }
      return state.isSuspended
    }
    stream.resume()
    // No pong could arrive during that time.
    if wasSuspended { schedulePing() }
  }

  func cancel() { stream.cancel() }

  // MARK: Timer

  /// Schedules the next automatic ping.
  func schedulePing() {
    guard let interval = options.pingInterval else { return }
    setTimer(.ping, after: interval)
  }

  func setTimer(_ purpose: TimerPurpose, after duration: Duration) {
    let interval = DispatchTimeInterval.milliseconds(max(1, Int(duration / .milliseconds(1))))
    state.withLock { state in
      let isPing = purpose == .ping || purpose == .pong
      if isPing, state.isSuspended || state.connection.phase != .open { return }
      // Nothing is awaited from a server that has ended.
      if purpose != .ending, state.timerPurpose == .ending { return }
      // The server may have closed its side since the closing handshake began.
      if purpose == .closing, state.connection.phase != .closing { return }
      guard state.end != nil else { return }
      state.timer?.cancel()
      state.timerNumber += 1
      let number = state.timerNumber
      let timer = DispatchSource.makeTimerSource()
      timer.schedule(deadline: .now() + interval)
      timer.setEventHandler { [weak self] in self?.timerFired(number) }
      timer.resume()
      state.timer = timer
      state.timerPurpose = purpose
      state.arrivalCountOfTimer = state.arrivalCount
    }
  }

  private func timerFired(_ number: Int) {
    let (purpose, isAgain) = state.withLock { state -> (TimerPurpose?, Bool) in
      guard state.timerNumber == number, state.timer != nil else { return (nil, false) }
      let isFull = state.isFull(options.heldLimit)
      switch state.timerPurpose {
      case .closing where isFull:
        state.connection.skipMessages()
        return (.closing, true)
      // Another thread has processed the pong before the completion of a write set this timer. After a failed write, no
      // ping could be sent, and the timer ends the connection.
      case .pong where !state.awaitsPong && state.writeFailure == nil: return (.ping, false)
      // The pong may be behind messages that no handler processes, or on its way behind others.
      case .pong where isFull || state.arrivalCount != state.arrivalCountOfTimer: return (.pong, true)
      case .pong: fail(&state, "did not answer a ping in time")
      case .closing: fail(&state, "did not answer the Close frame in time (RFC 6455 §7.1.2)")
      case .ending where !state.isClosed: state.failure = state.failure ?? ChannelState.withoutClosure(host)
      case .ping, .ending, nil: break
      }
      return (state.timerPurpose, false)
    }
    switch purpose {
    // The Close frame may follow messages that no handler processes.
    case .closing where isAgain:
      setTimer(.closing, after: options.closeTimeout)
      pump()
    case .pong where isAgain: options.pingInterval.map { setTimer(.pong, after: $0) }
    case .ping:
      // Before the ping, because its answer sets the timer again.
      setTimer(.pong, after: options.writeTimeout)
      ping(nil)
    case .pong, .closing, .ending: stream.cancel()
    case nil: break
    }
  }

  private func fail(_ state: inout ChannelState, _ event: String) {
    let isWritten = state.awaitedEnd == nil
    state.failure = state.failure ?? timedOut(isWritten ? event : "did not take the messages in time")
  }

  private func timedOut(_ event: String) -> TransportFailure {
    TransportFailure(.timedOut, "\(host) \(event).")
  }
}

extension WebSocketSendError {
  var failure: TransportFailure {
    let kind: TransportFailure.FailureKind =
      switch self {
      case .notOpen: .connectionLost
      case .outputFull: .dataLengthExceedsMaximum
      default: .resourceUnavailable
      }
    return TransportFailure(kind, message)
  }
}

extension WebSocketChannel.ChannelState {
  /// Whether the stream is to be closed once the output is written.
  fileprivate var endsTransport: Bool {
    (writeFailure != nil || !connection.hasOutput) && (connection.endsTransport || isAtEnd)
  }

  /// Whether an automatic ping is not answered yet.
  fileprivate var awaitsPong: Bool { pings.contains { $0.completion == nil } }

  /// Returns the timer that begins with the completion of a write: for the answer to a frame that was written now, or
  /// for the next write before that frame.
  fileprivate mutating func timerAfterWrite(
    _ options: WebSocketChannelOptions
  ) -> (purpose: WebSocketChannel.TimerPurpose, duration: Duration)? {
    guard let end = awaitedEnd, let purpose = timerPurpose, purpose == .closing || purpose == .pong else {
      return nil
    }
    // The Close frame is awaited, and its timer is about to be set.
    if purpose == .pong, connection.phase != .open { return nil }
    guard writeFailure != nil || end <= connection.takenByteCount else {
      return (purpose, options.writeTimeout)
    }
    awaitedEnd = nil
    let interval = purpose == .closing ? options.closeTimeout : options.pingInterval
    return interval.map { (purpose, $0) }
  }

  /// Removes and returns the messages that have been written completely.
  fileprivate mutating func removeWrittenSends() -> [WebSocketChannel.PendingSend] {
    let taken = connection.takenByteCount
    guard let first = sends.firstIndex(where: { $0.end > taken }) else {
      defer { sends = [] }
      return sends
    }
    defer { sends.removeFirst(first) }
    return Array(sends[..<first])
  }
}

extension String {
  /// Returns the first characters whose UTF-8 has at most `limit` bytes.
  fileprivate func prefix(bytes limit: Int) -> String {
    guard utf8.count > limit else { return self }
    var text = ""
    var count = 0
    for scalar in unicodeScalars {
      count += UTF8.width(scalar)
      guard count <= limit else { break }
      text.unicodeScalars.append(scalar)
    }
    return text
  }
}
