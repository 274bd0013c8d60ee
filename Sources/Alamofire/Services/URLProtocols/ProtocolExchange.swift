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
    // If another transport sends the rest of the request, it has to know that the class may have read the stream.
    (wire.source as? InputStreamSource)?.givenToClass()
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
      // The time for which the sink was full does not count as idle time.
      clock.moved(at: .now)
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
    if clock.isOver(at: .now) { return expire() }
    if let wait = clock.untilNext(at: .now) { timer?.schedule(deadline: .now() + wait.dispatchInterval) }
  }

  /// Ends the request because its time is over. A complete response that is not delivered yet is dropped, too.
  private func expire() {
    _ = reply.event(.timeout)
    perform(.timeOut)
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
      // The timer may be late.
      if clock.isOver(at: .now) { return expire() }
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

// The calls of a `URLProtocol` to its client; on any thread.
extension ProtocolExchange: URLProtocolClient {
  func urlProtocol(
    _ protocol: URLProtocol, didReceive response: URLResponse,
    cacheStoragePolicy policy: URLCache.StoragePolicy
  ) {
    events.async { [self] in received(response) }
  }

  func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) {
    events.async { [self] in received(data) }
  }

  func urlProtocolDidFinishLoading(_ protocol: URLProtocol) {
    events.async { [self] in happened(.finish) }
  }

  func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error) {
    events.async { [self] in
      if reply.state != .ended { given.error = error }
      happened(.failure)
    }
  }

  func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {
    events.async { [self] in
      guard reply.state == .waiting else { return }
      received(cachedResponse.response)
      received(cachedResponse.data)
    }
  }

  func urlProtocol(
    _ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse
  ) {
    events.async { [self] in
      guard reply.event(.redirect) == .follow else { return }
      let head = ResponseHead(redirect: redirectResponse, to: request, from: wire.method)
      end(.success(WireResponse(head: head, body: nil, metrics: TransferMetrics())))
    }
  }

  func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {
    events.async { [self] in
      guard reply.event(.challenge) == .answerChallenge else { return }
      guard let sender = challenge.sender else {
        _ = reply.event(.cancel)
        return end(
          .failure(
            TransportFailure(
              .userAuthenticationRequired,
              "The URLProtocol class \(type) asked for credentials without a sender to take them.")))
      }
      let credential = challenge.previousFailureCount == 0 ? credential : nil
      work.async {
        if let credential {
          sender.use(credential, for: challenge)
        } else {
          sender.continueWithoutCredential(for: challenge)
        }
      }
    }
  }

  func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {}

  // MARK: On the queue of events

  private func received(_ response: URLResponse) {
    if reply.state == .waiting { given.response = response }
    happened(.response)
  }

  private func received(_ data: Data) {
    let action = reply.event(.bytes)
    perform(action)
    guard action == .deliverBytes || action == .deliverBytesAlone else { return }
    delivery.append(data)
    deliver()
  }
}

extension ResponseHead {
  /// The head of data that a class gives without a response.
  static var missing: ResponseHead {
    var head = ResponseHead(status: 200)
    head.role = .missing
    return head
  }

  /// Makes the head of a response by a class of the user. A redirect status is not followed, because such a class
  /// redirects by calling its client.
  init(_ response: URLResponse) {
    guard let response = response as? HTTPURLResponse else {
      self.init(status: 200, fields: response.describingFields)
      role = .other
      return
    }
    self.init(status: response.statusCode, fields: Self.fields(response))
    role = .answer
  }

  /// Makes the head of a redirect by a class of the user, which follows the rules of a server's redirect. The status
  /// is changed if it would not give the method that the class has chosen.
  init(redirect response: URLResponse, to request: URLRequest, from method: String) {
    let response = response as? HTTPURLResponse
    var status = response?.statusCode ?? 0
    let keepsMethod = (request.httpMethod ?? "GET") == method
    if ![301, 302, 303, 307, 308].contains(status) || (keepsMethod && !["GET", "HEAD"].contains(method)) {
      status = 307
    }
    if !keepsMethod { status = 303 }
    var fields = response.map(Self.fields) ?? []
    fields.removeAll { FieldName.equal($0.name, "Location") }
    if let url = request.url { fields.append(HTTPHeader(name: "Location", value: url.absoluteString)) }
    self.init(status: status, fields: fields)
  }

  /// Returns the fields sorted by name, because a dictionary has no order. Line breaks are removed, because they would
  /// add fields.
  private static func fields(_ response: HTTPURLResponse) -> [HTTPHeader] {
    response.allHeaderFields
      .compactMap { key, value in
        guard let name = key as? String else { return nil }
        return HTTPHeader(name: oneLine(name), value: oneLine("\(value)"))
      }
      .sorted { $0.name < $1.name }
  }

  private static func oneLine(_ text: String) -> String {
    guard text.utf8.contains(where: { $0 == 0x0A || $0 == 0x0D }) else { return text }
    return String(decoding: text.utf8.map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 }, as: UTF8.self)
  }
}

extension URLResponse {
  /// The header fields for the media type and the length.
  fileprivate var describingFields: [HTTPHeader] {
    var fields: [HTTPHeader] = []
    if let mimeType {
      let charset = textEncodingName.map { "; charset=\($0)" } ?? ""
      fields.append(HTTPHeader(name: "Content-Type", value: mimeType + charset))
    }
    if expectedContentLength >= 0 {
      fields.append(HTTPHeader(name: "Content-Length", value: "\(expectedContentLength)"))
    }
    return fields
  }
}
