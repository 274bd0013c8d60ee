import HTTPWire

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
