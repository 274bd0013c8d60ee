/// Writes the head of a request of HTTP/1.1 (RFC 9112 §3, §5): the request line, `Host`, the fields of the request, and
/// the field that delimits its content.
///
/// The fields keep their order, spelling and repetition. It writes no text that could be read as another field or
/// another request. The API above has checked the rules already; they are checked again here.
package struct RequestHeadWriter: Sendable {
  /// The form of the request target (RFC 9112 §3.2).
  package enum TargetForm: Sendable, Equatable {
    /// Path and query, for an origin server or a tunnel.
    case origin
    /// The URL without user, password and fragment, for a proxy that forwards the request.
    case absolute
    /// `*`, for `OPTIONS` that concern the server as a whole.
    case asterisk
    /// Host and port, for `CONNECT`.
    case authority
  }

  /// The content of the request as its head announces it.
  package enum Content: Sendable, Equatable {
    case none
    case length(Int64)
    /// The content is sent in chunks, because its length is unknown.
    case chunked

    package var isEmpty: Bool {
      switch self {
      case .none, .length(0): true
      case .length, .chunked: false
      }
    }

    package var isChunked: Bool { if case .chunked = self { true } else { false } }
  }

  /// The facts about a written head that its exchange needs.
  package struct Summary: Sendable, Equatable {
    /// The number of bytes of the head.
    package var size = 0
    /// Whether the content waits for the response 100 (RFC 9110 §10.1.1).
    package var expectsContinue = false
    /// Whether the server may switch to another protocol (RFC 9110 §7.8).
    package var asksForUpgrade = false
    /// Whether the connection ends with the response (RFC 9112 §9.6).
    package var closesConnection = false

    package init() {}
  }

  /// The largest head that is written.
  package static var largestHead: Int { 1_000_000 }

  private let method: String
  private let url: String
  private let origin: Origin
  private let fields: [HTTPHeader]
  /// The content that the head announces.
  package let content: Content
  private let form: TargetForm
  /// Whether the field `Expect` is left out, because the server has refused it with 417.
  private let omitsExpect: Bool
  /// The names of the trailer fields that the field `Trailer` announces.
  private let trailerNames: [String]

  /// Makes the writer of a request.
  ///
  /// - Parameter url: The absolute URL of `origin`, ASCII only. Only its path and query are read.
  package init(
    method: String, url: String, origin: Origin, fields: [HTTPHeader], content: Content, form: TargetForm,
    omitsExpect: Bool = false, trailerNames: [String] = []
  ) {
    self.method = method
    self.url = url
    self.origin = origin
    self.fields = fields
    self.content = content
    self.form = form
    self.omitsExpect = omitsExpect
    self.trailerNames = trailerNames
  }

  /// Makes the writer of a request.
  ///
  /// - Parameters:
  ///   - loginFields: The fields with the credentials for the server, or for the proxy that forwards the request.
  ///   - withholdsContent: Whether the request is sent as one with empty content, because its response only continues
  ///     a login.
  package init(
    _ request: WireRequest, form: TargetForm, omitsExpect: Bool = false, loginFields: [HTTPHeader] = [],
    withholdsContent: Bool = false
  ) {
    let content = Content(of: request)
    var fields = loginFields.isEmpty ? request.fields : request.fields + loginFields
    if request.sendsTrailers { Self.removeLength(request.body.count, from: &fields) }
    let withholds = withholdsContent && content != .none
    if withholds { fields.removeAll(where: Self.describesContent) }
    self.init(
      method: request.method, url: request.url, origin: request.origin, fields: fields,
      content: withholds ? .length(0) : content, form: form, omitsExpect: omitsExpect,
      trailerNames: withholds ? [] : RequestTrailerRules.announcedNames(of: request))
  }

  /// Removes a correct length from the fields of content that is sent in chunks because trailers follow it.
  private static func removeLength(_ length: Int64, from fields: inout [HTTPHeader]) {
    fields.removeAll { FieldName.equal($0.name, "Content-Length") && $0.value == String(length) }
  }

  /// Whether a field delimits the content, or asks whether it may be sent.
  private static func describesContent(_ field: HTTPHeader) -> Bool {
    ["Content-Length", "Transfer-Encoding", "Expect"].contains { FieldName.equal(field.name, $0) }
  }

  /// Makes the writer of a `CONNECT` request (RFC 9110 §9.3.6), which has only `Host` and the fields for the proxy.
  package init(tunnelTo origin: Origin, fields: [HTTPHeader]) {
    self.init(
      method: "CONNECT", url: "", origin: origin, fields: fields, content: .none, form: .authority)
  }

  /// Appends the head to `buffer`. After an error `buffer` is unchanged.
  package func write(into buffer: inout [UInt8]) throws(RequestHeadViolation) -> Summary {
    var memory = RequestHeadMemory()
    return try write(into: &buffer, &memory)
  }

  /// Appends the head to `buffer`, and copies the fields if `memory` knows them. After an error `buffer` is unchanged.
  ///
  /// - Parameter memory: The fields of the last request that was written with it.
  package func write(
    into buffer: inout [UInt8], _ memory: inout RequestHeadMemory
  ) throws(RequestHeadViolation) -> Summary {
    guard method != "CONNECT" || form == .authority else { throw .connect }
    let start = buffer.count
    do throws(RequestHeadViolation) {
      var output = RequestHeadOutput(limit: Self.largestHead, start: start)
      try writeRequestLine(into: &buffer, &output)
      if omitsExpect || !memory.append(fields, of: origin, to: &buffer) {
        let lines = buffer.count
        try writeHost(into: &buffer, &output)
        try writeFields(into: &buffer, &output)
        let isPlain =
          !output.hasFraming && output.summary == Summary() && !omitsExpect && !output.dropsExpect
        memory.note(fields, of: origin, buffer[lines...], isPlain: isPlain)
      }
      if !trailerNames.isEmpty {
        try output.append(RequestTrailerRules.announcement(of: trailerNames), to: &buffer)
      }
      try writeFraming(into: &buffer, &output)
      output.append("\r\n", to: &buffer)
      output.summary.size = buffer.count - start
      guard output.summary.size <= Self.largestHead else { throw .tooLarge }
      return output.summary
    } catch {
      buffer.removeSubrange(start...)
      throw error
    }
  }

  /// Returns the request target in the form that is written; an empty text if it is invalid.
  package var target: String {
    var line: [UInt8] = []
    var output = RequestHeadOutput(limit: Self.largestHead, start: 0)
    guard (try? writeRequestLine(into: &line, &output)) != nil else { return "" }
    let words = line.split(separator: UInt8(ascii: " "), maxSplits: 2)
    return words.count > 1 ? String(decoding: words[1], as: UTF8.self) : ""
  }

  private func writeRequestLine(
    into buffer: inout [UInt8], _ output: inout RequestHeadOutput
  ) throws(RequestHeadViolation) {
    guard HeaderFieldRules.isToken(method) else { throw .field(.method(method)) }
    if content != .none, let violation = RequestHeadViolation.content(of: method) { throw violation }
    try output.append(text: method, to: &buffer)
    output.append(" ", to: &buffer)
    let target = buffer.count
    switch form {
    case .origin: try output.append(pathOf: url, to: &buffer)
    case .absolute:
      try output.append(text: origin.scheme, to: &buffer)
      output.append("://", to: &buffer)
      try writeAuthority(into: &buffer, &output)
      try output.append(pathOf: url, to: &buffer)
    case .asterisk: output.append("*", to: &buffer)
    case .authority: try writeAuthority(into: &buffer, &output)
    }
    try Self.checkTarget(buffer, from: target)
    output.append(" HTTP/1.1\r\n", to: &buffer)
  }

  private static func checkTarget(_ buffer: [UInt8], from start: Int) throws(RequestHeadViolation) {
    if let byte = buffer[start...].first(where: { $0 < 0x21 || $0 > 0x7E }) { throw .target(byte) }
  }

  /// Writes host and port. The default port is left out, except for `CONNECT`. The zone of an address is left out,
  /// because it has a meaning on this machine alone (RFC 6874 §4).
  private func writeAuthority(
    into buffer: inout [UInt8], _ output: inout RequestHeadOutput
  ) throws(RequestHeadViolation) {
    if origin.host.utf8.contains(UInt8(ascii: ":")) {
      output.append("[", to: &buffer)
      let zone = origin.host.utf8.firstIndex(of: UInt8(ascii: "%")) ?? origin.host.utf8.endIndex
      buffer.append(contentsOf: origin.host.utf8[..<zone])
      output.append("]", to: &buffer)
    } else {
      try output.append(text: origin.host, to: &buffer)
    }
    guard form == .authority || origin.port != (origin.scheme == "https" ? 443 : 80) else { return }
    output.append(":", to: &buffer)
    output.append(number: Int64(origin.port), to: &buffer)
  }

  /// Writes `Host` as the first field (RFC 9110 §7.2). A given one wins over the host of the URL.
  private func writeHost(
    into buffer: inout [UInt8], _ output: inout RequestHeadOutput
  ) throws(RequestHeadViolation) {
    if let given = fields.first(where: { RequestHeadOutput.isHost($0) }) {
      return try output.append(given, to: &buffer)
    }
    output.append("Host: ", to: &buffer)
    let start = buffer.count
    try writeAuthority(into: &buffer, &output)
    try Self.checkTarget(buffer, from: start)
    output.append("\r\n", to: &buffer)
  }

  private func writeFields(
    into buffer: inout [UInt8], _ output: inout RequestHeadOutput
  ) throws(RequestHeadViolation) {
    for field in fields {
      switch field.name.utf8.count {
      case 2 where FieldName.equal(field.name, "TE"): output.hasTE = true
      case 4 where RequestHeadOutput.isHost(field): continue
      case 6 where FieldName.equal(field.name, "Expect"):
        if omitsExpect { continue }
        if FieldName.equal(field.value, "100-continue") {
          // Without content, there is nothing to wait with (RFC 9110 §10.1.1).
          output.dropsExpect = content.isEmpty
          if content.isEmpty { continue }
          output.summary.expectsContinue = true
        }
      case 7 where FieldName.equal(field.name, "Upgrade"): output.summary.asksForUpgrade = true
      case 10 where FieldName.equal(field.name, "Connection"):
        if RequestHeadOutput.lists("close", field.value) { output.summary.closesConnection = true }
        if RequestHeadOutput.lists("te", field.value) { output.namesTE = true }
        if RequestHeadOutput.lists("upgrade", field.value) { output.namesUpgrade = true }
      case 14 where FieldName.equal(field.name, "Content-Length"):
        guard let length = announcedLength, field.value == String(length), !output.hasFraming else {
          throw .contradictingFraming("Content-Length")
        }
        output.hasFraming = true
      case 17 where FieldName.equal(field.name, "Transfer-Encoding"):
        guard content == .chunked, FieldName.equal(field.value, "chunked"), !output.hasFraming else {
          throw .contradictingFraming("Transfer-Encoding")
        }
        output.hasFraming = true
      default: break
      }
      try output.append(field, to: &buffer)
    }
    // TE and Upgrade concern the next server alone, which learns that from Connection (RFC 9110 §7.8, §10.1.4).
    if output.hasTE, !output.namesTE { output.append("Connection: TE\r\n", to: &buffer) }
    if output.summary.asksForUpgrade, !output.namesUpgrade {
      output.append("Connection: Upgrade\r\n", to: &buffer)
    }
  }

  private func writeFraming(
    into buffer: inout [UInt8], _ output: inout RequestHeadOutput
  ) throws(RequestHeadViolation) {
    guard !output.hasFraming else { return }
    switch announced {
    case .none: break
    case .length(let length):
      output.append("Content-Length: ", to: &buffer)
      output.append(number: length, to: &buffer)
      output.append("\r\n", to: &buffer)
    case .chunked: output.append("Transfer-Encoding: chunked\r\n", to: &buffer)
    }
  }

  private var announcedLength: Int64? {
    switch announced {
    case .none: 0
    case .length(let length): length
    case .chunked: nil
    }
  }

  /// The content that the head announces. Methods that define a meaning for content announce an empty one, too (RFC
  /// 9110 §8.6).
  private var announced: Content {
    guard content == .none else { return content }
    switch method {
    case "POST", "PUT", "PATCH": return .length(0)
    default: return .none
    }
  }
}

extension RequestHeadWriter.Content {
  /// Makes the content of a body. Empty data are like no body; an empty source is announced.
  package init(_ body: RequestBody) {
    switch body.count {
    case ..<0: self = .chunked
    case 0: self = body.source != nil ? .length(0) : .none
    case let count: self = .length(count)
    }
  }

  /// Makes the content of a request, without a copy of its body.
  package init(of request: WireRequest) {
    if request.sendsTrailers { self = .chunked } else { self.init(request.parts.body) }
  }
}

/// The state of writing one head.
private struct RequestHeadOutput {
  let limit: Int
  let start: Int
  var summary = RequestHeadWriter.Summary()
  /// Whether one of the caller's fields delimits the content.
  var hasFraming = false
  /// Whether the request has a field `TE`, and whether `Connection` names it.
  var hasTE = false
  var namesTE = false
  /// Whether `Connection` names `Upgrade`.
  var namesUpgrade = false
  /// Whether the field `Expect` was left out, because the request has no content.
  var dropsExpect = false

  static func isHost(_ field: HTTPHeader) -> Bool {
    field.name.utf8.count == 4 && FieldName.equal(field.name, "Host")
  }

  /// Whether a list of tokens contains `token`, which has no capitals.
  static func lists(_ token: StaticString, _ list: String) -> Bool {
    list.utf8.split(separator: UInt8(ascii: ",")).contains { element in
      let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
      var element = element.drop(while: isSpace)
      while let last = element.last, isSpace(last) { element = element.dropLast() }
      return element.count == token.utf8CodeUnitCount
        && element.enumerated().allSatisfy { FieldName.lowercased($1) == token.utf8Start[$0] }
    }
  }

  func append(_ text: StaticString, to buffer: inout [UInt8]) {
    buffer.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  func append(text: String, to buffer: inout [UInt8]) throws(RequestHeadViolation) {
    guard text.utf8.count <= limit - (buffer.count - start) else { throw .tooLarge }
    var text = text
    text.withUTF8 { buffer.append(contentsOf: $0) }
  }

  /// Appends a field after checking it. A field without a value has no blank at its end.
  func append(_ field: HTTPHeader, to buffer: inout [UInt8]) throws(RequestHeadViolation) {
    var (name, value) = (field.name, field.value)
    guard name.utf8.count + value.utf8.count <= limit - (buffer.count - start) else { throw .tooLarge }
    let violation = name.withUTF8 { name in
      value.withUTF8 { Self.append(name, $0, to: &buffer) }
    }
    switch violation {
    case .name: throw .field(.name(field.name))
    case .value(let byte): throw .field(.value(field: field.name, character: byte))
    case nil: break
    }
  }

  private enum FieldViolation {
    case name
    case value(UInt8)
  }

  private static func append(
    _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>, to buffer: inout [UInt8]
  ) -> FieldViolation? {
    guard HeaderFieldRules.isToken(name) else { return .name }
    if let byte = HeaderFieldRules.forbiddenByte(in: UnsafeRawBufferPointer(value)) { return .value(byte) }
    FieldLine.append(name, value.isEmpty ? ":" : ": ", value, to: &buffer)
    return nil
  }

  /// Appends path and query of an absolute URL, with a slash in front if the path is empty.
  func append(pathOf url: String, to buffer: inout [UInt8]) throws(RequestHeadViolation) {
    var url = url
    guard url.utf8.count <= limit - (buffer.count - start) else { throw .tooLarge }
    url.withUTF8 { text in
      let scheme = text.firstIndex(of: UInt8(ascii: ":")) ?? text.count
      let rest = text[min(scheme + 3, text.count)...]
      let begin = rest.firstIndex { $0 == 0x2F || $0 == 0x3F || $0 == 0x23 } ?? rest.endIndex
      let path = rest[begin...].prefix { $0 != UInt8(ascii: "#") }
      if path.first != UInt8(ascii: "/") { append("/", to: &buffer) }
      buffer.append(contentsOf: path)
    }
  }

  func append(number: Int64, to buffer: inout [UInt8]) {
    let number = UInt64(clamping: number)
    var divisor: UInt64 = 1
    while number / divisor >= 10 { divisor *= 10 }
    while divisor > 0 {
      buffer.append(UInt8(ascii: "0") + UInt8(number / divisor % 10))
      divisor /= 10
    }
  }
}
