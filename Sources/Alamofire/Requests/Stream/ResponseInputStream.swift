public import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The body of a stream request, read by calls that block. What changes is under a lock: one thread may close the stream
/// while another reads it.
final class ResponseInputStream: InputStream {
  private struct Reading {
    var status = Stream.Status.notOpen
    var error: AFError?
    /// The piece that is read, and how far.
    var chunk = Data()
    var offset = 0
    /// Whether bytes have been read.
    var hasGiven = false
    /// Whether nothing comes after the piece.
    var isOver = false

    /// Copies as much of the piece as there is room for.
    mutating func copy(into room: UnsafeMutableRawBufferPointer) -> Int {
      let count = min(room.count, chunk.count - offset)
      guard count > 0 else { return 0 }
      chunk.withUnsafeBytes { bytes in
        room.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count]))
      }
      offset += count
      hasGiven = true
      if offset == chunk.count {
        chunk = Data()
        offset = 0
      }
      return count
    }
  }

  private let request: DataStreamRequest
  private let reader: BlockingReader
  private let reading = Mutex(Reading())
  /// Threads that read at the same time get their pieces one after the other, so that each piece reaches one of them.
  private let turn = DispatchSemaphore(value: 1)

  init(_ request: DataStreamRequest, bufferSize: Int) {
    self.request = request
    reader = request.flow.add(.pulling, holdsBack: true, highMark: bufferSize) {
      BlockingReader(request.flow, id: $0)
    }
    super.init(data: Data())
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

  /// Whether a call of `read` makes sense; it may still have to wait.
  override var hasBytesAvailable: Bool { streamStatus == .open }

  override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
    let room = UnsafeMutableRawBufferPointer(start: buffer, count: max(0, len))
    turn.wait()
    defer { turn.signal() }
    while true {
      let (count, status, isOver) = reading.withLock { reading in
        (reading.status == .open ? reading.copy(into: room) : 0, reading.status, reading.isOver)
      }
      guard status == .open else { return status == .atEnd ? 0 : -1 }
      if count > 0 || room.isEmpty { return count }
      if isOver { reachEnd() } else { readMore() }
    }
  }

  private func readMore() {
    let (entries, isLast, _) = request.flow.read(reader.id, atMost: 1)
    switch entries.first {
    case .chunk(let data): reading.withLock { $0.chunk = data }
    case .begin where reading.withLock({ $0.hasGiven }):
      // The rest of one response behind the beginning of another would be a body that nobody has sent.
      end(.error, because: Self.sentAgain)
    case .begin, .end: break
    case nil:
      guard isLast else { return reader.wait() }
    }
    if isLast { reading.withLock { $0.isOver = true } }
  }

  /// All has been read.
  private func reachEnd() {
    let error = request.error
    reading.withLock { reading in
      guard reading.status == .open else { return }
      reading.error = error
      reading.status = error == nil ? .atEnd : .error
    }
  }

  /// Ends the reading; before the end of the body, the request is cancelled.
  private func end(_ status: Stream.Status, because error: AFError? = nil) {
    let isEarly = reading.withLock { reading in
      let isEarly = reading.status == .notOpen || reading.status == .open
      if isEarly || status == .closed { reading.status = status }
      reading.error = reading.error ?? error
      reading.chunk = Data()
      reading.offset = 0
      return isEarly
    }
    guard isEarly else { return }
    if let error { request.core.cancelWhileRunning(because: error) } else { request.cancel() }
    request.flow.remove(reader.id)
    reader.wake()
  }

  private static let sentAgain = AFError.sessionTaskFailed(
    error: URLError.made(
      .networkConnectionLost,
      "The request was sent again after a part of its body had been read from its InputStream; read it without retriers.",
      url: nil))

  // MARK: What it does not have

  override func getBuffer(
    _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length len: UnsafeMutablePointer<Int>
  ) -> Bool { false }

  override func property(forKey key: Stream.PropertyKey) -> AnyObject? { nil }
  override func setProperty(_ property: AnyObject?, forKey key: Stream.PropertyKey) -> Bool { false }
  override func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {}
  override func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) {}
}

/// What a stream request holds of an `InputStream`: the thread that waits in it.
private final class BlockingReader: StreamReader, ResponseSink {
  let id: Int
  private let flow: StreamFlow
  private let semaphore = DispatchSemaphore(value: 0)

  init(_ flow: StreamFlow, id: Int) {
    self.flow = flow
    self.id = id
  }

  func wake() { semaphore.signal() }
  func wait() { semaphore.wait() }

  // MARK: The end

  var runsUserCode: Bool { false }
  func postpone(_ outcome: RequestOutcome) -> Bool { true }
  func serialize(_ outcome: RequestOutcome) -> AFError? { nil }
  func replaceFailure(with error: AFError) {}
  func announce(to request: Request) {}

  func deliver() { flow.end(id) }
}

extension DataStreamRequest {
  /// The body as an `InputStream`, and resumes the request.
  ///
  /// Open it and read it, on a thread that may wait: `read` blocks until bytes come. It returns 0 at the end, and −1
  /// when the request has failed; `streamError` then tells why. The server waits while the stream is not read. Closing or
  /// releasing the stream before its end cancels the request. A stream cannot take back what a failed attempt has given,
  /// so a retry after that is an error. It serves no run loop and no delegate.
  ///
  /// - Parameter bufferSize: How many bytes may wait to be read. What counts is the larger of this and the request's
  ///   own limit of about a mebibyte. Default: 1024.
  /// - Returns: The stream, never `nil`; an optional for the sake of upstream's signature.
  public func asInputStream(bufferSize: Int = 1024) -> InputStream? {
    let stream = ResponseInputStream(self, bufferSize: bufferSize)
    resume()
    return stream
  }
}
