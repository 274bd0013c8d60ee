import CNghttp2
package import HTTPWire

/// The request of a stream, as its ``HTTP2Session`` calls it. It may call every function of the session but
/// ``HTTP2Session/receive(_:at:)`` and ``HTTP2Session/makeOutput()``, and may give up its stream at any time.
///
/// Belongs to the loop's thread. After ``streamEnded(_:_:)``, and after it has reset the stream, it is not called
/// again.
package protocol HTTP2StreamOwner: AnyObject {
  /// Called with the first frame of the response, before its fields are known.
  func responseBegan(_ stream: HTTP2Stream)
  /// Called with each informational response (1xx).
  func informationalHeadReceived(_ head: ResponseHead, _ stream: HTTP2Stream)
  func headReceived(_ head: ResponseHead, _ stream: HTTP2Stream)
  /// Called with bytes that are only valid during the call. They keep the window of the stream closed until
  /// ``HTTP2Session/consumed(_:of:)``.
  func contentReceived(_ bytes: UnsafeRawBufferPointer, _ stream: HTTP2Stream)
  func trailersReceived(_ trailers: FieldBlock, _ stream: HTTP2Stream)
  /// Called when the response is complete, while the content of the request may still be on its way.
  func responseEnded(_ stream: HTTP2Stream)
  /// Called once, when nothing more happens on the stream.
  func streamEnded(_ end: HTTP2StreamEnd, _ stream: HTTP2Stream)
  /// Copies the next bytes of the request's content to `room`.
  func contentWanted(into room: UnsafeMutableRawBufferPointer, _ stream: HTTP2Stream) -> HTTP2ContentStep
}

/// The next bytes of a request's content.
package enum HTTP2ContentStep: Sendable, Equatable {
  /// The number of bytes, at least one, and whether they are the last ones.
  case bytes(Int, isLast: Bool)
  case end
  /// The content has ended, and these fields follow it (RFC 9113 §8.1).
  case trailers(RequestFields)
  /// There are none now; ``HTTP2Session/resumeContent(of:)`` asks again.
  case wait
  /// There will be no more: the stream is reset, and its owner is not called again.
  case failed
}

/// The end of a stream, as its request sees it.
package enum HTTP2StreamEnd: Sendable, Equatable {
  /// The response is complete. The content of the request may be incomplete if the server did not want the rest.
  case complete
  /// No byte of the request was sent.
  case notSent
  /// No byte of the request was sent, because the server has lowered its limit of streams. Another connection may have
  /// a stream for it.
  case overLimit
  /// The server did not process the request (RFC 9113 §8.7). The code comes from its RST_STREAM or GOAWAY.
  case refused(code: UInt32)
  /// The server reset the stream with this code, before the response was complete.
  case reset(code: UInt32)
  /// The response is malformed, and the stream was reset. The text follows "… is not valid HTTP: ".
  case invalid(String)
  /// The head with the trailers is larger than the limit, and the stream was reset.
  case headTooLarge
  /// The connection was lost before the response was complete.
  case failed(HTTP2Failure)

  /// The fate of a request without a response, for ``RepeatDecision``.
  package var evidence: RepeatDecision.Evidence {
    switch self {
    case .notSent: .notSent
    // The limit is as certain as a refusal.
    case .overLimit, .refused: .refused
    case .complete, .reset, .invalid, .headTooLarge, .failed: .unknown
    }
  }
}

/// The reason why a connection of HTTP/2 cannot continue.
package enum HTTP2Failure: Error, Sendable, Equatable {
  /// The server violated the protocol. The text follows "… is not valid HTTP: ".
  case violation(String)
  /// The server sent too many frames without content.
  case flood
  /// The server ended the connection, with the code of its GOAWAY if there was one.
  case closed(code: UInt32?)
  /// A field of one response is larger than nghttp2 reads, so that the compression of all heads after it is unknown.
  case fieldTooLarge
  /// The head of another response could not be read to its end.
  case otherResponse
  /// The client cannot continue, for example because memory is short.
  case system(String)
}

/// The progress of a field block, which consists of HEADERS and of CONTINUATION (RFC 9113 §4.3).
struct FieldBlockProgress {
  let stream: Int32
  /// The number of bytes of the frames that have begun.
  private(set) var size = 0
  /// Whether another frame follows.
  private(set) var goesOn = false

  init(stream: Int32 = 0) { self.stream = stream }

  mutating func frameBegan(_ head: nghttp2_frame_hd) {
    size += head.length
    goesOn = UInt32(head.flags) & NGHTTP2_FLAG_END_HEADERS.rawValue == 0
  }
}

/// One request and its response on a connection of HTTP/2. Created by ``HTTP2Session``; belongs to the loop's thread.
package final class HTTP2Stream {
  /// The stream identifier.
  @exclusivity(unchecked) package internal(set) var id: Int32 = 0
  /// `nil` if the request has given up the stream.
  @exclusivity(unchecked) var owner: (any HTTP2StreamOwner)?
  @exclusivity(unchecked) var fields: ResponseFields
  @exclusivity(unchecked) var progress = StreamProgress()
  @exclusivity(unchecked) var window: StreamWindow
  /// The position of the request's head in the output of the connection; `nil` until the head was encoded.
  @exclusivity(unchecked) var headPosition: UInt64?
  /// The position after the head; `nil` until all of it was encoded.
  @exclusivity(unchecked) var headEnd: UInt64?
  /// The position after the content that was encoded so far.
  @exclusivity(unchecked) var contentEnd: UInt64 = 0
  /// The position after a request with content; `nil` until all of it was encoded.
  @exclusivity(unchecked) var requestEnd: UInt64?
  /// Whether no more of the request's content is sent.
  @exclusivity(unchecked) var isSendingStopped = false
  /// Whether the request has content, and its end was not sent.
  @exclusivity(unchecked) var isSending: Bool
  /// A violation of the server's that concerns this stream alone.
  @exclusivity(unchecked) var violation: String?
  /// Whether the server has reset the stream. Otherwise nghttp2 did so, because of a violation.
  @exclusivity(unchecked) var isResetByServer = false

  init(
    _ owner: any HTTP2StreamOwner, _ fields: ResponseFields, hasContent: Bool, in budget: inout WindowBudget
  ) {
    self.owner = owner
    self.fields = fields
    isSending = hasContent
    window = StreamWindow(in: &budget)
  }

  /// The length that the head of the final response gives.
  package var contentLength: Int64? { fields.contentLength }
  /// The framing that the head of the final response declares.
  package var framing: MessageFraming { fields.framing }
  /// The length of the response's body as announced; `nil` if it is unknown.
  package var announcedLength: Int64? { fields.announcedLength }
  /// Whether the final head was received.
  package var hasHead: Bool { progress.hasHead }
  /// Whether the response is complete.
  package var hasResponseEnded: Bool { progress.hasEnded }
  /// Whether a part of the request's content has still to be sent.
  package var isRequestOpen: Bool { isSending && !isSendingStopped }

  /// Returns the end of a stream that is closed with an error code (RFC 9113 §7).
  func end(closedWith code: UInt32) -> HTTP2StreamEnd {
    switch progress.outcome(closedWith: code) {
    case .complete: .complete
    case .notSent: .notSent
    case .refused: .refused(code: code)
    // A stream above the last one of GOAWAY is closed with REFUSED_STREAM, also if a response had begun.
    case .broken(let code) where isResetByServer || code == HTTP2ErrorCode.refusedStream: .reset(code: code)
    case .broken(let code): .invalid(violation ?? HTTP2Failure.violationText(code: code, reason: ""))
    }
  }
}

extension HTTP2Failure {
  /// Returns the name of an error code, such as `REFUSED_STREAM`; the number of an unknown one.
  package static func name(of code: UInt32) -> String {
    guard code <= HTTP2ErrorCode.http11Required else { return "code \(code)" }
    return String(cString: nghttp2_http2_strerror(code))
  }

  /// Returns the name of the violation for which nghttp2 ends a stream or the connection.
  ///
  /// - Parameters:
  ///   - code: The error code of its RST_STREAM or GOAWAY.
  ///   - reason: The additional data of its GOAWAY: a constant text of nghttp2, or nothing.
  static func violationText(code: UInt32, reason: String) -> String {
    switch (code, reason) {
    case (_, "SETTINGS expected"):
      "its first frame is not SETTINGS, so it does not speak HTTP/2 (RFC 9113 §3.4)."
    case (UInt32(NGHTTP2_COMPRESSION_ERROR.rawValue), _):
      "its header fields cannot be decompressed (RFC 7541)."
    case (UInt32(NGHTTP2_FRAME_SIZE_ERROR.rawValue), _):
      "a frame has a length that is not allowed (RFC 9113 §4.2)."
    case (UInt32(NGHTTP2_FLOW_CONTROL_ERROR.rawValue), _):
      "it ignores the windows of flow control, or makes them too large (RFC 9113 §5.2)."
    case (_, ""): "its frames violate HTTP/2 (\(name(of: code)), RFC 9113)."
    default: "its frames violate HTTP/2 (\(name(of: code)): \(reason), RFC 9113)."
    }
  }

  /// Returns the failure for an error of nghttp2 itself.
  static func library(_ code: Int) -> HTTP2Failure {
    switch Int32(clamping: code) {
    case Int32(NGHTTP2_ERR_FLOODED.rawValue): .flood
    case tooManyContinuations:
      .violation("a head has too many CONTINUATION frames (RFC 9113 §6.10).")
    case let code: .system(String(cString: nghttp2_strerror(code)))
    }
  }

  /// The most bytes of a name or a value as encoded that nghttp2 reads. It has no option for it.
  static let largestField = 65_536

  static var renegotiation: HTTP2Failure {
    .violation("it began a renegotiation of TLS, which HTTP/2 forbids (RFC 9113 §9.2.1).")
  }

  /// Only newer headers have a name for it.
  private static let tooManyContinuations: Int32 = -905

  /// Returns a sentence about the end of the connection to a host.
  package func message(host: String) -> String {
    switch self {
    case .violation(let text): "The response of \(host) is not valid HTTP: \(text)"
    case .flood:
      "\(host) sent too many frames of HTTP/2 without content, so the connection was closed (ENHANCE_YOUR_CALM)."
    case .closed(let code?) where code != HTTP2ErrorCode.none:
      "\(host) closed the connection before the response was complete (\(Self.name(of: code)))."
    case .closed: "\(host) closed the connection before the response was complete."
    case .fieldTooLarge:
      "A header field of the response of \(host) has more than 64 KiB, which nghttp2 does not read over HTTP/2, or cannot be decompressed (RFC 7541). Set httpVersions to .http1Only if such fields are expected."
    case .otherResponse:
      "The connection to \(host) was closed before the response was complete, because the header of another response on it could not be read."
    case .system(let text): "The connection to \(host) cannot be used any longer (\(text))."
    }
  }
}
