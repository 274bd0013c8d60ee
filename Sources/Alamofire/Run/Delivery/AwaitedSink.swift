import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The response of a ``DataTask``, which any number of tasks can await any number of times. If no retrier needs to know
/// of a failure, the serialization happens where the response is awaited.
///
/// The attempt writes its properties before the latch opens, or the task that claims the response does. All tasks
/// read them after the latch is open.
// Unchecked: written before the latch opens.
final class AwaitedSink<Value: Sendable>: DeliveryLatch, ResponseSink, @unchecked Sendable {
  private let serialization: Serialization<Value>
  /// In separate memory, because each access to a stored optional would look its type up at run time.
  @exclusivity(unchecked) private var made: UnsafeMutablePointer<Value>?

  init(serialization: Serialization<Value>) {
    self.serialization = serialization
  }

  deinit { forget() }

  var runsUserCode: Bool { serialization.runsUserCode }

  var canPostpone: Bool { true }

  func postpone(_ outcome: consuming RequestOutcome) {
    self.outcome = outcome
    postponed()
  }

  func serialize(_ outcome: RequestOutcome) -> AFError? {
    self.outcome = outcome
    make()
    // Read before ``prepared()``, whose lock makes the order with a replacement visible to ThreadSanitizer.
    let failure = serialization.isSerialized ? failure : nil
    prepared()
    return failure
  }

  func replaceFailure(with error: AFError, parsed: AFError?) {
    guard isPrepared else { return }
    failure = error
    parsedFailure = parsed
  }

  /// Waits for the response. If the surrounding task is cancelled, `request` is cancelled.
  @inline(__always)
  nonisolated(nonsending) func arrive(cancelling request: (any RunOwner)?) async {
    if await enter(cancelling: request) == .makeIt {
      make()
      open()
    }
  }

  /// Returns the value. May be called only after ``arrive(cancelling:)``, as ``result`` and `response()`.
  func value() throws(AFError) -> Value {
    if let failure { throw failure }
    guard let made else { preconditionFailure("a latch opened before its response was made") }
    return made.pointee
  }

  var result: Result<Value, AFError> {
    do { return .success(try value()) } catch { return .failure(error) }
  }

  func response<Response: SerializedResponse<Value>>() -> Response {
    Response(outcome, serializationDuration: duration, result: result)
  }

  func announce(to request: any RunOwner) {
    if isPrepared { request.parsed(outcome, duration, parsedFailure.map { .failure($0) } ?? result) }
  }

  private func make() {
    forget()
    parsedFailure = nil
    let memory = UnsafeMutablePointer<Value>.allocate(capacity: 1)
    do throws(AFError) {
      try serialization.serialize(outcome, into: memory, duration: &duration)
      failure = nil
      made = memory
    } catch {
      memory.deallocate()
      failure = error
    }
  }

  private func forget() {
    made?.deinitialize(count: 1)
    made?.deallocate()
    made = nil
  }
}

/// A latch at which tasks wait for a response that is created elsewhere, or by the first of them. It is not generic,
/// because code that is generic over the value would look types up at run time for every step.
///
/// A base class, which saves an object. Unchecked, because the compiler does not see which thread accesses the
/// variables: see ``AwaitedSink``.
class DeliveryLatch: @unchecked Sendable {
  typealias Waiter = UnsafeContinuation<Void, Never>

  private enum Phase {
    /// The request is running.
    case pending
    /// The request has ended; the response is not delivered yet, and the first waiting task will make it.
    case postponed
    /// The response has been created, but not delivered yet.
    case prepared
    /// The first task that asks makes the response.
    case claimable
    /// A task makes the response.
    case claimed
    case open
  }

  /// Guarded by the lock of this class.
  private struct State {
    var phase = Phase.pending
    /// The usual single waiter, stored separately to save an array.
    var waiter: Waiter?
    var moreWaiters: [Waiter] = []

    mutating func takeWaiters() -> (Waiter?, [Waiter]) {
      defer {
        waiter = nil
        moreWaiters = []
      }
      return (waiter, moreWaiters)
    }

    mutating func add(_ new: Waiter) {
      if waiter == nil { waiter = new } else { moreWaiters.append(new) }
    }
  }

  enum Entrance { case makeIt, isMade }

  // The properties of the value's response, here because this class is not generic.
  @exclusivity(unchecked) final var outcome = RequestOutcome()
  @exclusivity(unchecked) final var failure: AFError?
  /// The failure of the serializer, if a retrier's error has replaced it.
  @exclusivity(unchecked) final var parsedFailure: AFError?
  @exclusivity(unchecked) final var duration: TimeInterval = 0

  /// The response, and the tasks that await it.
  private let state = Mutex(State())

  /// Marks the response as one that the first waiting task will make.
  final func postponed() { state.withLock { $0.phase = .postponed } }

  /// Marks the response as created.
  final func prepared() { state.withLock { $0.phase = .prepared } }

  /// Whether the response has been created, but not delivered. The attempt calls it before it reads values of another
  /// queue. The lock makes that order visible to ThreadSanitizer, which misses it for a continuation that is resumed
  /// early.
  final var isPrepared: Bool {
    state.withLock { state in
      if case .prepared = state.phase { return true }
      return false
    }
  }

  /// Delivers the response, once.
  final func deliver() {
    wake(
      state.withLock { state in
        switch state.phase {
        case .postponed: state.phase = .claimable
        case .prepared: state.phase = .open
        case .pending, .claimable, .claimed, .open:
          preconditionFailure("a handler was served before its response was made, or twice")
        }
        return state.takeWaiters()
      })
  }

  /// Opens the latch after the claiming task has created the response.
  final func open() {
    wake(
      state.withLock { state in
        state.phase = .open
        return state.takeWaiters()
      })
  }

  /// Waits for the response; if the surrounding task is cancelled, so is the request.
  @inline(__always)
  nonisolated(nonsending) final func enter(cancelling request: (any RunOwner)?) async -> Entrance {
    if let entrance = tryToEnter() { return entrance }
    guard let request else { return await enter() }
    return await withTaskCancellationHandler {
      await enter()
    } onCancel: {
      request.cancel()
    }
  }

  /// Waits for the response. After ``Entrance/makeIt`` the caller makes it and calls ``open()``.
  @inline(__always)
  nonisolated(nonsending) final func enter() async -> Entrance {
    while true {
      if let entrance = tryToEnter() { return entrance }
      // Unchecked: every waiter is removed once, under the lock, and then resumed.
      await withUnsafeContinuation { waiter in
        let waits = state.withLock { state in
          switch state.phase {
          case .pending, .postponed, .prepared, .claimed:
            state.add(waiter)
            return true
          case .claimable, .open: return false
          }
        }
        if !waits { waiter.resume() }
      }
    }
  }

  private func tryToEnter() -> Entrance? {
    state.withLock { state in
      switch state.phase {
      case .open: return .isMade
      case .claimable:
        state.phase = .claimed
        return .makeIt
      case .pending, .postponed, .prepared, .claimed: return nil
      }
    }
  }

  private func wake(_ waiters: (Waiter?, [Waiter])) {
    if let waiter = waiters.0 { Engine.resume(waiter) }
    for waiter in waiters.1 { Engine.resume(waiter) }
  }
}

/// The serialization of an outcome into the value of one handler.
struct Serialization<Value: Sendable>: Sendable {
  /// Whether it runs user code or may block: decoding, custom serializers, preprocessors.
  let runsUserCode: Bool
  /// A closure that creates the value. Throws the error of the outcome, or of a serializer.
  private let makeValue: @Sendable (RequestOutcome) throws -> Value
  /// Whether a serializer makes the value; otherwise it is the data or the file itself.
  let isSerialized: Bool

  /// Returns the data as the value, without a serializer.
  init(mirroring mirror: @escaping @Sendable (Data?) -> Value) {
    runsUserCode = false
    isSerialized = false
    makeValue = { outcome in
      if let error = outcome.error { throw error }
      return mirror(outcome.data)
    }
  }

  /// Makes the value with a serializer from the library or from the caller.
  init<Serializer: DataResponseSerializerProtocol>(_ serializer: Serializer)
  where Serializer.SerializedObject == Value {
    runsUserCode = true
    isSerialized = true
    makeValue = { outcome in
      try serializer.serialize(
        request: outcome.request, response: outcome.exchange?.httpResponse, data: outcome.data,
        error: outcome.error)
    }
  }

  /// Takes the value from the outcome; `pick` must not block.
  init(picking pick: @escaping @Sendable (RequestOutcome) throws -> Value) {
    runsUserCode = false
    isSerialized = false
    makeValue = { outcome in
      if let error = outcome.error { throw error }
      return try pick(outcome)
    }
  }

  /// Makes the value of a file with a serializer from the library or from the caller, which may block.
  init<Serializer: DownloadResponseSerializerProtocol>(download serializer: Serializer)
  where Serializer.SerializedObject == Value {
    runsUserCode = true
    isSerialized = true
    makeValue = { outcome in
      try serializer.serializeDownload(
        request: outcome.request, response: outcome.exchange?.httpResponse, fileURL: outcome.fileURL,
        error: outcome.error)
    }
  }

  /// Makes the value by a built-in serializer, which needs no `HTTPURLResponse`.
  ///
  /// - Parameter runsUserCode: False if the serializer neither blocks nor calls user code.
  init<Serializer: WireSerializer>(wire serializer: Serializer, runsUserCode: Bool)
  where Serializer.SerializedObject == Value {
    self.runsUserCode = runsUserCode
    isSerialized = true
    makeValue = { outcome in
      if let error = outcome.error { throw error }
      return try serializer.serialize(
        method: outcome.request?.httpMethod, status: outcome.exchange?.head?.status,
        textEncodingName: { outcome.exchange?.textEncodingName }, data: outcome.data)
    }
  }

  /// Makes the value in `place`, and measures the time.
  func serialize(
    _ outcome: RequestOutcome, into memory: UnsafeMutablePointer<Value>, duration: inout TimeInterval
  ) throws(AFError) {
    // Built-in serialization is too short to measure; reading the clock would cost more.
    let start = runsUserCode ? DispatchTime.now().uptimeNanoseconds : nil
    defer { duration = start.map { Double(DispatchTime.now().uptimeNanoseconds - $0) / 1e9 } ?? 0 }
    do {
      memory.initialize(to: try makeValue(outcome))
    } catch {
      throw error as? AFError
        ?? .responseSerializationFailed(reason: .customSerializationFailed(error: error))
    }
  }

  /// Makes the whole response.
  func response<Response: SerializedResponse<Value>>(to outcome: RequestOutcome) -> Response {
    var duration: TimeInterval = 0
    let result = withUnsafeTemporaryAllocation(of: Value.self, capacity: 1) {
      memory -> Result<Value, AFError> in
      guard let base = memory.baseAddress else { preconditionFailure("room for one value has an address") }
      do throws(AFError) {
        try serialize(outcome, into: base, duration: &duration)
        return .success(base.move())
      } catch {
        return .failure(error)
      }
    }
    return Response(outcome, serializationDuration: duration, result: result)
  }
}

extension Serialization where Value == Data {
  /// Returns the serialization of the body as data. The one with the default arguments, which nearly every request
  /// uses, is created once.
  static func data(_ preprocessor: any DataPreprocessor, _ codes: Set<Int>, _ methods: Set<HTTPMethod>)
    -> Self
  {
    if preprocessor.isPassthrough, codes == DataResponseSerializer.defaultEmptyResponseCodes,
      methods == DataResponseSerializer.defaultEmptyRequestMethods
    {
      return plainData
    }
    let serializer = DataResponseSerializer(
      dataPreprocessor: preprocessor, emptyResponseCodes: codes, emptyRequestMethods: methods)
    return Serialization(wire: serializer, runsUserCode: !preprocessor.isPassthrough)
  }

  private static let plainData = Serialization(wire: DataResponseSerializer(), runsUserCode: false)
}

extension ResponseHead {
  /// The `charset` of the content type.
  var charset: String? {
    block.value(of: "Content-Type").flatMap { MediaType.charset(ofContentType: $0) }
  }

  /// Whether the content type is JSON.
  var isJSON: Bool { block.value(of: "Content-Type").map { MediaType.isJSON(contentType: $0) } ?? false }
}

/// The response of a data request or of a download, for handlers and awaiting tasks.
protocol SerializedResponse<Success> {
  associatedtype Success: Sendable

  init(_ outcome: RequestOutcome, serializationDuration: TimeInterval, result: Result<Success, AFError>)

  var result: Result<Success, AFError> { get }
  /// Returns a copy with another error.
  func failing(with error: AFError) -> Self
}

extension DataResponse: SerializedResponse where Failure == AFError {
  init(_ outcome: RequestOutcome, serializationDuration: TimeInterval, result: Result<Success, AFError>) {
    self.init(
      request: outcome.request, origin: .exchange(outcome.exchange), data: outcome.data,
      serializationDuration: serializationDuration, result: result)
  }
}

extension DownloadResponse: SerializedResponse where Failure == AFError {
  init(_ outcome: RequestOutcome, serializationDuration: TimeInterval, result: Result<Success, AFError>) {
    self.init(
      request: outcome.request, origin: .exchange(outcome.exchange), fileURL: outcome.fileURL,
      resumeData: outcome.resumeData, serializationDuration: serializationDuration, result: result)
  }
}
