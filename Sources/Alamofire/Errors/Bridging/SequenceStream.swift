import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

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
    let (task, waiter) = state.withLock { state in
      if state.status == .open {
        (state.status, state.error, state.element) = (status, error, Data())
      }
      defer { (state.task, state.waiter) = (nil, nil) }
      return (state.task, state.waiter)
    }
    // Not on this thread, which may be the engine's, because a cancellation runs the caller's handlers.
    if let task { DispatchQueue.global().async { task.cancel() } }
    waiter?.resume(returning: false)
    arrival.signal()
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
