/// The reason why the head or the trailers of a request are not sent. Field values, which may be secret, are never part
/// of it.
package enum RequestHeadViolation: Error, Sendable, Equatable {
  /// A method, a field name or a field value is not valid.
  case field(HeaderFieldRules.Violation)
  /// The request target contains this byte.
  case target(UInt8)
  /// The field of this name says something else of the content than the content itself.
  case contradictingFraming(String)
  /// A field that is not allowed among trailers.
  case trailer(String)
  case contentOfHead
  case tooLarge

  /// One sentence or two: what is wrong and what can be done.
  package var message: String {
    switch self {
    case .field(let violation): violation.message
    case .target(let byte):
      "The request target contains the byte 0x\(String(byte, radix: 16, uppercase: true)); percent-encode it (RFC 9112 §3.2)."
    case .contradictingFraming(let name):
      "The field \(name) contradicts the body of the request; remove the field, because the transport adds it (RFC 9112 §6)."
    case .trailer(let name):
      "\(HeaderFieldRules.quoted(name)) is not allowed as a trailer, because it is needed before the body (RFC 9110 §6.5.1)."
    case .contentOfHead: "A HEAD request cannot carry a body; remove the body or use another method."
    case .tooLarge:
      "The head of the request is too large: at most 1,000,000 bytes can be sent. Send large values in the body."
    }
  }
}
