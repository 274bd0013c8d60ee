import Foundation
import HTTPWire
import Synchronization

/// The part of a session that its runs use: the services, the settings of runs and the registry.
final class RunSession: Sendable {
  let services: Services
  let registry = RunRegistry()
  /// The observers of all requests of the session.
  let observers: any RunObservers
  let startsRequestsImmediately: Bool
  /// Stored, because each request reads it.
  let makesRequestsAtOnce: Bool
  let rootQueue: DispatchQueue
  /// The caller's serialization queue; without one, serialization runs on the pool.
  let userSerializationQueue: DispatchQueue?

  init(
    _ services: Services, observers: any RunObservers, startsRequestsImmediately: Bool,
    makesRequestsAtOnce: Bool, rootQueue: DispatchQueue, userSerializationQueue: DispatchQueue?
  ) {
    self.services = services
    self.observers = observers
    self.startsRequestsImmediately = startsRequestsImmediately
    self.makesRequestsAtOnce = makesRequestsAtOnce
    self.rootQueue = rootQueue
    self.userSerializationQueue = userSerializationQueue
  }

  var settings: SessionSettings { services.settings }
  var cookies: SessionCookies? { services.cookies }
  var trust: TrustService? { services.trust }
  var authentication: AuthenticationService { services.authentication }
  var executor: (any TaskExecutor)? { services.executor }
  var enqueue: (@Sendable (any LoopWork) -> Void)? { services.enqueue }
  /// Whether the caller is on the loop's thread.
  var isOnLoop: Bool { services.engine.isCurrent }
  var hasOwnDelegate: Bool { observers.hasOwnDelegate }
  /// The error of a request that cannot be started.
  var reasonOfEnd: AFError { registry.reasonOfEnd ?? .sessionDeinitialized }
}

/// The observers of all requests of a session. A class, because every stage asks them, and reads of a value of unknown
/// size copy it.
protocol RunObservers: AnyObject, Sendable {
  /// Whether the delegate is the caller's, so that its methods have to be called.
  var hasOwnDelegate: Bool { get }
  /// Whether there are monitors to notify.
  var hasMonitors: Bool { get }
  /// The events that have observers at present.
  var observedEvents: RequestObservers { get }
}

/// The requests of a session that run or wait for their start, and the streams of bytes. The end of the session ends
/// them.
final class RunRegistry: Sendable {
  /// Guarded by the lock of this class.
  private struct State {
    /// Running requests. Each knows its index, so that no hashing is needed.
    var active: [(any RunOwner)?] = []
    var free: [Int] = []
    /// The number of requests that have left, and whose end has yet to be reported to observers.
    var unreported = 0
    /// Weak references to requests that wait for their start.
    var unstarted = UnstartedRequests()
    /// Streams of bytes, and downloads in segments, that have not ended.
    var streams: [ObjectIdentifier: StreamEntry] = [:]
    /// The error for new requests after the end of the session; `nil` before.
    var reasonOfEnd: AFError?

    /// Whether no request runs, and all ends of requests and streams have been reported.
    var isIdle: Bool { free.count == active.count && unreported == 0 && streams.isEmpty }
    /// Whether the session has ended, and so have its members.
    var isOver: Bool { reasonOfEnd != nil && isIdle }
  }

  private struct StreamEntry {
    /// Weak, so that a user can release a stream that was not started.
    weak var stream: (any RegisteredStream)?
    /// The stream itself, if it was to be retained until its end.
    var retained: (any RegisteredStream)?
  }

  /// The members of a session that has ended, for the caller to end them outside the lock.
  struct Members {
    let unstarted: [any RunOwner]
    let active: [any RunOwner]
    let streams: [any RegisteredStream]
  }

  /// The requests, and whether the session has ended, for its users and attempts.
  private let state = Mutex(State())

  /// Adds a request that begins to run. Returns its index, or `nil` if the session has ended.
  func register(_ request: any RunOwner) -> Int? {
    state.withLock { state in
      guard state.reasonOfEnd == nil else { return nil }
      if let index = state.free.popLast() {
        state.active[index] = request
        return index
      }
      state.active.append(request)
      return state.active.count - 1
    }
  }

  /// Removes the request at `index`, whose handlers have been served. Does nothing if there is none. Returns whether it
  /// was the last member of a session that has ended.
  ///
  /// - Parameters:
  ///   - index: The index of the request.
  ///   - isObserved: Whether the session does not end before ``reported()``, because observers will be notified of the
  ///     end of the request.
  func unregister(at index: Int, isObserved: Bool = false) -> Bool {
    let (last, isEnd) = state.withLock { state -> ((any RunOwner)?, Bool) in
      guard state.active.indices.contains(index), let request = state.active[index] else {
        return (nil, false)
      }
      state.active[index] = nil
      state.free.append(index)
      if isObserved { state.unreported += 1 }
      return (request, state.isOver)
    }
    // Released outside the lock: this may be the last reference.
    _ = last
    return isEnd
  }

  /// Notes that observers were notified of the end of a request that has left. Returns whether it was the last member
  /// of a session that has ended.
  func reported() -> Bool {
    state.withLock { state in
      state.unreported -= 1
      return state.isOver
    }
  }

  /// Adds a request that has handlers or was suspended, and was not started: the end of the session ends it. Returns
  /// the reason if the session has ended.
  func registerUnstarted(_ request: any RunOwner) -> AFError? {
    let (reason, seen) = state.withLock { state in
      (state.reasonOfEnd, state.reasonOfEnd == nil ? state.unstarted.add(request) : [])
    }
    _ = seen
    return reason
  }

  /// Adds a stream of bytes or a download in segments. Returns the error if the session has ended.
  func register(_ stream: any RegisteredStream) -> AFError? {
    state.withLock { state in
      guard state.reasonOfEnd == nil else { return state.reasonOfEnd }
      state.streams[ObjectIdentifier(stream)] = StreamEntry(stream: stream)
      return nil
    }
  }

  /// Retains a stream that was added, until it is removed.
  func retain(_ stream: any RegisteredStream) {
    state.withLock { $0.streams[ObjectIdentifier(stream)]?.retained = stream }
  }

  /// Removes a stream of bytes or a download in segments. Does nothing if it is no member. Returns whether it was the
  /// last member of a session that has ended.
  func unregister(_ stream: any RegisteredStream) -> Bool {
    let (retained, isEnd) = state.withLock { state -> ((any RegisteredStream)?, Bool) in
      guard let entry = state.streams.removeValue(forKey: ObjectIdentifier(stream)) else {
        return (nil, false)
      }
      return (entry.retained, state.isOver)
    }
    // Released outside the lock: this may be the last reference.
    _ = retained
    return isEnd
  }

  /// The streams of bytes, and the downloads in segments, that have not ended.
  var streams: [any RegisteredStream] { state.withLock { $0.streams.values.compactMap(\.stream) } }

  /// The requests that run.
  var active: [any RunOwner] { state.withLock { $0.active.compactMap { $0 } } }

  /// The number of running requests.
  var activeCount: Int { state.withLock { $0.active.count - $0.free.count } }

  /// The number of requests that wait for their start.
  var unstartedCount: Int { state.withLock { $0.unstarted.count } }

  /// The error for new requests after the end of the session; `nil` before.
  var reasonOfEnd: AFError? { state.withLock { $0.reasonOfEnd } }

  /// Refuses further requests because of `error`. Returns all members. The error of an earlier end stays.
  func end(_ error: AFError) -> Members {
    state.withLock { state in
      state.reasonOfEnd = state.reasonOfEnd ?? error
      return Members(
        unstarted: state.unstarted.removeAll(), active: state.active.compactMap { $0 },
        streams: state.streams.values.compactMap(\.stream))
    }
  }

  /// The members of a session that accepts no more requests, for the caller to end them outside the lock.
  struct Refused {
    let unstarted: [any RunOwner]
    /// All streams, of which some may run.
    let streams: [any RegisteredStream]
    /// The error of the members that have not been started.
    let reason: AFError
    /// Whether no request runs, and there are no streams.
    let isIdle: Bool
  }

  /// Refuses further requests, and lets the running ones end. Returns those that wait for their start, and all streams.
  func refuseMore() -> Refused {
    state.withLock { state in
      let reason = state.reasonOfEnd ?? .sessionInvalidated(error: nil)
      state.reasonOfEnd = reason
      return Refused(
        unstarted: state.unstarted.removeAll(), streams: state.streams.values.compactMap(\.stream),
        reason: reason, isIdle: state.isIdle)
    }
  }
}

/// A stream of bytes, or a download in segments, of a session.
protocol RegisteredStream: AnyObject, Sendable {
  func cancel()
  /// Ends the stream because its session has ended.
  func abandon(_ error: AFError)
  /// Ends the stream if it has not been started, because its session accepts no more requests.
  func refuse(_ error: AFError)
}

/// The requests of a session that wait for their start. The references are weak, so that a user can release a request.
struct UnstartedRequests {
  private struct Entry {
    weak var request: (any RunOwner)?
  }

  private var entries: [ObjectIdentifier: Entry] = [:]
  /// Entries of released requests are removed when there are more entries than this.
  private var bound = 64

  /// The number of entries, including the entries of released requests.
  var count: Int { entries.count }

  /// Adds a request; a second call has no effect.
  ///
  /// - Returns: Requests that this call has retained. The caller releases them outside of its lock, because a
  ///   reference can be the last one.
  mutating func add(_ request: any RunOwner) -> [any RunOwner] {
    entries[ObjectIdentifier(request)] = Entry(request: request)
    guard entries.count > bound else { return [] }
    let present = entries.values.compactMap(\.request)
    entries = Dictionary(
      present.map { (ObjectIdentifier($0), Entry(request: $0)) }, uniquingKeysWith: { first, _ in first })
    bound = max(64, entries.count * 2)
    return present
  }

  /// Removes and returns the requests that still exist. Some of them may have been started.
  mutating func removeAll() -> [any RunOwner] {
    defer { entries = [:] }
    return entries.values.compactMap(\.request)
  }
}
