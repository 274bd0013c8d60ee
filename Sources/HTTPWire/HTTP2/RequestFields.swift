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
    package var target: Substring
    /// The protocol of an extended `CONNECT` (RFC 8441), such as `websocket`.
    package var protocolName: String?

    package init(
      method: String, origin: Origin, target: some StringProtocol, protocolName: String? = nil
    ) {
      self.method = method
      self.origin = origin
      self.target = Substring(target)
      self.protocolName = protocolName
    }
  }

  /// The lengths of a field, which is stored after the previous one.
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
  /// - Parameters:
  ///   - contentLength: The length of the body; `nil` if there is none, or if it is not known.
  ///   - isChunked: Whether HTTP/1.1 would send the body in chunks.
  package init(
    _ control: Control, fields: [HTTPHeader], contentLength: Int64? = nil, isChunked: Bool = false
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
    let hasContent = isChunked || contentLength ?? 0 > 0
    for field in fields {
      try Self.checkFraming(field, contentLength, isChunked)
      // Without content, there is nothing to wait with (RFC 9110 §10.1.1).
      if !hasContent, Self.isExpectation(field) { continue }
      append(field, named: named)
    }
    if let contentLength { append("content-length", Substring(String(contentLength))) }
    guard bytes.count <= RequestHeadWriter.largestHead else { throw .head(.tooLarge) }
  }

  /// Makes an empty list.
  init() {}

  /// Appends a field that was checked before.
  mutating func appendField(_ field: HTTPHeader) { append(field.name, Substring(field.value)) }

  /// Refuses a caller's field that contradicts the body, as on HTTP/1.1.
  private static func checkFraming(
    _ field: HTTPHeader, _ length: Int64?, _ isChunked: Bool
  ) throws(Violation) {
    switch field.name.utf8.count {
    case 14 where FieldName.equal(field.name, "Content-Length"):
      guard trimmed(field.value) == String(length ?? 0), length != nil || !isChunked else {
        throw .head(.contradictingFraming("Content-Length"))
      }
    case 17 where FieldName.equal(field.name, "Transfer-Encoding"):
      guard isChunked, FieldName.equal(field.value, "chunked") else {
        throw .head(.contradictingFraming("Transfer-Encoding"))
      }
    default: break
    }
  }

  private static func isExpectation(_ field: HTTPHeader) -> Bool {
    field.name.utf8.count == 6 && FieldName.equal(field.name, "Expect")
      && FieldName.equal(field.value, "100-continue")
  }

  private mutating func appendControl(_ control: Control, host: String?) throws(Violation) {
    append(":method", Substring(control.method))
    let given = host.map { Self.trimmed($0) } ?? ""
    let authority = given.isEmpty ? Self.authority(of: control.origin) : given
    guard Self.isAuthority(authority) else { throw .authority }
    let isExtended = control.protocolName != nil
    guard control.method == "CONNECT" || !isExtended,
      control.protocolName.map({ HeaderFieldRules.isToken($0) }) != false
    else {
      throw .protocolName
    }
    guard control.method != "CONNECT" || isExtended else {
      // The authority of a tunnel has a port (RFC 9113 §8.5).
      append(":authority", Self.authority(of: control.origin, alwaysWithPort: true))
      return
    }
    append(":scheme", Substring(control.origin.scheme))
    append(":authority", authority)
    append(":path", try Self.path(of: control))
    if let name = control.protocolName { append(":protocol", Substring(name)) }
  }

  private mutating func append(_ field: HTTPHeader, named: [Substring]) {
    if FieldName.equal(field.name, "TE") {
      guard Self.elements(field.value).contains(where: { FieldName.equal(String($0), "trailers") }) else {
        return
      }
      append("te", "trailers")
      return
    }
    guard !Self.isLeftOut(field.name), !named.contains(where: { FieldName.equal(String($0), field.name) })
    else {
      return
    }
    append(field.name, Substring(field.value))
  }

  /// Appends a field, its name in lower case, and its value without the white space around it.
  private mutating func append(_ name: String, _ value: Substring) {
    var (name, value) = (name, value)
    name.withUTF8 { name in
      value.withUTF8 { append(name, FieldName.trimmed(UnsafeRawBufferPointer($0))) }
    }
  }

  private mutating func append(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeRawBufferPointer) {
    withUnsafeTemporaryAllocation(byteCount: name.count + value.count, alignment: 1) { field in
      for index in 0..<name.count { field[index] = FieldName.lowercased(name[index]) }
      UnsafeMutableRawBufferPointer(rebasing: field[name.count...]).copyMemory(from: value)
      bytes.append(contentsOf: field)
    }
    lengths.append(Lengths(name: name.count, value: value.count))
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
  private static func path(of control: Control) throws(Violation) -> Substring {
    var path = control.target
    // A URL without a path, perhaps with a query.
    if path.utf8.first == nil || path.utf8.first == UInt8(ascii: "?") { path = "/" + path }
    if path.utf8.first == UInt8(ascii: "*"), control.method == "OPTIONS", path == "*" { return path }
    let isPath = path.withUTF8 { path in
      for byte in path where byte <= 0x20 || byte >= 0x7F || byte == UInt8(ascii: "#") { return false }
      return path.first == UInt8(ascii: "/")
    }
    guard isPath else { throw .target }
    return path
  }

  private static func isAuthority(_ text: Substring) -> Bool {
    var text = text
    return text.withUTF8 { text in
      text.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#"), UInt8(ascii: "@"), UInt8(ascii: "\\"):
          false
        default: byte > 0x20 && byte < 0x7F
        }
      }
    }
  }

  private static func isLeftOut(_ name: String) -> Bool {
    switch name.utf8.count {
    case 4: FieldName.equal(name, "Host")
    case 7: FieldName.equal(name, "Upgrade")
    case 10: FieldName.equal(name, "Connection") || FieldName.equal(name, "Keep-Alive")
    case 14: FieldName.equal(name, "Content-Length") || FieldName.equal(name, "HTTP2-Settings")
    case 16: FieldName.equal(name, "Proxy-Connection")
    case 17: FieldName.equal(name, "Transfer-Encoding")
    default: false
    }
  }

  /// Returns the names that the fields `Connection` list (RFC 9110 §7.6.1).
  private static func connectionOptions(_ fields: [HTTPHeader]) -> [Substring] {
    var options: [Substring] = []
    for field in fields where FieldName.equal(field.name, "Connection") { options += elements(field.value) }
    return options
  }

  private static func elements(_ value: String) -> [Substring] {
    value.split(separator: ",").map { trimmed($0) }
  }

  private static func trimmed(_ text: some StringProtocol) -> Substring {
    let text = Substring(text)
    let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
    // A look at both ends is enough for almost all values.
    if let first = text.utf8.first, let last = text.utf8.last, !isSpace(first), !isSpace(last) { return text }
    guard let start = text.utf8.firstIndex(where: { !isSpace($0) }),
      let end = text.utf8.lastIndex(where: { !isSpace($0) })
    else { return "" }
    return text[start...end]
  }

  private static func authority(of origin: Origin, alwaysWithPort: Bool = false) -> Substring {
    // The zone of an address has a meaning on this machine alone (RFC 6874 §4).
    let isAddress = origin.host.utf8.contains(UInt8(ascii: ":"))
    let host = isAddress ? "[\(origin.host.prefix { $0 != "%" })]" : origin.host
    let isUsual = origin.port == (origin.scheme == "https" ? 443 : 80)
    return Substring(isUsual && !alwaysWithPort ? host : host + ":" + String(origin.port))
  }
}

extension RequestFields {
  /// Makes the fields of a request.
  ///
  /// - Parameter omitsExpect: Whether `Expect` is left out, because the server has refused it.
  package init(_ request: WireRequest, omitsExpect: Bool = false) throws(Violation) {
    // Trailers do not change the length here.
    let content = RequestHeadWriter.Content(request.parts.body)
    if content != .none || request.sendsTrailers,
      let violation = RequestHeadViolation.content(of: request.method)
    {
      throw .head(violation)
    }
    guard request.method != "CONNECT" else { throw .head(.connect) }
    var fields = request.fields
    if omitsExpect { fields.removeAll { FieldName.equal($0.name, "Expect") } }
    let length: Int64? =
      switch content {
      case .none: Self.meansContent(request.method) ? 0 : nil
      case .length(let length): length
      case .chunked: nil
      }
    try self.init(
      Control(method: request.method, origin: request.origin, target: Self.target(of: request.url)),
      fields: fields, contentLength: length, isChunked: RequestHeadWriter.Content(of: request).isChunked)
    do throws(RequestHeadViolation) {
      let names = RequestTrailerRules.announcedNames(of: request)
      if !names.isEmpty { appendField(try RequestTrailerRules.announcement(of: names)) }
    } catch {
      throw .head(error)
    }
  }

  /// Makes the trailer fields of a request.
  package init(trailers: [HTTPHeader]) throws(Violation) {
    self.init()
    do throws(RequestHeadViolation) {
      try RequestTrailerRules.check(trailers)
    } catch {
      throw .head(error)
    }
    for field in trailers { appendField(field) }
  }

  /// Whether a request with this method and without content says so (RFC 9110 §8.6).
  private static func meansContent(_ method: String) -> Bool {
    method == "POST" || method == "PUT" || method == "PATCH"
  }

  /// Returns path and query of an absolute URL.
  private static func target(of url: String) -> Substring {
    var url = url
    let (start, end) = url.withUTF8 { text in
      let end = text.firstIndex(of: UInt8(ascii: "#")) ?? text.count
      guard let colon = text[..<end].firstIndex(of: UInt8(ascii: ":")) else { return (end, end) }
      let rest = text[min(colon + 3, end)..<end]
      return (rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? end, end)
    }
    let text = url.utf8
    return url[text.index(text.startIndex, offsetBy: start)..<text.index(text.startIndex, offsetBy: end)]
  }

  /// The size of the head in the form of HTTP/1.1, in which metrics count it.
  package var lineSize: Int {
    // The request line and the empty line, without method and target.
    var size = 12
    forEach { name, value in
      guard name.first == UInt8(ascii: ":") else { return size += name.count + value.count + 4 }
      if FieldName.equal(name, lowercase: ":authority") {
        size += value.count + 8
      } else if !FieldName.equal(name, lowercase: ":scheme") {
        size += value.count
      }
    }
    return size
  }

  /// The fields as lines of HTTP/1.1, for observers; without pseudo-header fields, and with an empty line at the end.
  package var trailerLines: [UInt8] {
    var lines: [UInt8] = []
    forEach { name, value in
      lines += Array(name) + Array(": ".utf8) + Array(value) + Array("\r\n".utf8)
    }
    return lines + Array("\r\n".utf8)
  }

  /// The head in the form of HTTP/1.1, for observers.
  package var lines: [UInt8] {
    var control: [String: [UInt8]] = [:]
    var result: [UInt8] = []
    forEach { name, value in
      guard name.first == UInt8(ascii: ":") else {
        result += Array(name) + Array(": ".utf8) + Array(value) + Array("\r\n".utf8)
        return
      }
      control[String(decoding: name, as: UTF8.self)] = Array(value)
    }
    let method = control[":method"] ?? []
    let authority = control[":authority"] ?? []
    let target = control[":path"] ?? authority
    let start = method + Array(" ".utf8) + target + Array(" HTTP/2\r\nHost: ".utf8) + authority
    return start + Array("\r\n".utf8) + result + Array("\r\n".utf8)
  }
}
