public import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The body of a stream request, for blocking reads. Its state is guarded by a lock, because one thread may close the
/// stream while another one reads.
final class ResponseInputStream: BlockingInputStream {
  private struct Reading {
    var status = Stream.Status.notOpen
    var error: AFError?
    /// The bytes of the current chunk, which end after the last one.
    var bytes = ByteQueue()
    /// Whether bytes have been read.
    var hasGiven = false
    private var lastEventID = ""

    /// Adds server-sent events as they would be in a stream.
    mutating func put(_ events: [ServerSentEvent]) {
      var text = Data()
      for event in events {
        text += event.encoded(after: lastEventID)
        lastEventID = event.id
      }
      _ = bytes.write(text)
    }

    /// Copies as many bytes of the chunk as fit.
    mutating func read(into room: UnsafeMutableRawBufferPointer) -> BodyReading {
      let (reading, _) = bytes.read(into: room)
      if case .bytes = reading { hasGiven = true }
      return reading
    }
  }

  private let request: DataStreamRequest
  private let reader: BlockingReader
  /// The current chunk and the status, for readers and the closing thread. No lock is held while a reader waits.
  private let reading = Mutex(Reading())
  /// Serializes concurrent reads, so that each chunk reaches one of them.
  private let turn = DispatchSemaphore(value: 1)

  init(_ request: DataStreamRequest, bufferSize: Int) {
    self.request = request
    reader = BlockingReader(request.flow)
    super.init()
    request.flow.fanout.add(reader, for: reader.runEnd, .writer, highMark: bufferSize)
    request.core.add(reader, for: request)
  }

  deinit { end(.closed) }

  override func open() {
    reading.withLock { reading in
      if reading.status == .notOpen { reading.status = .open }
    }
  }

  override func close() { end(.closed) }

  override var streamStatus: Stream.Status { reading.withLock { $0.status } }

  override var streamError: (any Error)? { reading.withLock { $0.error } }

  /// Whether `read` can be called; it may block.
  override var hasBytesAvailable: Bool { streamStatus == .open }

  override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
    let room = UnsafeMutableRawBufferPointer(start: buffer, count: max(0, len))
    turn.wait()
    defer { turn.signal() }
    while true {
      let (reading, status) = reading.withLock { reading in
        (reading.status == .open ? reading.read(into: room) : .wait, reading.status)
      }
      guard status == .open else { return status == .atEnd ? 0 : -1 }
      switch reading {
      case .bytes(let count): return count
      case .wait where room.isEmpty: return 0
      case .wait: readMore()
      case .end, .failure: reachEnd()
      }
    }
  }

  private func readMore() {
    let (elements, isLast) = request.flow.fanout.take(reader, atMost: 1)
    guard let entry = elements.first?.entry ?? (isLast ? .end : nil) else { return reader.wait() }
    switch entry {
    // A cancelled event source gives no further events.
    case _ where reader.runEnd.isMuted: break
    case .begin where reading.withLock({ $0.hasGiven }):
      // The bytes of two responses must not be joined into a body that no server sent.
      end(.error, because: Self.sentAgain)
    case .events(let events): reading.withLock { $0.put(events) }
    case .chunk, .growing: put(entry.data ?? Data())
    case .begin, .end: break
    }
    guard isLast else { return }
    reading.withLock { _ = $0.bytes.finish() }
    request.flow.fanout.remove(reader)
  }

  private func put(_ data: Data) { reading.withLock { _ = $0.bytes.write(data) } }

  /// Sets the final status, after all bytes were read.
  private func reachEnd() {
    let error = reader.runEnd.outcome?.error
    reading.withLock { reading in
      guard reading.status == .open else { return }
      reading.error = error
      reading.status = error == nil ? .atEnd : .error
    }
  }

  /// Ends reading; before the end of the body, the request is cancelled.
  private func end(_ status: Stream.Status, because error: AFError? = nil) {
    let isEarly = reading.withLock { reading in
      let isEarly = reading.status == .notOpen || reading.status == .open
      if isEarly || status == .closed { reading.status = status }
      reading.error = reading.error ?? error
      reading.bytes = ByteQueue()
      return isEarly
    }
    guard isEarly else { return }
    if !reader.runEnd.isReached {
      request.core.cancel(request, because: error ?? .explicitlyCancelled)
    }
    request.flow.fanout.remove(reader)
    reader.wake(request.flow.fanout)
  }

  private static let sentAgain = AFError.sessionTaskFailed(
    error: URLError(
      .networkConnectionLost,
      "The request was sent again after a part of its body had been read from its InputStream; read it without retriers.",
      url: nil))
}

/// The reader of a stream request for an `InputStream`: it wakes the thread that waits in a read.
private final class BlockingReader: MailboxConsumer, EventSink {
  let runEnd: RunEnd
  private let fanout: Fanout<StreamElement>
  private let semaphore = DispatchSemaphore(value: 0)

  init(_ flow: StreamFlow) {
    runEnd = RunEnd(flow.delivery)
    fanout = flow.fanout
  }

  func wake(_ fanout: Fanout<StreamElement>) { semaphore.signal() }
  func wait() { semaphore.wait() }

  func deliver() {
    runEnd.reach()
    fanout.leave(runEnd)
  }
}

extension DataStreamRequest {
  /// Returns the body as an `InputStream`, and resumes the request.
  ///
  /// Open and read the stream on a thread that may block: `read` waits for bytes. It returns 0 at the end, and −1 if
  /// the request has failed, with the error in `streamError`. The server waits while the stream is not read. Closing
  /// or releasing the stream before its end cancels the request. A retry after bytes were read is an error, because
  /// the stream cannot discard them. Run loops and delegates are not supported.
  ///
  /// - Parameter bufferSize: The number of buffered bytes. The larger of it and the request's own limit, about a
  ///   mebibyte, is used. Default: 1024.
  /// - Returns: The stream, never `nil`; optional as in upstream's signature.
  public func asInputStream(bufferSize: Int = 1024) -> InputStream? {
    let stream = ResponseInputStream(self, bufferSize: bufferSize)
    resume()
    return stream
  }
}
