/// The progress of one request on a stream of HTTP/2, and what the end of the stream means for the request
/// (RFC 9113 §8.1, §8.7).
package struct StreamProgress: Sendable, Equatable {
  package enum Outcome: Sendable, Equatable {
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
  package func outcome(closedWith code: UInt32) -> Outcome {
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
