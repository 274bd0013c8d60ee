import CNghttp2
import HTTPWire

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
    case .system(let text): "The connection to \(host) cannot be used any longer (\(text))."
    }
  }
}
