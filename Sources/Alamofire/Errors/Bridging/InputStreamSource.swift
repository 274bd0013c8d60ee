import Foundation
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
    /// The number of bytes that were read.
    var total: Int64 = 0
    var wake: (@Sendable () -> Void)?
  }

  private static let chunk = 65_536

  let length: Int64
  // Its bytes are read only by the thread of the source, and there is one such thread at a time. Its status and its end
  // are asked for and set by other threads only if it is a `SequenceStream`, which is safe.
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

  /// True until the transport consumes bytes, because bytes that were read ahead are retained.
  var isRepeatable: Bool { state.withLock { !$0.hasGiven } }

  func start(wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    // The rest of an iteration that was ended must not be sent, nor the elements before it.
    let isEnded = (stream as? SequenceStream)?.streamStatus == .closed
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
    let (mustSignal, hasGiven) = state.withLock { state in
      defer { state.isStopped = true }
      state.wake = nil
      return (state.isRead && !state.isStopped, state.hasGiven)
    }
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
    case .notOpen: stream.open()
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
    let wake = state.withLock { state in state.bytes.finish(failure) ? state.wake : nil }
    wake?()
  }

  private var unreadable: TransportFailure {
    let error = (stream as? SequenceStream)?.streamError
    return TransportFailure(
      .cannotReadBody, "The stream with the body of the request could not be read.",
      cause: error.map { $0.asAFError(or: .sessionTaskFailed(error: $0)) })
  }

  private static func failure(_ what: String, _ length: Int64) -> TransportFailure {
    TransportFailure(
      .cannotReadBody, "The stream with the body of the request \(what) than the \(length) bytes announced.")
  }
}
