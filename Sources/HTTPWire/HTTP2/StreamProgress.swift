/// The progress of one request on a stream of HTTP/2, and what the end of the stream means for the request
/// (RFC 9113 §8.1, §8.7).
package struct StreamProgress: Sendable, Equatable {
  package enum StreamOutcome: Sendable, Equatable {
    /// The response is complete.
    case complete
    /// The server did not process the request, and may take it on another connection, if need be of HTTP/1.1.
    case refused(needsHTTP1: Bool)
    /// No byte of the request was sent.
    case notSent
    /// The stream ended within the response, or without one, with this error code.
    case broken(UInt32)

    /// The fate of a request that has no response, for ``RepeatDecision``.
    package var evidence: RepeatDecision.Evidence {
      switch self {
      case .refused: .refused
      case .notSent: .notSent
      case .complete, .broken: .unknown
      }
    }
  }

  /// Whether the head of the request, or a part of it, was sent.
  package var wasSent = false
  /// Whether a frame of the response was received, also of an informational one.
  package var hasFrame = false
  /// Whether the head of the final response was received.
  package var hasHead = false
  /// Whether the server has ended the stream with END_STREAM.
  package var hasEnded = false

  package init() {}

  /// Returns the outcome of a stream that is closed with an error code (RFC 9113 §7). Streams above the last one of a
  /// GOAWAY are closed with REFUSED_STREAM.
  package func outcome(closedWith code: UInt32) -> StreamOutcome {
    // A complete response counts also if the server then refuses the rest of the request (RFC 9113 §8.1).
    if hasHead, hasEnded { return .complete }
    if !wasSent { return .notSent }
    // After a frame of the response the server has processed the request, whatever the code says.
    guard !hasFrame, !hasHead else { return .broken(code) }
    switch code {
    case HTTP2ErrorCode.refusedStream: return .refused(needsHTTP1: false)
    case HTTP2ErrorCode.http11Required: return .refused(needsHTTP1: true)
    default: return .broken(code)
    }
  }
}

/// Error codes of streams and connections (RFC 9113 §7).
package enum HTTP2ErrorCode {
  package static let none: UInt32 = 0
  package static let protocolError: UInt32 = 1
  package static let refusedStream: UInt32 = 7
  package static let cancel: UInt32 = 8
  package static let enhanceYourCalm: UInt32 = 11
  package static let http11Required: UInt32 = 13
}

/// The sizes of all receiving windows of one connection of HTTP/2, which together are the memory that a server can
/// fill.
package struct WindowBudget: Sendable, Equatable {
  private let limit: Int
  /// The sum of the windows.
  package private(set) var total = 0

  /// Makes the budget of a connection; windows begin above it if need be, but do not grow then.
  package init(limit: Int = 64 << 20) { self.limit = limit }

  fileprivate mutating func add(_ size: Int) { total += size }

  fileprivate mutating func grow(by size: Int) -> Bool {
    guard limit - total >= size else { return false }
    total += size
    return true
  }

  fileprivate mutating func remove(_ size: Int) { total -= size }
}

/// The receiving window of a stream of HTTP/2 (RFC 9113 §5.2). It begins small, and doubles each time its reader has
/// read a whole window without falling behind. Otherwise a distant server would wait for updates of the window. Pure.
package struct StreamWindow: Sendable, Equatable {
  /// The first size, which the client announces as SETTINGS_INITIAL_WINDOW_SIZE.
  package static let initialSize = 256 << 10
  package static let largestSize = 8 << 20

  package private(set) var size = Self.initialSize
  /// The bytes that were received and not read.
  package private(set) var unread = 0
  /// The bytes that were read since the reader fell behind, or the window grew.
  private var readSinceChange = 0
  private var isOpen = true

  /// Makes the window of a new stream.
  package init(in budget: inout WindowBudget) { budget.add(size) }

  /// Notes bytes of the server.
  package mutating func received(_ count: Int) {
    guard isOpen else { return }
    unread += max(0, count)
    // The reader is slower than the connection. A larger window would hold more memory, and gain nothing.
    if unread > size / 2 { readSinceChange = 0 }
  }

  /// Notes bytes that the reader took. Returns the new size if the window grows.
  package mutating func read(_ count: Int, in budget: inout WindowBudget) -> Int? {
    guard isOpen else { return nil }
    let count = min(max(0, count), unread)
    unread -= count
    guard unread <= size / 2 else { return nil }
    readSinceChange += count
    guard readSinceChange >= size, size < Self.largestSize, budget.grow(by: size) else { return nil }
    readSinceChange = 0
    size *= 2
    return size
  }

  /// Returns the window to the budget when the stream has ended.
  package mutating func close(in budget: inout WindowBudget) {
    guard isOpen else { return }
    isOpen = false
    budget.remove(size)
  }
}

/// Counts the frames of a server that carry no content, so that a flood of them ends the connection: nghttp2 takes
/// most of them without a limit. Each request may cost a few of them, and each DATA frame of the client some updates
/// of windows. Pure; the caller reads the clock, in nanoseconds.
///
/// The meter reads the heads of the frames itself, because nghttp2 does not report frames of unknown types.
package struct FloodMeter: Sendable {
  /// Types of frames (RFC 9113 §6).
  private enum Kind {
    static let data: UInt8 = 0
    static let windowUpdate: UInt8 = 8
    static let continuation: UInt8 = 9
  }

  private static let paddedFlag: UInt8 = 8
  private static let headSize = 9
  /// Frames without content that each request may cost: an informational head, the head, trailers or an empty DATA
  /// frame, a reset, a PING, an update of a window.
  private static let framesPerRequest = 6
  /// The requests that are in flight on a connection save no more than this.
  private static let largestAllowance = 1_000
  /// A CONTINUATION frame of this length continues a head, which has its own size limit.
  private static let fullContinuation = 8_192
  /// Bytes of DATA for which a server may update a window once more.
  private static let bytesPerUpdate = 512
  /// The most updates that are saved: those with which a server answers frames of one byte that fill a window of
  /// 128 KiB, each of them once for the stream and once for the connection.
  private static let mostUpdates = 262_144

  private var bucket: TokenBucket
  /// Frames without content that cost nothing, because the client has sent requests.
  private var allowance = 0
  /// Updates of windows that cost nothing, because the client has sent DATA.
  private var updates = 0

  /// The head of the current frame, and the length of its padding after it.
  private var head: [UInt8] = []
  /// The bytes of the payload that are still to come.
  private var rest = 0
  /// Whether the connection must end with ENHANCE_YOUR_CALM.
  package private(set) var isFlooded = false

  /// Makes the meter of a connection.
  ///
  /// - Parameters:
  ///   - burst: The number of frames without content that are accepted at once.
  ///   - rate: The number of such frames in a second that are accepted for any time.
  package init(burst: Double = 1_000, rate: Double = 100) {
    bucket = TokenBucket(rate: rate, burst: burst)
    head.reserveCapacity(Self.headSize + 1)
  }

  /// Notes that the client begins a stream.
  package mutating func requestSent() {
    allowance = min(allowance + Self.framesPerRequest, Self.largestAllowance)
  }

  /// Notes that the client has sent a frame with DATA.
  package mutating func dataSent(_ count: Int) {
    // One for the stream, and one for the connection.
    updates = min(updates + 2 * (1 + max(0, count) / Self.bytesPerUpdate), Self.mostUpdates)
  }

  /// Reads bytes of the server, in any segmentation, from its first byte on. Returns whether the connection must end.
  package mutating func received(_ bytes: UnsafeRawBufferPointer, at now: UInt64) -> Bool {
    var position = 0
    while position < bytes.count, !isFlooded {
      if rest > 0 {
        let passed = min(rest, bytes.count - position)
        rest -= passed
        position += passed
        continue
      }
      head.append(bytes[position])
      position += 1
      headGrew(at: now)
    }
    return isFlooded
  }

  /// Handles a frame as soon as its head, and the length of the padding of DATA, have arrived.
  private mutating func headGrew(at now: UInt64) {
    guard head.count >= Self.headSize else { return }
    let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
    let kind = head[3]
    let isPadded = kind == Kind.data && head[4] & Self.paddedFlag != 0 && length > 0
    if isPadded, head.count == Self.headSize { return }
    let content = isPadded ? length - 1 - Int(head[Self.headSize]) : length
    rest = isPadded ? length - 1 : length
    head.removeAll(keepingCapacity: true)
    switch kind {
    case Kind.data where content > 0, Kind.continuation where content >= Self.fullContinuation: break
    case Kind.windowUpdate where updates > 0: updates -= 1
    default: count(at: now)
    }
  }

  private mutating func count(at now: UInt64) {
    if allowance > 0 {
      allowance -= 1
    } else if bucket.readyTime <= now {
      bucket.take(at: now)
    } else {
      isFlooded = true
    }
  }
}
