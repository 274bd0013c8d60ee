import HTTPWire

/// The first line and the fields of a request (RFC 9112 §3, §5), as received.
struct RequestHead: Equatable, Sendable {
  var method: String
  var target: String
  /// 0 for HTTP/1.0, 1 for HTTP/1.1.
  var minorVersion: Int
  var headers: [HTTPHeader]

  /// Returns the value of the first field of this name.
  func value(_ name: String) -> String? {
    headers.first { FieldName.equal($0.name, name) }?.value
  }

  /// Whether one of the fields of this name lists this token (RFC 9110 §5.6.1).
  func lists(_ token: String, in name: String) -> Bool {
    headers.contains { header in
      FieldName.equal(header.name, name)
        && header.value.split(separator: ",").contains { FieldName.equal(trimmed($0), token) }
    }
  }

  /// Refuses a request that does not name its host exactly once (RFC 9112 §3.2). HTTP/1.0 allows a request without it.
  func checkHost() throws(RequestRefusal) {
    let count = headers.count { FieldName.equal($0.name, "Host") }
    guard count == 1 || (count == 0 && minorVersion == 0) else { throw .badHost(count: count) }
  }

  /// Whether the client lets the connection live on after this exchange (RFC 9112 §9.3).
  var keepsConnection: Bool {
    if lists("close", in: "Connection") { return false }
    return minorVersion >= 1 || lists("keep-alive", in: "Connection")
  }

  /// Whether the client waits for `100 Continue` before it sends its body (RFC 9110 §10.1.1).
  var expectsContinue: Bool {
    minorVersion >= 1 && lists("100-continue", in: "Expect")
  }
}

/// Returns a text without the spaces and tabs around it.
func trimmed(_ text: some StringProtocol) -> String {
  let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
  var rest = text.drop(while: isSpace)
  while let last = rest.last, isSpace(last) { rest = rest.dropLast() }
  return String(rest)
}

/// The parsed target of a request line (RFC 9112 §3.2).
struct RequestTarget: Equatable, Sendable {
  /// The path as it was sent; `*` for the asterisk form.
  let path: String
  /// The text after the first `?`, without a fragment.
  let query: String

  /// Reads the origin form (`/a?b`), the absolute form that a proxy gets (`http://host/a?b`), and
  /// takes anything else as a path.
  init(_ target: String) {
    var rest = target.prefix { $0 != "#" }
    if !rest.hasPrefix("/"), let scheme = rest.firstRange(of: "://") {
      let authorityAndPath = rest[scheme.upperBound...]
      let start = authorityAndPath.firstIndex { $0 == "/" || $0 == "?" } ?? authorityAndPath.endIndex
      rest = authorityAndPath[start...]
    }
    let path = rest.prefix { $0 != "?" }
    self.path = path.isEmpty ? "/" : String(path)
    query = String(rest.dropFirst(path.count + 1))
  }
}

/// The range of a `Range` field (RFC 9110 §14.2). Several ranges are answered with the whole body.
enum ByteRange: Equatable {
  case whole
  case part(Range<Int>)
  case unsatisfiable

  static func parse(_ field: String?, of length: Int) -> ByteRange {
    guard let field, field.lowercased().hasPrefix("bytes=") else { return .whole }
    let spec = trimmed(field.dropFirst(6))
    let ends = spec.split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2 else { return .whole }
    switch (RequestBodyDecoder.decimal(ends[0]), RequestBodyDecoder.decimal(ends[1])) {
    case (let first?, let last?):
      guard first <= last else { return .whole }
      return first < length ? .part(first..<min(last, length - 1) + 1) : .unsatisfiable
    case (let first?, nil) where ends[1].isEmpty:
      return first < length ? .part(first..<length) : .unsatisfiable
    case (nil, let count?) where ends[0].isEmpty:
      return count > 0 && length > 0 ? .part(max(0, length - count)..<length) : .unsatisfiable
    default:
      return .whole
    }
  }
}

/// A parser of request heads in the bytes received so far.
enum RequestHeadParser {
  /// The result of reading the beginning of a buffer.
  enum HeadOutcome: Equatable {
    /// The head is not complete yet.
    case incomplete
    /// A head, and its length in bytes.
    case head(RequestHead, length: Int)
  }

  /// The largest head that is read, in bytes, with the empty lines before it.
  static let limit = 256 * 1024

  /// Reads the head at the front of `bytes`. Empty lines before it are skipped, and a bare LF ends a
  /// line as CRLF does (RFC 9112 §2.2).
  static func parse(_ bytes: [UInt8]) throws(RequestRefusal) -> HeadOutcome {
    var start = 0
    while start < bytes.count, bytes[start] == 0x0D || bytes[start] == 0x0A { start += 1 }
    // The handshake of a TLS client may never hold a line end, and the client waits for an answer.
    if start < bytes.count, !isTokenByte(bytes[start]) {
      throw .badRequestLine("the first byte is \(bytes[start])")
    }
    var lines: [ArraySlice<UInt8>] = []
    var position = start
    while let end = bytes[position...].firstIndex(of: 0x0A) {
      let hasReturn = end > position && bytes[end - 1] == 0x0D
      let line = bytes[position..<(hasReturn ? end - 1 : end)]
      position = end + 1
      if line.isEmpty {
        return .head(try head(of: lines), length: position)
      }
      lines.append(line)
      if position > limit { throw .headTooLarge }
    }
    if bytes.count > limit { throw .headTooLarge }
    return .incomplete
  }

  private static func head(of lines: [ArraySlice<UInt8>]) throws(RequestRefusal) -> RequestHead {
    let requestLine = text(of: lines.first ?? [])
    let parts = requestLine.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 3, !parts[0].isEmpty, !parts[1].isEmpty, parts[0].utf8.allSatisfy(isTokenByte)
    else { throw .badRequestLine(requestLine) }
    var head = RequestHead(
      method: String(parts[0]), target: String(parts[1]), minorVersion: try minorVersion(of: parts[2]),
      headers: [])
    head.headers.reserveCapacity(lines.count - 1)
    for line in lines.dropFirst() { head.headers.append(try field(of: line)) }
    return head
  }

  private static func minorVersion(of text: Substring) throws(RequestRefusal) -> Int {
    switch text {
    case "HTTP/1.1": return 1
    case "HTTP/1.0": return 0
    default:
      throw text.hasPrefix("HTTP/")
        ? .unsupportedVersion(String(text)) : .badRequestLine(String(text))
    }
  }

  private static func field(of line: ArraySlice<UInt8>) throws(RequestRefusal) -> HTTPHeader {
    guard let colon = line.firstIndex(of: 0x3A), colon > line.startIndex,
      line[..<colon].allSatisfy(isTokenByte)
    else { throw .badField(text(of: line)) }
    return HTTPHeader(
      name: text(of: line[..<colon]), value: trimmed(text(of: line[(colon + 1)...])))
  }

  /// Decodes UTF-8, or ISO Latin 1 where the bytes are not UTF-8, so that none is lost.
  static func text(of bytes: ArraySlice<UInt8>) -> String {
    String(validating: bytes, as: UTF8.self)
      ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
  }

  /// Whether a token may hold the byte (RFC 9110 §5.6.2).
  static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: true
    default: false
    }
  }
}

/// The reason why bytes are not a request that the server can answer; each is answered with its status.
enum RequestRefusal: Error, Equatable, Sendable {
  case badRequestLine(String)
  case badField(String)
  /// The number of fields `Host` is wrong.
  case badHost(count: Int)
  case badLength(String)
  case badFraming(String)
  case badChunk(String)
  case headTooLarge
  case unsupportedVersion(String)
  case unsupportedCoding(String)

  var status: Int {
    switch self {
    case .badRequestLine, .badField, .badHost, .badLength, .badFraming, .badChunk: 400
    case .headTooLarge: 431
    case .unsupportedVersion: 505
    case .unsupportedCoding: 501
    }
  }

  var text: String {
    switch self {
    case .badRequestLine(let line): "not a request line: \(line)"
    case .badField(let line): "not a header field: \(line)"
    case .badHost(let count): "the request has \(count) fields Host instead of one"
    case .badLength(let value): "not a length: \(value)"
    case .badFraming(let text): "ambiguous framing: \(text)"
    case .badChunk(let line): "not a chunk: \(line)"
    case .headTooLarge: "the head of the request is too large"
    case .unsupportedVersion(let version): "unsupported version: \(version)"
    case .unsupportedCoding(let coding): "unsupported transfer coding: \(coding)"
    }
  }
}

/// A decoder that takes the body of one request out of the bytes of its connection (RFC 9112 §6, §7.1).
///
/// ``feed(_:)`` takes bytes and returns the bytes of the body. Bytes after the body are left.
struct RequestBodyDecoder: Sendable {
  private enum State: Equatable, Sendable {
    /// The number of remaining bytes of a body of known length.
    case length(Int)
    /// The line with the size of the next chunk is to come.
    case chunkSize
    /// The number of remaining bytes of a chunk.
    case chunk(Int)
    /// The line end after a chunk is expected.
    case chunkEnd
    /// Trailer fields, up to the empty line.
    case trailers
    case done
  }

  private var state: State
  /// The part of a line received so far.
  private var line: [UInt8] = []
  /// Whether the body comes in chunks.
  let isChunked: Bool
  /// The fields after the last chunk.
  private(set) var trailers: [HTTPHeader] = []

  /// Decides by the head how the body is framed (RFC 9112 §6.3).
  init(_ head: RequestHead) throws(RequestRefusal) {
    let codings = head.headers.filter { FieldName.equal($0.name, "Transfer-Encoding") }.map(\.value)
    let lengths = head.headers.filter { FieldName.equal($0.name, "Content-Length") }.map(\.value)
    if !codings.isEmpty {
      // A proxy could see another request there (RFC 9112 §6.1, §11.2).
      guard lengths.isEmpty else { throw .badFraming("Content-Length beside Transfer-Encoding") }
      guard head.minorVersion > 0 else { throw .badFraming("Transfer-Encoding in HTTP/1.0") }
      guard codings.count == 1, FieldName.equal(trimmed(codings[0]), "chunked") else {
        throw .unsupportedCoding(codings.joined(separator: ", "))
      }
      isChunked = true
      state = .chunkSize
      return
    }
    isChunked = false
    guard let first = lengths.first else {
      state = .done
      return
    }
    guard lengths.allSatisfy({ $0 == first }), let length = Self.decimal(first) else {
      throw .badLength(lengths.joined(separator: ", "))
    }
    state = length == 0 ? .done : .length(length)
  }

  /// Whether the whole body was received.
  var isComplete: Bool { state == .done }

  /// Consumes bytes from the front of `bytes`, and appends their content to `body`.
  ///
  /// Returns how many bytes were consumed; fewer than given only if the body is complete.
  mutating func feed(_ bytes: ArraySlice<UInt8>, into body: inout [UInt8]) throws(RequestRefusal) -> Int {
    var rest = bytes
    while !rest.isEmpty {
      switch state {
      case .done:
        return bytes.count - rest.count
      case .length(let count):
        let taken = rest.prefix(count)
        body += taken
        rest = rest.dropFirst(taken.count)
        state = taken.count == count ? .done : .length(count - taken.count)
      case .chunk(let count):
        let taken = rest.prefix(count)
        body += taken
        rest = rest.dropFirst(taken.count)
        state = taken.count == count ? .chunkEnd : .chunk(count - taken.count)
      case .chunkSize, .chunkEnd, .trailers:
        if let text = try takeLine(from: &rest) { try lineCame(text) }
      }
    }
    return bytes.count
  }

  private mutating func lineCame(_ text: String) throws(RequestRefusal) {
    switch state {
    case .chunkSize:
      let digits = trimmed(text.prefix { $0 != ";" })
      guard !digits.isEmpty, digits.count <= 15, digits.allSatisfy(\.isHexDigit),
        let size = Int(digits, radix: 16)
      else { throw .badChunk(text) }
      state = size == 0 ? .trailers : .chunk(size)
    case .chunkEnd:
      guard text.isEmpty else { throw .badChunk(text) }
      state = .chunkSize
    case .trailers:
      guard !text.isEmpty else {
        state = .done
        return
      }
      guard let colon = text.firstIndex(of: ":"), colon > text.startIndex else { throw .badField(text) }
      let value = trimmed(text[text.index(after: colon)...])
      trailers.append(HTTPHeader(name: String(text[..<colon]), value: value))
    case .length, .chunk, .done:
      preconditionFailure("a line cannot come in the state \(state)")
    }
  }

  private mutating func takeLine(from rest: inout ArraySlice<UInt8>) throws(RequestRefusal) -> String? {
    guard let end = rest.firstIndex(of: 0x0A) else {
      line += rest
      rest = []
      if line.count > 16 * 1024 { throw .headTooLarge }
      return nil
    }
    line += rest[..<end]
    rest = rest[(end + 1)...]
    if line.last == 0x0D { line.removeLast() }
    defer { line.removeAll(keepingCapacity: true) }
    return RequestHeadParser.text(of: line[...])
  }

  /// Returns the number that decimal digits alone are: no sign, no space.
  static func decimal(_ text: some StringProtocol) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
    return Int(text)
  }
}
