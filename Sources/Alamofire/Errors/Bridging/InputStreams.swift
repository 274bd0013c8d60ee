import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The source of a body that is the caller's `InputStream`. A separate thread reads the stream, which may block, at
/// most ``ByteQueue/highMark`` bytes ahead of the network. The stream can be read once.
final class InputStreamSource: BodySource {
  private struct State {
    var bytes = ByteQueue()
    /// The number of bytes that the transport has consumed, which the stream cannot supply again.
    var given: Int64 = 0
    var hasGiven: Bool { given > 0 }
    var isStopped = false
    /// Whether the run of the request has ended. The thread closes a stream that it opens afterwards.
    var isOver = false
    /// Whether a thread reads the stream, or has read all of it.
    var isRead = false
    /// Whether the source has opened the stream.
    var hasOpened = false
    /// Whether a `URLProtocol` class was given the stream.
    var isGivenToClass = false
    /// The number of bytes that were read.
    var total: Int64 = 0
    /// Whether the stream has ended after as many bytes as were announced.
    var isComplete = false
    var wake: (@Sendable () -> Void)?
  }

  private static let chunk = 65_536

  let length: Int64
  // Its bytes are read only by the thread of the source, and there is one such thread at a time. Its status and its end
  // are asked for and set by other threads only if it is a `SequenceStream`, which is safe, or if a `URLProtocol` class
  // had it before, and no thread reads it.
  nonisolated(unsafe) let stream: InputStream
  /// The bytes to send, and whether the stream has stopped, for the thread of the source and the loop.
  private let state = Mutex(State())
  /// The thread waits here while there is enough to send.
  private let room = DispatchSemaphore(value: 0)

  /// Makes a source that reads a stream.
  ///
  /// - Parameter length: The length of the stream; −1 if it is unknown. A stream of another length is an error. So the
  ///   last byte is handed out only when the stream has ended after it.
  init(_ stream: InputStream, length: Int64 = -1) {
    self.stream = stream
    self.length = length
  }

  /// True until the transport consumes bytes, because bytes that were read ahead are retained. False if a `URLProtocol`
  /// class has opened the stream.
  var isRepeatable: Bool { state.withLock { !$0.hasGiven } && !isOpenedByClass }

  /// Notes that a `URLProtocol` class was given the stream, which is not open.
  func givenToClass() { state.withLock { $0.isGivenToClass = true } }

  /// Whether a `URLProtocol` class has opened the stream. It may have read any part of it.
  private var isOpenedByClass: Bool {
    let mayBe = state.withLock { $0.isGivenToClass && !$0.isRead && !$0.hasOpened }
    return mayBe && stream.streamStatus != .notOpen
  }

  func start(wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    // The rest of an iteration that was ended must not be sent, nor the elements before it.
    let isEnded = isOpenedByClass || (stream as? SequenceStream)?.streamStatus == .closed
    let (isFirst, isWhole) = state.withLock { state in
      guard !state.hasGiven, !isEnded else { return (false, false) }
      state.wake = wake
      // Another transfer may follow a transfer that took nothing.
      state.isStopped = false
      state.isOver = false
      defer { state.isRead = true }
      return (!state.isRead, true)
    }
    guard isWhole else {
      return TransportFailure(
        .cannotReadBody,
        "The body of the request is a stream, which can be read once, but it has to be sent again; use Data or a file."
      )
    }
    guard isFirst else { return nil }
    guard stream.isUsable else { return unreadable }
    Thread { [self] in pump() }.start()
    return nil
  }

  func read(into room: UnsafeMutableRawBufferPointer) -> BodyReading {
    let (reading, wakesWriter) = state.withLock { state in
      let limit = length < 0 ? Int.max : Int(clamping: max(0, length - 1 - state.given))
      let answer = state.bytes.read(into: room, atMost: limit)
      if case .bytes(let count) = answer.0 { state.given += Int64(count) }
      return answer
    }
    if wakesWriter { self.room.signal() }
    return reading
  }

  func stop() {
    let (mustSignal, hasGiven, wake) = state.withLock { state in
      defer { state.isStopped = true }
      return (state.isRead && !state.isStopped, state.hasGiven, state.wake.take())
    }
    // Released outside the lock.
    _ = wake
    if mustSignal { room.signal() }
    if hasGiven { endSequence() }
  }

  /// Ends the iteration of a body that is an asynchronous sequence, because no more of it is sent. The sequence can be
  /// sent later if its iteration has not begun, or all its elements were read ahead.
  func endSequence() {
    guard let sequence = stream as? SequenceStream else { return }
    state.withLock { $0.isOver = true }
    sequence.close()
  }

  private func pump() {
    guard stream.isUsable else { return end(unreadable) }
    switch stream.streamStatus {
    case .notOpen:
      state.withLock { $0.hasOpened = true }
      stream.open()
    // The caller has read or closed the stream. An empty body would not be the caller's.
    case .closed: return end(unreadable)
    default: break
    }
    var buffer = [UInt8](repeating: 0, count: Self.chunk)
    while goesOn() {
      let count = stream.read(&buffer, maxLength: buffer.count)
      let total = state.withLock { state in
        state.total += Int64(max(0, min(count, Self.chunk)))
        return state.total
      }
      guard count > 0 else { return finish(count, total) }
      // The stream may be a subclass of the caller's, which can return any number.
      guard count <= buffer.count else { return end(unreadable) }
      guard length < 0 || total <= length else { return end(Self.failure("is longer", length)) }
      let written = put(Data(buffer[..<count]))
      if !written.mayGoOn { room.wait() }
    }
  }

  /// Whether this thread continues to read. If not, another thread may continue, as long as no bytes have been
  /// consumed.
  private func goesOn() -> Bool {
    let (isStopped, isSpent) = state.withLock { state in
      if state.isStopped, !state.hasGiven { state.isRead = false }
      return (state.isStopped, state.hasGiven || state.isOver)
    }
    if isStopped, isSpent { stream.close() }
    return !isStopped
  }

  private func put(_ data: Data) -> ByteQueue.Written {
    let (written, wake) = state.withLock { state in
      let written = state.bytes.write(data)
      return (written, written.wakesReader ? state.wake : nil)
    }
    wake?()
    return written
  }

  /// Decides by the status, because Foundation traps if it is asked for an error that is not there.
  private func finish(_ count: Int, _ total: Int64) {
    if count < 0 || stream.streamStatus == .error {
      end(unreadable)
    } else if length >= 0, total < length {
      end(Self.failure("is shorter (\(total) bytes)", length))
    } else {
      end(nil)
    }
  }

  private func end(_ failure: TransportFailure?) {
    if stream.isUsable { stream.close() }
    let wake = state.withLock { state in
      if failure == nil { state.isComplete = true }
      return state.bytes.finish(failure) ? state.wake : nil
    }
    wake?()
  }

  private var unreadable: TransportFailure {
    let error = (stream as? SequenceStream)?.streamError
    let reason = (stream.isUsable ? stream.foundationError : nil).map { error in
      (error as NSError).localizedFailureReason ?? error.localizedDescription
    }
    return TransportFailure(
      .cannotReadBody,
      "The stream with the body of the request could not be read\(reason.map { ": \($0)" } ?? "").",
      cause: error.map { $0.asAFError(or: .sessionTaskFailed(error: $0)) })
  }

  private static func failure(_ what: String, _ length: Int64) -> TransportFailure {
    TransportFailure(
      .cannotReadBody, "The stream with the body of the request \(what) than the \(length) bytes announced.")
  }
}

// A stream that is announced as empty. Of any other one, the last byte is withheld until it has ended.
extension InputStreamSource {
  /// Whether the stream has yet to end before the head is sent, which says already that the body is complete.
  var mustEndFirst: Bool { length == 0 && state.withLock { !$0.isComplete } }

  /// Waits for the end of the stream. Returns the failure of a stream that has bytes or cannot be read; `nil` if the
  /// task was cancelled, or the deadline has come.
  func end(before deadline: MonotonicTime?) async -> Result<Void, TransportFailure>? {
    let ending = await SingleCompletion<Result<Void, TransportFailure>?>.answer(
      whenForgotten: nil, whenCancelled: nil, deadline: deadline
    ) { completion in
      if let failure = start(wake: { [self] in readEnd(completion) }) {
        return completion(.failure(failure))
      }
      readEnd(completion)
    }
    stop()
    return ending
  }

  private func readEnd(_ completion: SingleCompletion<Result<Void, TransportFailure>?>) {
    let reading = withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { room in read(into: room) }
    switch reading {
    case .end: completion(.success(()))
    case .failure(let failure): completion(.failure(failure))
    // Bytes that were not announced are a failure.
    case .bytes, .wait: break
    }
  }
}

/// A body that is the caller's `AsyncSequence`, for the blocking reads of ``InputStreamSource``.
final class SequenceStream: BlockingInputStream {
  private let feed: SequenceElements

  init<Body: AsyncSequence & Sendable>(_ body: Body) where Body.Element == Data {
    feed = SequenceElements(body)
    super.init()
  }

  override func open() { feed.open() }

  /// Ends the iteration. A thread that waits in a read returns. A stream that was not opened stays usable.
  override func close() { feed.end(.closed) }

  override var streamStatus: Stream.Status { feed.status.status }

  /// The error that the sequence has thrown.
  override var streamError: (any Error)? { feed.status.error }

  /// Whether `read` can be called; it may block.
  override var hasBytesAvailable: Bool { streamStatus == .open }

  override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
    feed.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: max(0, len)))
  }
}

/// A stream that is read by a thread which waits: it has neither a buffer nor properties nor run loops.
class BlockingInputStream: InputStream {
  init() { super.init(data: Data()) }

  override func getBuffer(
    _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>
  ) -> Bool { false }

  override func property(forKey key: Stream.PropertyKey) -> AnyObject? { nil }
  override func setProperty(_ property: AnyObject?, forKey key: Stream.PropertyKey) -> Bool { false }
  override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {}
  override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {}
}

/// The iteration of a sequence by a task, for a thread that reads. A read asks for the next element when all bytes of
/// the one before are read, so that one element at most is held.
private final class SequenceElements: Sendable {
  private struct State {
    var status = Stream.Status.notOpen
    var error: (any Error)?
    /// The current element.
    var element = Data()
    var task: Task<Void, Never>?
    /// Whether a read waits for an element that the task has not asked for.
    var isRequested = false
    /// The task that waits for a read; its value is whether the iteration continues.
    var waiter: CheckedContinuation<Bool, Never>?

    /// Removes as many bytes of the element as fit.
    mutating func take(into room: UnsafeMutableRawBufferPointer) -> Int {
      let part = element.prefix(room.count)
      part.copyBytes(to: room)
      element = element.dropFirst(part.count)
      return part.count
    }
  }

  private let iterate: @Sendable (SequenceElements) async throws -> Void
  /// The current element and the task of the sequence, for that task, the thread of the source and the loop.
  private let state = Mutex(State())
  /// The thread of a read waits here for an element or the end.
  private let arrival = DispatchSemaphore(value: 0)

  init<Body: AsyncSequence & Sendable>(_ body: Body) where Body.Element == Data {
    iterate = { feed in
      var iterator = body.makeAsyncIterator()
      while await feed.isNextRequested(), let element = try await iterator.next() { feed.put(element) }
    }
  }

  var status: (status: Stream.Status, error: (any Error)?) { state.withLock { ($0.status, $0.error) } }

  // MARK: The reading thread

  func open() {
    state.withLock { state in
      if state.status == .notOpen { state.status = .open }
    }
  }

  func read(into room: UnsafeMutableRawBufferPointer) -> Int {
    while true {
      let (count, status) = state.withLock { state in
        (state.status == .open ? state.take(into: room) : 0, state.status)
      }
      guard status == .open else { return status == .atEnd ? 0 : -1 }
      if count > 0 || room.isEmpty { return count }
      askForElement()
      arrival.wait()
    }
  }

  private func askForElement() {
    let waiter = state.withLock { state -> CheckedContinuation<Bool, Never>? in
      if state.task == nil, state.status == .open { state.task = Task { await self.run() } }
      defer { state.waiter = nil }
      state.isRequested = state.waiter == nil
      return state.waiter
    }
    waiter?.resume(returning: true)
  }

  // MARK: The task

  private func run() async {
    do {
      try await iterate(self)
      end(.atEnd)
    } catch {
      end(.error, because: error)
    }
  }

  /// Waits until a read needs the next element. Returns false if the stream is closed.
  private func isNextRequested() async -> Bool {
    await withCheckedContinuation { continuation in
      let answer = state.withLock { state -> Bool? in
        defer { state.isRequested = false }
        guard state.status == .open else { return false }
        guard !state.isRequested else { return true }
        state.waiter = continuation
        return nil
      }
      if let answer { continuation.resume(returning: answer) }
    }
  }

  private func put(_ element: Data) {
    state.withLock { $0.element = element }
    arrival.signal()
  }

  /// Ends an iteration that was begun. The first end counts.
  func end(_ status: Stream.Status, because error: (any Error)? = nil) {
    let (task, waiter, wasOpen) = state.withLock { state in
      let wasOpen = state.status == .open
      if wasOpen { (state.status, state.error, state.element) = (status, error, Data()) }
      defer { (state.task, state.waiter) = (nil, nil) }
      return (state.task, state.waiter, wasOpen)
    }
    // Not on this thread, which may be the engine's, because a cancellation runs the caller's handlers.
    if let task { DispatchQueue.global().async { task.cancel() } }
    waiter?.resume(returning: false)
    // Nothing waits for a stream that is not open, and a later read would take the signal for an element.
    if wasOpen { arrival.signal() }
  }
}

/// A request with the length of its body.
struct SequenceRequest: URLRequestConvertible {
  let base: any URLRequestConvertible
  let length: Int64?

  func asURLRequest() throws -> URLRequest {
    var request = try base.asURLRequest()
    guard let length, request.isChangeable else { return request }
    guard length >= 0 else {
      let failure = TransportFailure(.cannotReadBody, "The length of the body, \(length), is negative.")
      throw AFError(failure, url: request.url?.absoluteString ?? "")
    }
    request.headers.update(name: "Content-Length", value: String(length))
    return request
  }
}
