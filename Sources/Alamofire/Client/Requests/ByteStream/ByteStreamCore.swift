import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Synchronization

/// The implementation of a ``ByteStreamRequest``: the engine's stream, once it is opened, and the error with which it
/// ended.
final class ByteStreamCore: RegisteredStream {
  typealias Ended = @Sendable (AFError?) -> Void

  /// An operation for which the engine's stream is needed.
  enum Operation { case connecting, reading, writing, securing, closingReading, closingWriting }

  /// Guarded by the lock of this class.
  private struct State {
    var stream: (any ByteStream)?
    var phase = ByteStreamRequest.State.initialized
    var isReadClosed = false
    var isWriteClosed = false
    /// Whether both sides were closed by ``ByteStreamCore/close()``, so that the stream ends without more operations.
    var isClosing = false
    /// Whether TLS was asked for. If it does not begin, the stream ends.
    var isSecuring = false
    /// Whether a closure that waits for the end retains the request.
    var isRetained = false
    var isSuspended = false
    var error: AFError?
    /// The closures that wait for the end, with their numbers.
    var waiting: [(number: Int, body: Ended)] = []
    var lastNumber = 0
    var sent: Int64 = 0
    var received: Int64 = 0
    /// The task that users and delegates see; created on first access.
    var task: ByteStreamTask?

    /// Takes note of an operation. The first one that is not refused connects; closing a side does not.
    mutating func note(_ operation: Operation) {
      if case .securing = operation { isSecuring = true }
      switch operation {
      case .closingReading: isReadClosed = true
      case .closingWriting: isWriteClosed = true
      case .reading where isReadClosed, .writing where isWriteClosed: break
      case .securing where isReadClosed || isWriteClosed: break
      case .connecting, .reading, .writing, .securing: if phase == .initialized { phase = .connecting }
      }
    }

    /// Ends the request. Returns the closures that wait for that; `nil` if it has ended before.
    mutating func end(_ error: AFError?) -> [Ended]? {
      guard phase != .closed else { return nil }
      phase = .closed
      isSuspended = false
      self.error = error
      defer { waiting = [] }
      return waiting.map { $0.body }
    }
  }

  let session: SessionCore
  let id = UUID()
  let host: String
  let port: Int
  private let isSecure: Bool
  /// `nil` if the host or the port is invalid.
  let request: WireRequest?
  /// The state of the stream, its end and its waiters, for the loop and the threads of users.
  private let state = Mutex(State())

  init(_ session: SessionCore, host: String, port: Int, isSecure: Bool, options: TransportOptions?) {
    self.session = session
    self.host = host
    self.port = port
    self.isSecure = isSecure
    request = Self.request(host, port, session, options)
    if let error = session.runs.registry.register(self) {
      end(error)
    } else if request == nil {
      end(
        .sessionTaskFailed(
          error: URLError(
            .badURL, "\(host):\(port) is no host and port that could be connected to.", url: nil)))
    } else if session.byteStreams == nil {
      end(
        .sessionTaskFailed(
          error: URLError(
            .unsupportedURL, "The transport of this session has no streams of bytes.", url: nil)))
    }
  }

  private static func request(
    _ host: String, _ port: Int, _ session: SessionCore, _ options: TransportOptions?
  ) -> WireRequest? {
    let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    guard (1...65_535).contains(port), !bare.isEmpty,
      !bare.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F || "/?#@[]\\".utf8.contains($0) })
    else { return nil }
    let written = bare.contains(":") ? "[\(bare)]" : bare
    // As in a URL, internationalised names are converted to ASCII.
    guard let address = URL(string: "http://\(written):\(port)/")?.absoluteString,
      let target = WireTarget(address), target.origin.port == port
    else { return nil }
    let usual = session.settings.profile
    let profile = options.map {
      ConnectionProfile(
        options: $0, connectionsPerHost: usual.connectionsPerHost, evaluator: session.trust,
        systemProxies: usual.systemProxies, session: usual)
    }
    // The scheme of TLS, so that the stream uses the proxies for tunnels.
    let origin = Origin(scheme: "https", host: target.origin.host, port: port)
    return WireRequest(url: target.url, origin: origin, profile: profile ?? usual) { parts in
      parts.idleTimeout = session.settings.idleTimeout(parts.profile)
    }
  }

  // MARK: Operations

  /// Returns the engine's stream, and makes it if necessary; `nil` if the request ended before.
  private func opened(for operation: Operation) -> (any ByteStream)? {
    let (stream, isHeld): ((any ByteStream)?, Bool) = state.withLock { state in
      defer { if state.stream != nil { state.note(operation) } }
      if let stream = state.stream { return (stream, false) }
      guard state.phase != .closed, let request, let transport = session.byteStreams else {
        return (nil, false)
      }
      let limited = request.changing { $0.deadline = session.settings.deadline(request.profile) }
      let stream = transport.stream(limited, isSecure: isSecure, watcher: self)
      state.stream = stream
      return (stream, state.isSuspended)
    }
    if isHeld, let stream { align(stream) }
    return stream
  }

  func resume() {
    state.withLock { $0.isSuspended = false }
    if let stream = opened(for: .connecting) { align(stream) }
  }

  func suspend() {
    let stream = state.withLock { state in
      if state.phase != .closed { state.isSuspended = true }
      return state.stream
    }
    if let stream { align(stream) }
  }

  /// Suspends or resumes the engine's stream. If two threads do so at the same time, the later decision wins, because
  /// the state is compared again afterwards.
  private func align(_ stream: any ByteStream) {
    var applied: Bool?
    while true {
      let isSuspended = isSuspended
      guard isSuspended != applied else { return }
      if isSuspended { stream.suspend() } else { stream.resume() }
      applied = isSuspended
    }
  }

  @discardableResult
  func read(
    _ least: Int, _ most: Int, _ timeout: Duration?,
    _ completion: @escaping @Sendable (Result<StreamedBytes, AFError>) -> Void
  ) -> ByteStreamFlow.Number? {
    guard let stream = opened(for: .reading) else {
      completion(.failure(reasonOfEnd))
      return nil
    }
    return stream.read(least: least, most: most, timeout: timeout) { [self] result in
      if case .success(let bytes) = result { count { $0.received += Int64(bytes.data.count) } }
      completion(result.mapError { error(of: $0) })
    }
  }

  @discardableResult
  func write(
    _ data: Data, _ timeout: Duration?, _ completion: @escaping @Sendable (Result<Void, AFError>) -> Void
  ) -> ByteStreamFlow.Number? {
    guard let stream = opened(for: .writing) else {
      completion(.failure(reasonOfEnd))
      return nil
    }
    return stream.write(data, timeout: timeout) { [self] result in
      if case .success = result { count { $0.sent += Int64(data.count) } }
      completion(result.mapError { error(of: $0) })
    }
  }

  @discardableResult
  func secure(
    _ completion: @escaping @Sendable (Result<Void, AFError>) -> Void
  ) -> ByteStreamFlow.Number? {
    guard let stream = opened(for: .securing) else {
      completion(.failure(reasonOfEnd))
      return nil
    }
    return stream.secure { [self] result in completion(result.mapError { error(of: $0) }) }
  }

  /// Ends the stream because its TLS is not asked for, and its later operations would be in the clear. Does nothing
  /// if it is secure without that TLS, or performs no more operations.
  func refuseToSecure() {
    guard !isSecure, state.withLock({ !$0.isSecuring && !$0.isClosing }) else { return }
    cancel()
  }

  func withdraw(_ number: ByteStreamFlow.Number) { state.withLock { $0.stream }?.withdraw(number) }
  func closeReading() { opened(for: .closingReading)?.closeReading() }
  func closeWriting() { opened(for: .closingWriting)?.closeWriting() }
  func close() {
    state.withLock { $0.isClosing = true }
    openedOrEnded(nil)?.close()
  }
  func cancel() { openedOrEnded(.explicitlyCancelled)?.cancel() }

  /// Ends the request because its session has ended.
  func abandon(_ error: AFError) { openedOrEnded(error)?.shutDown() }

  /// Ends the request if nothing has connected it.
  func refuse(_ error: AFError) {
    guard phase == .initialized else { return }
    openedOrEnded(error)?.shutDown()
  }

  /// Returns the engine's stream, which reports its end. If there is none, ends the request, so that an operation on
  /// another thread makes none.
  private func openedOrEnded(_ error: AFError?) -> (any ByteStream)? {
    let (stream, waiting): ((any ByteStream)?, [Ended]?) = state.withLock { state in
      if let stream = state.stream { return (stream, nil) }
      return (nil, state.end(error))
    }
    hasEnded(waiting, error)
    return stream
  }

  // MARK: State

  var phase: ByteStreamRequest.State { state.withLock { $0.phase } }
  var isSuspended: Bool { state.withLock { $0.isSuspended } }
  var isClosing: Bool { state.withLock { $0.isClosing } }
  var error: AFError? { state.withLock { $0.error } }
  /// The number of closures that wait for the end.
  var waitingCount: Int { state.withLock { $0.waiting.count } }
  var counts: (sent: Int64, received: Int64) { state.withLock { ($0.sent, $0.received) } }

  var task: ByteStreamTask {
    state.withLock { state in
      if let task = state.task { return task }
      let task = ByteStreamTask(self)
      state.task = task
      return task
    }
  }

  /// Calls `body` at the end, or at once if it has ended. Returns the number of a closure that has to wait.
  @discardableResult
  func whenEnded(_ body: @escaping Ended) -> Int? {
    let number = state.withLock { state -> Int? in
      guard state.phase != .closed else { return nil }
      state.lastNumber += 1
      state.waiting.append((state.lastNumber, body))
      return state.lastNumber
    }
    if number == nil { body(error) }
    return number
  }

  /// Retains the request until the end. Later calls have no effect.
  func retain(_ request: ByteStreamRequest) {
    let isFirst = state.withLock { state in
      defer { state.isRetained = true }
      return !state.isRetained
    }
    if isFirst { whenEnded { _ in withExtendedLifetime(request) {} } }
  }

  /// Removes a closure that waits for the end.
  func forget(_ number: Int) {
    let removed = state.withLock { state in
      state.waiting.firstIndex { $0.number == number }.map { state.waiting.remove(at: $0) }
    }
    // Released outside the lock.
    _ = removed
  }

  func streamOpened() {
    state.withLock { state in
      if state.phase == .connecting { state.phase = .open }
    }
  }

  func streamEnded(_ failure: TransportFailure?) { end(failure.map { error(of: $0) }) }

  private func end(_ error: AFError?) {
    hasEnded(state.withLock { $0.end(error) }, error)
  }

  /// Reports the end of the request to its session and to those that wait for it.
  private func hasEnded(_ waiting: [Ended]?, _ error: AFError?) {
    guard let waiting else { return }
    for body in waiting { body(error) }
    notifyDelegate(error)
    // Last, because observers are notified of the end of the session after the ends of all its members.
    if session.runs.registry.unregister(self) { session.notifyInvalidOnce() }
  }

  private var reasonOfEnd: AFError {
    error
      ?? .sessionTaskFailed(
        error: URLError(.networkConnectionLost, "The stream to \(host) was closed.", url: nil))
  }

  private func count(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }

  private func error(of failure: TransportFailure) -> AFError {
    if failure.kind == .shutDown { return session.reasonOfEnd }
    if let cause = failure.cause { return AFError(refusal: cause) }
    return AFError(
      failure.explained(host: request?.origin.host ?? host, by: session.network), url: "tcp://\(host):\(port)"
    )
  }

  private func notifyDelegate(_ error: AFError?) {
    guard session.observers.observes(.transfers) else { return }
    let delegate = session.delegate
    let facade = session.facade
    let task = task
    session.rootQueue.async { delegate.urlSession(facade, task: task, didCompleteWithError: error) }
  }
}

// The engine's calls about a stream: the trust of the server, the client identity, and the end.
extension ByteStreamCore: ByteStreamWatcher {
  func evaluate(_ chain: PresentedChain) async -> TransportFailure? {
    guard let evaluator = session.trust, let profile = request?.profile else { return nil }
    let trust = ServerTrust(chain, options: profile.options, systemProxies: profile.systemProxies)
    let deadline = timeToDecide
    var verdict: TrustMemory.Verdict?
    if evaluator.isObserved {
      let answer = await answer(in: ServerProtectionSpace(trust, chain), deadline)
      if let failure = lateness(deadline, of: chain.host, "The delegate") { return failure }
      switch answer {
      case .accept: verdict = .acceptedByDelegate
      case .usual, .identity: break
      case .cancel: return Self.cancelled
      case .refuse:
        return TransportFailure(
          .certificateUntrusted, "The delegate rejected the certificates of \(chain.host).")
      }
    }
    if verdict == nil {
      let result = await evaluator.evaluated(trust, forHost: chain.host, deadline)
      if let failure = lateness(deadline, of: chain.host, "An evaluator") { return failure }
      switch result {
      case .success(let found): verdict = found
      case .failure(let error):
        return TransportFailure(
          .trustRefused, "The certificates of \(chain.host) were refused.", cause: error)
      }
    }
    evaluator.remember(verdict ?? .usual, on: chain, in: chain.partition)
    return nil
  }

  func identity() async -> Result<ClientIdentity?, TransportFailure> {
    guard let evaluator = session.trust, let origin = request?.origin else { return .success(nil) }
    let space = URLProtectionSpace(
      host: origin.host, port: origin.port, protocol: nil, realm: nil,
      authenticationMethod: NSURLAuthenticationMethodClientCertificate)
    let deadline = timeToDecide
    let answer = await answer(in: space, deadline)
    if let failure = lateness(deadline, of: origin.host, "The delegate") { return .failure(failure) }
    switch answer {
    case .identity(let identity): return .success(identity)
    case .cancel: return .failure(Self.cancelled)
    case .accept, .usual, .refuse:
      evaluator.remainAnonymous(toHost: origin.host, port: origin.port)
      return .success(nil)
    }
  }

  /// Returns the failure of a decision that was not made in time; `nil` if it was. The answer after the deadline says
  /// nothing, because it may be the answer after a cancellation.
  private func lateness(
    _ deadline: MonotonicTime?, of host: String, _ asked: String
  ) -> TransportFailure? {
    guard let deadline, deadline <= .now else { return nil }
    let profile = request?.profile ?? session.settings.profile
    return TransportFailure(
      .timedOut,
      "\(asked) did not decide about \(host) in time (\(profile.options.timeLimits.idleSetting)).",
      phase: .idle)
  }

  private static var cancelled: TransportFailure {
    TransportFailure(.cancelled, "The delegate has cancelled the stream.")
  }

  private var timeToDecide: MonotonicTime? {
    session.settings.idleTimeout(request?.profile ?? session.settings.profile)
      .map { MonotonicTime.now + $0 }
  }

  private func answer(in space: URLProtectionSpace, _ deadline: MonotonicTime?) async -> TrustAnswer {
    let challenge = URLAuthenticationChallenge(
      protectionSpace: space, proposedCredential: nil, previousFailureCount: 0, failureResponse: nil,
      error: nil, sender: SilentSender())
    let task = task
    return await SingleCompletion.answer(
      whenForgotten: TrustAnswer.usual, whenCancelled: .cancel, deadline: deadline
    ) { [session] completion in
      let delegate = session.delegate
      let facade = session.facade
      session.rootQueue.async {
        delegate.urlSession(facade, task: task, didReceive: challenge) { completion(TrustAnswer($0, $1)) }
      }
    }
  }
}
