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
  /// A CONTINUATION frame of this length carries a head on, whose size has its own limit.
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

  /// Handles a frame as soon as its head, and the length of the padding of DATA, are there.
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
