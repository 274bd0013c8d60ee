/// Writes the framing of content that is sent in chunks (RFC 9112 §7.1).
package enum RequestChunks {
  /// The largest number of bytes of a chunk size line.
  package static var longestSizeLine: Int { 18 }
  /// The line break after the content of a chunk.
  package static var chunkEnd: StaticString { "\r\n" }
  /// The line of the last chunk, which the trailer section follows.
  package static var lastChunk: StaticString { "0\r\n" }

  /// Writes the size line of a chunk of `count` bytes so that it ends at `end`, right before the content that a source
  /// has written there. Returns the position at which the line begins.
  ///
  /// - Parameters:
  ///   - count: At least 1, because a chunk without content would end the body.
  ///   - end: At least ``longestSizeLine``.
  package static func writeSizeLine(
    of count: Int, before end: Int, in buffer: UnsafeMutableRawBufferPointer
  ) -> Int {
    precondition(
      count > 0 && end >= longestSizeLine && end <= buffer.count, "a size line of \(count) bytes at \(end)")
    buffer[end - 1] = 0x0A
    buffer[end - 2] = 0x0D
    var position = end - 2
    var rest = count
    while rest > 0 {
      position -= 1
      buffer[position] = digit(rest & 0xF)
      rest >>= 4
    }
    return position
  }

  /// Appends the size line of a chunk of `count` bytes, which is at least 1.
  package static func appendSizeLine(of count: Int, to buffer: inout [UInt8]) {
    precondition(count > 0, "a chunk without content ends the body")
    var shift = (Int.bitWidth - 1 - count.leadingZeroBitCount) / 4 * 4
    while shift >= 0 {
      buffer.append(digit(count >> shift & 0xF))
      shift -= 4
    }
    append(chunkEnd, to: &buffer)
  }

  /// Appends the last chunk and the trailer section. After an error `buffer` is unchanged.
  package static func appendEnd(
    trailers: [HTTPHeader] = [], to buffer: inout [UInt8]
  ) throws(RequestHeadViolation) {
    if !trailers.isEmpty { try RequestTrailerRules.check(trailers) }
    append(lastChunk, to: &buffer)
    for field in trailers {
      buffer.append(contentsOf: field.name.utf8)
      append(field.value.isEmpty ? ":" : ": ", to: &buffer)
      buffer.append(contentsOf: field.value.utf8)
      append(chunkEnd, to: &buffer)
    }
    append(chunkEnd, to: &buffer)
  }

  private static func append(_ text: StaticString, to buffer: inout [UInt8]) {
    buffer.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  private static func digit(_ value: Int) -> UInt8 {
    UInt8(truncatingIfNeeded: value < 10 ? 0x30 + value : 0x61 - 10 + value)
  }
}

/// The rules for the trailer fields of requests, in all versions of HTTP.
enum RequestTrailerRules {
  /// Fields of framing, routing, authentication and content, and request modifiers. A server needs them before it reads
  /// the content, or must not take them from a trailer section (RFC 9110 §6.5.1).
  private static let forbidden: [String] = [
    "Transfer-Encoding", "Content-Length", "Host", "Trailer", "TE", "Connection", "Keep-Alive",
    "Proxy-Connection", "Upgrade", "HTTP2-Settings", "Expect", "Content-Encoding", "Content-Type",
    "Content-Range", "Authorization", "Proxy-Authorization", "Proxy-Authenticate", "WWW-Authenticate",
    "Cookie", "Set-Cookie", "Cache-Control", "Pragma", "Max-Forwards", "Range", "If-Match", "If-None-Match",
    "If-Modified-Since", "If-Unmodified-Since", "If-Range",
  ]

  /// Throws if the fields cannot be sent after the content.
  static func check(_ fields: [HTTPHeader]) throws(RequestHeadViolation) {
    do throws(HeaderFieldRules.Violation) {
      try HeaderFieldRules.validate(method: "POST", fields: fields)
    } catch {
      throw .field(error)
    }
    for field in fields { try checkName(field.name) }
    let size = fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
    guard size <= RequestHeadWriter.largestHead else { throw .tooLarge }
  }

  /// Returns the names that the field `Trailer` of a request lists; none if the caller has given such a field.
  static func announcedNames(of request: WireRequest) -> [String] {
    guard request.sendsTrailers, let names = request.trailers?.names, !names.isEmpty,
      !request.fields.contains(where: { FieldName.equal($0.name, "Trailer") })
    else { return [] }
    return names
  }

  /// Returns the field `Trailer` with these names.
  static func announcement(of names: [String]) throws(RequestHeadViolation) -> HTTPHeader {
    for name in names {
      guard HeaderFieldRules.isToken(name) else { throw .field(.name(name)) }
      try checkName(name)
    }
    return HTTPHeader(name: "Trailer", value: names.joined(separator: ", "))
  }

  private static func checkName(_ name: String) throws(RequestHeadViolation) {
    if forbidden.contains(where: { FieldName.equal($0, name) }) { throw .trailer(name) }
  }
}
