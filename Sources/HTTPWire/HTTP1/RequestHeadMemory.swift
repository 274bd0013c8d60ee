/// The fields of the last request, as they were written. Most programs send the same fields to a host again and again,
/// and copying them as a whole costs a fraction of checking and writing each.
///
/// The fields are copied for the same origin only, because the lines include `Host`.
package struct RequestHeadMemory: Sendable {
  /// The largest section that is stored, in bytes.
  private static var largestSection: Int { 4_096 }

  private var origin = Origin(plainScheme: "", host: "", port: 0)
  private var fields: [HTTPHeader] = []
  /// The lines of `Host` and the fields. It is empty until the same fields were sent twice, so that fields which change
  /// with each request are not copied in vain.
  private var section: [UInt8] = []

  package init() {}

  /// Appends the lines of the fields, if they are known. Returns whether they are.
  package func append(_ fields: [HTTPHeader], of origin: Origin, to buffer: inout [UInt8]) -> Bool {
    guard !section.isEmpty, isLast(fields, of: origin) else { return false }
    buffer.append(contentsOf: section)
    return true
  }

  /// Takes note of fields that were written.
  ///
  /// - Parameter isPlain: Whether the lines mean nothing for the content or the connection of this one request.
  mutating func note(
    _ fields: [HTTPHeader], of origin: Origin, _ lines: ArraySlice<UInt8>, isPlain: Bool
  ) {
    guard isPlain, isLast(fields, of: origin), lines.count <= Self.largestSection,
      lines.allSatisfy({ $0 < 0x80 })
    else {
      self.origin = origin
      self.fields = fields
      section.removeAll(keepingCapacity: true)
      return
    }
    section.append(contentsOf: lines)
  }

  /// Whether the last request had the same origin and fields. Equal texts can have different bytes, but not if one of
  /// them is ASCII and both have the same number of bytes.
  private func isLast(_ fields: [HTTPHeader], of origin: Origin) -> Bool {
    guard fields.count == self.fields.count, origin == self.origin else { return false }
    // Requests without fields of their own share the fields of their session.
    if isStored(fields) { return true }
    for index in fields.indices {
      guard Self.isSame(fields[index].name, self.fields[index].name),
        Self.isSame(fields[index].value, self.fields[index].value)
      else { return false }
    }
    return true
  }

  /// Whether the array is the one that is stored, in the same memory.
  private func isStored(_ fields: [HTTPHeader]) -> Bool {
    fields.withUnsafeBufferPointer { given in
      self.fields.withUnsafeBufferPointer { given.baseAddress == $0.baseAddress }
    }
  }

  private static func isSame(_ one: String, _ other: String) -> Bool {
    one == other && one.utf8.count == other.utf8.count
  }
}

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
  case contentOfTrace
  /// The method CONNECT, other than for a tunnel to a server.
  case connect
  case tooLarge

  /// Returns the violation of a request that has content; `nil` for a method that allows it.
  static func content(of method: String) -> RequestHeadViolation? {
    switch method {
    case "HEAD": .contentOfHead
    case "TRACE": .contentOfTrace
    default: nil
    }
  }

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
    case .contentOfTrace:
      "A TRACE request cannot carry a body (RFC 9110 §9.3.8); remove the body or use another method."
    case .connect:
      "CONNECT makes a tunnel of the connection, so it is no method for requests (RFC 9110 §9.3.6). Set TransportOptions.proxy to use a proxy, or open a byte stream."
    case .tooLarge:
      "The head of the request is too large: at most 1,000,000 bytes can be sent. Send large values in the body."
    }
  }
}
