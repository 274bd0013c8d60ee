/// The body of a response that is discarded, such as a redirect that is followed, and the decision whether its
/// connection is reused. Pure: the transport performs the decision.
///
/// A body is neither decoded nor collected, and its failure does not fail the response. A short one is read, so that
/// the connection can be used again. With any other, a new connection costs less than reading on.
package struct DroppedBody: Sendable {
  package enum Decision: Sendable, Equatable {
    /// The body is read to its end, or has none to read.
    case read
    /// The response is complete at once. The connection of HTTP/1 is closed, the stream of HTTP/2 is reset.
    case close
  }

  /// The largest body that is read, in bytes.
  package static let longest: Int64 = 65_536
  /// The longest time for which the next request waits for the rest of a body, in nanoseconds. It is about the time of
  /// a new connection over a slow network.
  package static let patience: UInt64 = 250_000_000

  /// The decision about the body as far as it has arrived.
  package private(set) var decision: Decision
  /// The time at which the transport stops reading.
  package let deadline: UInt64
  /// The number of bytes that have arrived.
  package private(set) var count: Int64 = 0

  /// Decides after the head of a response.
  ///
  /// - Parameters:
  ///   - head:       The head of the response.
  ///   - framing:    The framing that the head declares.
  ///   - method:     The method of the request.
  ///   - isReusable: Whether the transport may use the connection again, and has sent the whole request.
  ///   - now:        The time, in nanoseconds.
  ///   - isPatient:  Whether the rest of a body that is read may take any time, because the next request has to follow
  ///     on the same connection.
  package init(
    _ head: ResponseHead, _ framing: MessageFraming, method: String, isReusable: Bool, now: UInt64,
    isPatient: Bool = false
  ) {
    let (end, isBeyond) = now.addingReportingOverflow(Self.patience)
    deadline = isPatient || isBeyond ? .max : end
    let hasBody = method != "HEAD" && head.status != 204 && head.status != 304
    let isTooLong = !framing.isChunked && (framing.contentLength ?? 0) > Self.longest
    let endsConnection = head.endsConnection(framing)
    decision = hasBody && (isTooLong || !isReusable || endsConnection) ? .close : .read
  }

  /// Counts bytes of the body. Returns the decision about the rest.
  package mutating func received(_ length: Int) -> Decision {
    let (sum, isAboveLimit) = count.addingReportingOverflow(Int64(length))
    count = isAboveLimit ? .max : sum
    if count > Self.longest { decision = .close }
    return decision
  }
}

extension ResponseHead {
  /// Whether no further request can be sent on the connection of the response (RFC 9112 §9.3).
  fileprivate func endsConnection(_ framing: MessageFraming) -> Bool {
    switch version {
    case .http2, .http3: return false
    case .http1_0: return true
    case .http1_1: break
    }
    guard framing.isChunked || framing.contentLength != nil else { return true }
    return block.marks.contains(.connection) && block.lists("close", in: "Connection")
  }
}
