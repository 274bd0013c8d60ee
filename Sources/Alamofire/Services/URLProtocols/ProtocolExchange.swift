import Foundation
import FoundationNetworking
import HTTPSystem
package import HTTPWire
import Synchronization

/// The performance of one request by a `URLProtocol`, and the client of that object.
///
/// The class may call its client on any thread, in any order, and after its end. Every call becomes an event on the
/// queue ``events``, which alone accesses the state. The class is called on another queue, because `startLoading()`
/// may block. Unchecked for that reason: each variable belongs to one of the two queues.
final class ProtocolExchange: NSObject, @unchecked Sendable {
  typealias Result = Swift.Result<WireResponse, TransportFailure>
  typealias Completion = @Sendable (Result, ProtocolTransport.Given) -> Void

  let type: URLProtocol.Type
  let request: URLRequest
  let credential: URLCredential?
  let wire: WireRequest
  let observer: any TransferObserver
  /// The serial queue of the class's calls to its client.
  let events = DispatchQueue(label: "org.alamofire.protocol.events")
  /// The serial queue of `startLoading()` and `stopLoading()`.
  let work = DispatchQueue(label: "org.alamofire.protocol")

  /// Accessed on `work` only. It retains its client, and is released when it has been stopped.
  private var loader: URLProtocol?

  // The following variables are accessed on `events` only.
  var reply = ProtocolReply()
  var delivery: ProtocolDelivery
  var clock: ProtocolClock
  var timer: (any DispatchSourceTimer)?
  var isHeld = false
  var hasStarted = false
  var completion: Completion?
  var given = ProtocolTransport.Given()

  init(
    _ type: URLProtocol.Type, _ request: URLRequest, credential: URLCredential?, wire: WireRequest,
    observer: any TransferObserver
  ) {
    self.type = type
    self.request = request
    self.credential = credential
    self.wire = wire
    self.observer = observer
    delivery = ProtocolDelivery(wire)
    clock = ProtocolClock(idle: wire.idleTimeout, deadline: wire.deadline, now: .now)
  }

  func begin(_ completion: @escaping Completion) {
    events.async { [self] in
      self.completion = completion
      if reply.state == .ended { return end(.failure(Self.cancelled)) }
      switch observer.transferBegan(self) {
      case .go: start()
      case .hold: isHeld = true
      case .refuse: happened(.cancel)
      }
      armTimer()
    }
  }

  private func start() {
    guard !hasStarted, reply.state == .waiting else { return }
    if let failure = failureOfStream {
      _ = reply.event(.cancel)
      return end(.failure(failure))
    }
    hasStarted = true
    work.async { [self] in
      let loader = type.init(request: request, cachedResponse: nil, client: self)
      self.loader = loader
      loader.startLoading()
    }
  }

  /// The failure if the class could not read the body.
  private var failureOfStream: TransportFailure? {
    guard let stream = request.httpBodyStream else { return nil }
    // Every other call to an unusable stream would end the process.
    guard stream.isUsable else {
      return TransportFailure(.cannotReadBody, "The stream with the body of the request could not be read.")
    }
    // A stream that was opened cannot be read again.
    guard stream.streamStatus != .notOpen else { return nil }
    return TransportFailure(
      .cannotReadBody,
      "The body of the request is a stream, which can be read once, but it has to be sent again; use Data or a file."
    )
  }

  // MARK: Events, on their queue

  func happened(_ event: ProtocolReply.Event) {
    perform(reply.event(event))
  }

  func perform(_ action: ProtocolReply.Action) {
    clock.moved(at: .now)
    switch action {
    case .nothing, .deliverBytes, .answerChallenge, .follow: break
    case .deliverHead: if let response = given.response { deliver(ResponseHead(response)) }
    case .deliverBytesAlone: deliver(.missing)
    case .complete: finishDelivery(nil)
    case .fail: finishDelivery(TransportFailure(.unknown, "The URLProtocol class \(type) failed."))
    case .cancel: end(.failure(Self.cancelled))
    case .timeOut:
      end(
        .failure(
          TransportFailure(
            .timedOut, "The URLProtocol class \(type) did not answer in time.",
            phase: clock.exceededPhase(at: .now))))
    case .refuse(let fault):
      end(.failure(TransportFailure(.badServerResponse, fault.message("\(type)"))))
    }
  }

  private func deliver(_ head: ResponseHead) {
    switch observer.headReceived(head) {
    case .proceed: break
    case .hold: isHeld = true
    case .discard: delivery.discards = true
    }
    if let failure = delivery.begin(head, wake: { [weak self] in self?.sinkHasRoom() }) { fail(failure) }
  }

  func sinkHasRoom() {
    events.async { [self] in
      delivery.isFull = false
      deliver()
    }
  }

  private func finishDelivery(_ failure: TransportFailure?) {
    delivery.ending = failure.map { .failure($0) } ?? .success(())
    deliver()
  }

  /// Delivers the head and the bytes, as far as the request is not suspended and its sink not full.
  func deliver() {
    guard completion != nil else { return }
    if let failure = delivery.excess { return fail(failure) }
    if !isHeld || !delivery.hasBytes {
      if let failure = delivery.run(observer) { return fail(failure) }
    }
    guard let ending = delivery.ending, !delivery.hasBytes else { return }
    switch ending {
    // A request that is suspended ends when it is resumed.
    case .success where isHeld: break
    case .success: end(delivery.finished())
    case .failure(let failure): end(.failure(failure))
    }
  }

  /// Ends the request with a failure of this library, not of the class.
  private func fail(_ failure: TransportFailure) {
    given.error = nil
    _ = reply.event(.cancel)
    end(.failure(failure))
  }

  func end(_ result: Result) {
    guard let completion else { return }
    self.completion = nil
    timer?.cancel()
    timer = nil
    var result = result
    if case .failure(let failure) = result, let partial = delivery.partial {
      result = .failure(failure.with(partial: partial))
    }
    delivery.close()
    if case .failure(let failure) = result, failure.kind != .unknown { given.error = nil }
    observer.transferEnded()
    completion(result, given)
    guard hasStarted else { return }
    work.async { [self] in
      loader?.stopLoading()
      loader = nil
    }
  }

  static var cancelled: TransportFailure { TransportFailure(.cancelled, "The request was cancelled.") }

  // MARK: Time

  private func armTimer() {
    guard completion != nil, timer == nil, let wait = clock.untilNext(at: .now) else { return }
    let timer = DispatchSource.makeTimerSource(queue: events)
    timer.setEventHandler { [weak self] in self?.timerFired() }
    timer.schedule(deadline: .now() + wait.dispatchInterval)
    self.timer = timer
    timer.resume()
  }

  private func timerFired() {
    // The idle timeout does not run while the request is suspended or its sink is full.
    if isHeld || delivery.isFull { clock.moved(at: .now) }
    if clock.isOver(at: .now) { return happened(.timeout) }
    if let wait = clock.untilNext(at: .now) { timer?.schedule(deadline: .now() + wait.dispatchInterval) }
  }
}

extension ProtocolExchange: TransferControl {
  func suspend() {
    events.async { [self] in isHeld = true }
  }

  func resume() {
    events.async { [self] in
      guard completion != nil else { return }
      isHeld = false
      clock.moved(at: .now)
      if hasStarted { deliver() } else { start() }
    }
  }

  func cancel() {
    events.async { [self] in
      // A complete response that is not delivered yet is dropped too.
      _ = reply.event(.cancel)
      end(.failure(Self.cancelled))
    }
  }
}

/// A transport that serves one hop by an object of a user's `URLProtocol` class.
final class ProtocolTransport: Transport {
  /// The response and the error as the class returned them.
  struct Given: Sendable {
    var response: URLResponse?
    var error: (any Error)?
  }

  private let type: URLProtocol.Type
  private let request: URLRequest
  private let credential: URLCredential?
  /// The response or the error of the class, for its queue of events and attempts.
  private let outcome = Mutex(Given())

  init(_ type: URLProtocol.Type, request: URLRequest, credential: URLCredential?) {
    self.type = type
    self.request = request
    self.credential = credential
  }

  var given: Given { outcome.withLock { $0 } }

  func send(
    _ request: WireRequest, observer: any TransferObserver, completion: any TransferCompletion
  ) {
    let exchange = ProtocolExchange(
      type, self.request, credential: credential, wire: request, observer: observer)
    exchange.begin { result, given in
      self.outcome.withLock { $0 = given }
      completion.transferEnded(result)
    }
  }
}

/// The idle timeout and the deadline of a request. Pure.
package struct ProtocolClock: Sendable {
  private let idle: Duration?
  private let deadline: MonotonicTime?
  private var lastMove: MonotonicTime

  package init(idle: Duration?, deadline: MonotonicTime?, now: MonotonicTime) {
    self.idle = idle
    self.deadline = deadline
    lastMove = now
  }

  package mutating func moved(at now: MonotonicTime) {
    lastMove = now
  }

  private var end: MonotonicTime? {
    [idle.map { lastMove + $0 }, deadline].compactMap { $0 }.min()
  }

  package func isOver(at now: MonotonicTime) -> Bool {
    end.map { $0 <= now } ?? false
  }

  /// Returns the phase whose limit is exceeded after ``isOver(at:)``.
  package func exceededPhase(at now: MonotonicTime) -> TransportOptions.TimeLimits.Phase {
    deadline.map { $0 <= now } ?? false ? .total : .idle
  }

  /// Returns the time until the next timeout; `nil` without one.
  package func untilNext(at now: MonotonicTime) -> Duration? {
    end.map { max(.milliseconds(1), now.duration(to: $0)) }
  }
}

extension Duration {
  /// The interval for a timer, at most a day; a timer that fires early is set again.
  var dispatchInterval: DispatchTimeInterval {
    let (seconds, attoseconds) = min(self, .seconds(86_400)).components
    return .nanoseconds(Int(seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000) + 1)
  }
}
