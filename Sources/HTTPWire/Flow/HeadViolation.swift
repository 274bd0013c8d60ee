/// A violation of HTTP in the head, the chunks or the trailers of a response. `Documentation/HTTPReading.md` lists
/// the rules. Field values, which may be secret, are never part of it.
package enum HeadViolation: Error, Sendable, Equatable {
  case statusLine
  case statusCode(Int)
  /// The status line claims this version on a connection that speaks another one.
  case version(String)
  /// A 101 for a request without `Upgrade`, or over HTTP/2.
  case unrequestedUpgrade
  case missingColon
  case fieldName(String)
  case spaceBeforeColon(String)
  case fieldValue(field: String, character: UInt8)
  case foldBeforeFirstField
  /// A folded field that decides about the framing. Readers differ in what they take for its value.
  case foldedFraming(String)
  case contentLength
  case contradictingContentLengths
  case transferCoding(String)
  case transferCodingInHTTP2
  case contradictingLocations
  case chunkSize
  case chunkExtension
  case chunkEnd
  /// In HTTP/2: a pseudo-header field that is missing, repeated, unknown, or malformed, or that follows other fields.
  case pseudoField(String)
  /// In HTTP/2: a field of connections of HTTP/1.1.
  case connectionField(String)
  /// In HTTP/2: a frame that must not come here, such as DATA before the head.
  case frameOrder
  /// In HTTP/2: the frames carry another number of bytes than Content-Length says.
  case bodyLength

  /// One sentence part that follows "… is not valid HTTP: ", with the section of the RFC.
  package var message: String {
    switch self {
    case .statusLine, .statusCode, .version, .unrequestedUpgrade: startMessage
    case .missingColon, .fieldName, .spaceBeforeColon, .fieldValue, .foldBeforeFirstField, .foldedFraming:
      fieldMessage
    case .contentLength, .contradictingContentLengths, .transferCoding, .transferCodingInHTTP2,
      .contradictingLocations:
      framingMessage
    case .chunkSize: "a chunk size is not a hexadecimal number below 2^63 (RFC 9112 §7.1)."
    case .chunkExtension: "a chunk extension is malformed or too long (RFC 9112 §7.1.1)."
    case .pseudoField, .connectionField, .frameOrder, .bodyLength: streamMessage
    case .chunkEnd: "a chunk is not followed by a line break (RFC 9112 §7.1)."
    }
  }

  private var startMessage: String {
    switch self {
    case .statusCode(let code): "the status code \(code) is below 100 (RFC 9110 §15)."
    case .version(let version):
      "its status line says \(version), which the connection does not speak (RFC 9112 §2.3)."
    case .unrequestedUpgrade: "it switches to a protocol that was not requested (RFC 9110 §15.2.2)."
    default: "its status line is malformed (RFC 9112 §4)."
    }
  }

  private var fieldMessage: String {
    switch self {
    case .fieldName(let name):
      "\(HeaderFieldRules.quoted(name)) is not a field name (RFC 9110 §5.1)."
    case .spaceBeforeColon(let name):
      "white space follows the field name \(HeaderFieldRules.quoted(name)) (RFC 9112 §5.1)."
    case .fieldValue(let field, let character):
      "the value of the field \(HeaderFieldRules.quoted(field)) contains "
        + "\(HeaderFieldRules.name(of: character)) (RFC 9110 §5.5)."
    case .foldBeforeFirstField: "white space comes before its first field (RFC 9112 §2.2)."
    case .foldedFraming(let field):
      "the field \(HeaderFieldRules.quoted(field)) is folded over two lines (RFC 9112 §5.2)."
    default: "a field line has no colon (RFC 9112 §5)."
    }
  }

  private var streamMessage: String {
    switch self {
    case .pseudoField(let name):
      "the pseudo-header field \(HeaderFieldRules.quoted(name)) is missing, misplaced or malformed (RFC 9113 §8.3)."
    case .connectionField(let field):
      "HTTP/2 does not allow the field \(HeaderFieldRules.quoted(field)) (RFC 9113 §8.2.2)."
    case .bodyLength: "its body is not as long as its Content-Length says (RFC 9113 §8.1.1)."
    default: "its frames are not in order (RFC 9113 §8.1)."
    }
  }

  private var framingMessage: String {
    switch self {
    case .contradictingContentLengths: "its Content-Length values differ (RFC 9112 §6.3)."
    case .transferCoding(let coding):
      "the transfer coding \(HeaderFieldRules.quoted(coding)) was not requested, is repeated, or is not the last "
        + "one (RFC 9112 §6.1)."
    case .transferCodingInHTTP2: "HTTP/2 does not allow Transfer-Encoding (RFC 9113 §8.2.2)."
    case .contradictingLocations: "its Location fields differ (RFC 9110 §10.2.2)."
    default: "its Content-Length is not a decimal number below 2^63 (RFC 9112 §6.3)."
    }
  }
}
