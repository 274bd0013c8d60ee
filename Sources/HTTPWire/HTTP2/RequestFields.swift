/// The pseudo-header fields and the header fields of a request in HTTP/2 (RFC 9113 §8.3.1), as the bytes that are
/// encoded.
package struct RequestFields: Sendable, Equatable {
  /// A request that HTTP/2 cannot carry. Values, which may be secret, are never part of it.
  package enum Violation: Error, Sendable, Equatable {
    /// A violation of the rules for all versions of HTTP.
    case head(RequestHeadViolation)
    /// The target is neither a path nor `*`, or contains a byte that is not allowed.
    case target
    /// The field `Host`, or the authority of a tunnel, cannot be an authority.
    case authority
    /// The protocol is not a token, or the method is not `CONNECT`.
    case protocolName

    /// One sentence.
    package var message: String {
      switch self {
      case .head(let violation): violation.message
      case .target: "The target of the request is not a path of visible ASCII characters (RFC 9113 §8.3.1)."
      case .protocolName: "A protocol is a token, and needs the method CONNECT (RFC 8441 §4)."
      case .authority: "The field Host is not a host with an optional port (RFC 9113 §8.3.1)."
      }
    }
  }

  /// The parts of a request that become pseudo-header fields.
  package struct Control: Sendable, Equatable {
    package var method: String
    package var origin: Origin
    /// Path and query; `*` for OPTIONS. Not used by `CONNECT` without a protocol.
    package var target: String
    /// The protocol of an extended `CONNECT` (RFC 8441), such as `websocket`.
    package var protocolName: String?

    package init(method: String, origin: Origin, target: String, protocolName: String? = nil) {
      self.method = method
      self.origin = origin
      self.target = target
      self.protocolName = protocolName
    }
  }

  /// The lengths of a field, which lies behind those before it.
  package struct Lengths: Sendable, Equatable {
    package let name: Int
    package let value: Int
  }

  /// Names and values in their order, without anything between them.
  package private(set) var bytes: [UInt8] = []
  package private(set) var lengths: [Lengths] = []

  /// Makes the fields of a request. Fields of the connection are left out (RFC 9113 §8.2.2). A given `Host` becomes
  /// `:authority`.
  ///
  /// - Parameter contentLength: The length of the body; `nil` if there is none, or if it is not known.
  package init(
    _ control: Control, fields: [HTTPHeader], contentLength: Int64? = nil
  ) throws(Violation) {
    do throws(HeaderFieldRules.Violation) {
      try HeaderFieldRules.validate(method: control.method, fields: fields)
    } catch {
      throw .head(.field(error))
    }
    bytes.reserveCapacity(fields.reduce(128) { $0 + $1.name.utf8.count + $1.value.utf8.count })
    lengths.reserveCapacity(fields.count + 6)
    try appendControl(control, host: fields.first { FieldName.equal($0.name, "Host") }?.value)
    let named = Self.connectionOptions(fields)
    for field in fields {
      try Self.checkFraming(field, contentLength)
      append(field, named: named)
    }
    if let contentLength { append("content-length", String(contentLength).utf8) }
    guard bytes.count <= RequestHeadWriter.largestHead else { throw .head(.tooLarge) }
  }

  /// Refuses a field of the caller that contradicts the body, as on HTTP/1.1.
  private static func checkFraming(_ field: HTTPHeader, _ length: Int64?) throws(Violation) {
    switch field.name.utf8.count {
    case 14 where FieldName.equal(field.name, "Content-Length"):
      guard trimmed(field.value) == String(length ?? 0) else {
        throw .head(.contradictingFraming("Content-Length"))
      }
    case 17 where FieldName.equal(field.name, "Transfer-Encoding"):
      guard FieldName.equal(field.value, "chunked") else {
        throw .head(.contradictingFraming("Transfer-Encoding"))
      }
    default: break
    }
  }

  private mutating func appendControl(_ control: Control, host: String?) throws(Violation) {
    append(":method", control.method.utf8)
    let given = Self.trimmed(host ?? "")
    let authority = given.isEmpty ? Self.authority(of: control.origin) : given
    guard authority.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"/?#@\\".utf8.contains($0) }) else {
      throw .authority
    }
    let isExtended = control.protocolName != nil
    guard control.method == "CONNECT" || !isExtended, HeaderFieldRules.isToken(control.protocolName ?? "-")
    else {
      throw .protocolName
    }
    guard control.method != "CONNECT" || isExtended else {
      // The authority of a tunnel has a port (RFC 9113 §8.5).
      append(":authority", Self.authority(of: control.origin, alwaysWithPort: true).utf8)
      return
    }
    append(":scheme", control.origin.scheme.utf8)
    append(":authority", authority.utf8)
    append(":path", try Self.path(of: control).utf8)
    if let name = control.protocolName { append(":protocol", name.utf8) }
  }

  private mutating func append(_ field: HTTPHeader, named: [Substring]) {
    if FieldName.equal(field.name, "TE") {
      guard Self.elements(field.value).contains(where: { FieldName.equal(String($0), "trailers") }) else {
        return
      }
      append("te", "trailers".utf8)
      return
    }
    guard !Self.isLeftOut(field.name), !named.contains(where: { FieldName.equal(String($0), field.name) })
    else {
      return
    }
    append(field.name, Self.trimmed(field.value).utf8)
  }

  private mutating func append(_ name: String, _ value: some Collection<UInt8>) {
    bytes.append(contentsOf: name.utf8.lazy.map(FieldName.lowercased))
    bytes.append(contentsOf: value)
    lengths.append(Lengths(name: name.utf8.count, value: value.count))
  }

  /// Calls `body` with each field in order.
  package func forEach(_ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void) {
    bytes.withUnsafeBytes { bytes in
      var position = 0
      for length in lengths {
        let middle = position + length.name
        let end = middle + length.value
        body(
          UnsafeRawBufferPointer(rebasing: bytes[position..<middle]),
          UnsafeRawBufferPointer(rebasing: bytes[middle..<end]))
        position = end
      }
    }
  }
}

extension RequestFields {
  private static func path(of control: Control) throws(Violation) -> String {
    let target = control.target
    if target == "*", control.method == "OPTIONS" { return target }
    // A URL without a path, perhaps with a query.
    let path = target.isEmpty || target.hasPrefix("?") ? "/" + target : target
    guard path.hasPrefix("/"), path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") })
    else { throw .target }
    return path
  }

  private static let leftOut = [
    "Host", "Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade", "HTTP2-Settings",
    "Content-Length",
  ]

  private static func isLeftOut(_ name: String) -> Bool { leftOut.contains { FieldName.equal($0, name) } }

  /// Returns the names that the fields `Connection` list (RFC 9110 §7.6.1).
  private static func connectionOptions(_ fields: [HTTPHeader]) -> [Substring] {
    fields.filter { FieldName.equal($0.name, "Connection") }.flatMap { elements($0.value) }
  }

  private static func elements(_ value: String) -> [Substring] {
    value.split(separator: ",").map { trimmed($0) }
  }

  private static func trimmed(_ text: some StringProtocol) -> Substring {
    let text = Substring(text)
    let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
    guard let start = text.utf8.firstIndex(where: { !isSpace($0) }),
      let end = text.utf8.lastIndex(where: { !isSpace($0) })
    else { return "" }
    return text[start...end]
  }

  private static func authority(of origin: Origin, alwaysWithPort: Bool = false) -> Substring {
    // The zone of an address has a meaning on this machine alone (RFC 6874 §4).
    let host = origin.host.contains(":") ? "[\(origin.host.prefix { $0 != "%" })]" : origin.host
    let isUsual = origin.port == (origin.scheme == "https" ? 443 : 80)
    return Substring(isUsual && !alwaysWithPort ? host : "\(host):\(origin.port)")
  }
}
