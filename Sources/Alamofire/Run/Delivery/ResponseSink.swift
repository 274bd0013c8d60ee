import Foundation
import HTTPWire
import Synchronization

/// The destination of a response: a closure on a queue, or the tasks that await a `DataTask`.
protocol ResponseSink: AnyObject, Sendable {
  /// Whether ``serialize(_:)`` runs user code, which must not run on the engine's thread.
  var runsUserCode: Bool { get }
  /// Waits for what the sink has to receive before its response is created.
  nonisolated(nonsending) func receiveRest(of core: RequestCore) async
  /// Whether the outcome may be serialized later, by ``postpone(_:)``.
  var canPostpone: Bool { get }
  /// Takes the outcome, to serialize it later on the thread of the awaiting task. Called only if ``canPostpone``.
  func postpone(_ outcome: consuming RequestOutcome)
  /// Makes the response of the outcome and stores it. Returns the failure of the serializer, if there is one, for the
  /// retriers. Called again after a retry.
  func serialize(_ outcome: RequestOutcome) -> AFError?
  /// Replaces the result that ``serialize(_:)`` has stored with an error, such as a retrier's.
  ///
  /// - Parameter parsed: The failure of the serializer, which monitors receive nevertheless. `nil` if they receive the
  ///   error, too.
  func replaceFailure(with error: AFError, parsed: AFError?)
  /// Delivers the response, once.
  func deliver()
  /// Delivers the response, and calls `completion` when the handler has returned. When tasks that await a response have
  /// used it is unknown, so the call happens when they are resumed.
  func deliver(then completion: @escaping @Sendable () -> Void)
  /// Calls the monitors of `request` with the response, which has been created.
  func announce(to request: any RunOwner)
}

extension ResponseSink {
  var canPostpone: Bool { false }

  func postpone(_ outcome: consuming RequestOutcome) {
    preconditionFailure("a sink that serializes at once got an outcome for later")
  }

  nonisolated(nonsending) func receiveRest(of core: RequestCore) async {}

  func deliver(then completion: @escaping @Sendable () -> Void) {
    deliver()
    completion()
  }
}

/// The outcome of a request, from which the sinks make responses.
struct RequestOutcome: Sendable {
  var request: URLRequest?
  var exchange: Exchange?
  var data: Data?
  var error: AFError?
  /// The file and the resume data of a download.
  var fileURL: URL?
  var resumeData: Data?
}

/// A response handler: a closure that is called on its queue with the response.
final class QueueSink<Kind: HandlerKind>: ResponseSink {
  typealias Response = Kind.Response

  private let queue: DispatchQueue
  private let serialization: Serialization<Kind.Value>
  private let handler: @Sendable (Response) -> Void

  private struct Made {
    var response: Response?
    /// The failure of the serializer, if a retrier's error has replaced it.
    var parsedFailure: AFError?
  }

  /// The response until its delivery, for attempts and monitors.
  private let made = Mutex(Made())

  init(
    queue: DispatchQueue, serialization: Serialization<Kind.Value>,
    completion: @escaping @Sendable (Response) -> Void
  ) {
    self.queue = queue
    self.serialization = serialization
    handler = completion
  }

  var runsUserCode: Bool { serialization.runsUserCode }

  func serialize(_ outcome: RequestOutcome) -> AFError? {
    let new: Response = serialization.response(to: outcome)
    store(Made(response: new))
    return serialization.isSerialized ? new.result.failure : nil
  }

  func replaceFailure(with error: AFError, parsed: AFError?) {
    let response = made.withLock { $0.response }
    store(Made(response: response?.failing(with: error), parsedFailure: parsed))
  }

  /// Stores the response. The former one is released outside the lock.
  private func store(_ new: Made) { _ = made.withLock { replace(&$0, with: new) } }

  func announce(to request: any RunOwner) {
    let made = made.withLock { $0 }
    guard let response = made.response else { return }
    Kind.announce(made.parsedFailure.map { response.failing(with: $0) } ?? response, to: request)
  }

  func deliver() { deliver {} }

  func deliver(then completion: @escaping @Sendable () -> Void) {
    guard let response = made.withLock({ $0.response }) else {
      preconditionFailure("a handler was served before its response was made")
    }
    let handler = handler
    Engine.call(on: queue) {
      handler(response)
      completion()
    }
  }
}

/// The type of response that a handler is called with, and the event of monitors for it.
protocol HandlerKind {
  associatedtype Value: Sendable
  associatedtype Response: SerializedResponse<Value> & Sendable

  /// Calls the monitors of `request` with the response.
  static func announce(_ response: Response, to request: any RunOwner)
}

enum DataHandler<Value: Sendable>: HandlerKind {
  static func announce(_ response: DataResponse<Value, AFError>, to request: any RunOwner) {
    request.parsed(response)
  }
}

enum DownloadHandler<Value: Sendable>: HandlerKind {
  static func announce(_ response: DownloadResponse<Value, AFError>, to request: any RunOwner) {
    request.parsed(response)
  }
}

/// The delivery of the events of one run to all of its readers, which a cancellation ends.
final class EventDelivery: Sendable {
  private let hasEnded = Atomic(false)

  /// Whether only the completion is delivered from now on.
  var isOver: Bool { hasEnded.load(ordering: .acquiring) }

  func end() { hasEnded.store(true, ordering: .releasing) }
}

/// The end of the run of a request, for one of the readers of its events. If the request is sent again, the reader
/// keeps the outcome of its own run, and cannot cancel the later one.
final class RunEnd: Sendable {
  private struct State {
    var outcome: RequestOutcome?
    var isReached = false
  }

  /// The delivery of the run.
  let delivery: EventDelivery
  /// The outcome of the run, for attempts and readers.
  private let state = Mutex(State())
  private let hasBeenMuted = Atomic(false)

  init(_ delivery: EventDelivery) { self.delivery = delivery }

  /// The outcome of the last attempt; `nil` while it is unknown.
  var outcome: RequestOutcome? { state.withLock { $0.outcome } }

  /// Whether the run has ended.
  var isReached: Bool { state.withLock { $0.isReached } }

  func keep(_ outcome: RequestOutcome) { _ = state.withLock { replace(&$0.outcome, with: outcome) } }

  func reach() { state.withLock { $0.isReached = true } }

  /// Whether the reader gets no more events, except for the completion.
  var isMuted: Bool { hasBeenMuted.load(ordering: .acquiring) || delivery.isOver }

  /// Stops the events of the reader, except for the completion.
  func mute() { hasBeenMuted.store(true, ordering: .releasing) }
}

/// A reader of the events of a request. It is one of the response handlers of the request as well, so that it receives
/// the outcome after the last event.
protocol EventSink: ResponseSink {
  var runEnd: RunEnd { get }
}

extension EventSink {
  var runsUserCode: Bool { false }

  var canPostpone: Bool { true }

  func postpone(_ outcome: consuming RequestOutcome) { runEnd.keep(outcome) }

  func serialize(_ outcome: RequestOutcome) -> AFError? {
    runEnd.keep(outcome)
    return nil
  }

  func replaceFailure(with error: AFError, parsed: AFError?) {}

  // The outcome is not a response. Monitors are notified of each value of a stream when it is delivered.
  func announce(to request: any RunOwner) {}
}
