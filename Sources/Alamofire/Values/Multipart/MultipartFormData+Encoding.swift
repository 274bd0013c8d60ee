public import Foundation
import HTTPWire

extension MultipartFormData {
  /// Encodes the form in memory.
  ///
  /// It needs as much memory as the body is long. The bytes of streams are retained, so that the form can be encoded
  /// again; this takes as much memory again as they are long.
  ///
  /// - Returns: The body: for a form without parts, only the closing boundary.
  /// - Throws: ``AFError/multipartEncodingFailed(reason:)`` with the first failure of appending a part, or
  ///   `.inputStreamReadFailed` with an ``AFError/UnexpectedInputStreamLength`` for a length that differs.
  public func encode() throws -> Data {
    try check()
    var buffer = Self.makeBuffer()
    for index in parts.indices { try keepStream(at: index, &buffer) }
    var memory = MultipartMemory(capacity: encodedLength)
    try encode(into: &memory, &buffer)
    return memory.data
  }

  /// Encodes the form into a new file, with mode 0666 before the process's umask.
  ///
  /// Files and streams are copied in chunks of 128 KiB, so that they need no more memory. If the encoding fails, the
  /// file is removed.
  ///
  /// - Parameter fileURL: The path of the new file. Its folder must exist, the file must not.
  /// - Throws: ``AFError/multipartEncodingFailed(reason:)`` with the first failure, which may be one of appending a
  ///   part. `.outputStreamFileAlreadyExists` if the file exists. `.outputStreamURLInvalid` for a URL that is not a
  ///   file URL. `.outputStreamWriteFailed` if the folder is missing or the disk is full. `.inputStreamReadFailed` if a
  ///   part cannot be read, has another length, or is a stream that was read before.
  public func writeEncodedData(to fileURL: URL) throws {
    try write(to: fileURL, permissions: 0o666)
  }

  /// Encodes the form into a new file.
  ///
  /// - Parameter permissions: The mode of the new file, before the process's umask.
  func write(to fileURL: URL, permissions: UInt32) throws {
    try check()
    guard !fileManager.fileExists(atPath: fileURL.path) else {
      throw AFError.multipartEncodingFailed(reason: .outputStreamFileAlreadyExists(at: fileURL))
    }
    guard fileURL.isFileURL else {
      throw AFError.multipartEncodingFailed(reason: .outputStreamURLInvalid(url: fileURL))
    }
    var buffer = Self.makeBuffer()
    try MultipartFile.create(fileURL, permissions: permissions, fileManager) { file in
      try encode(into: &file, &buffer)
    }
  }

  /// Whether a stream was read that was not kept, so that the form cannot be encoded again.
  var isSpent: Bool {
    parts.contains { part in
      if case .spent = part.content { true } else { false }
    }
  }

  /// Throws known failures before any stream is read.
  private func check() throws(AFError) {
    if let failure { throw failure }
    guard MultipartBoundary.isValid(boundary) else {
      let error = AFError.MultipartFormFailure.boundary(boundary)
      throw .multipartEncodingFailed(reason: .outputStreamWriteFailed(error: error))
    }
    for part in parts {
      if case .spent(let error) = part.content { throw error }
    }
  }

  private func encode(into sink: inout some MultipartSink, _ buffer: inout [UInt8]) throws {
    var delimiter = Array("--\(boundary)\r\n".utf8)
    for index in parts.indices {
      try delimiter.withUnsafeBytes { try sink.write($0) }
      try parts[index].head.withUnsafeBytes { try sink.write($0) }
      try writeContent(at: index, to: &sink, &buffer)
      if index == 0 { delimiter = Array("\r\n--\(boundary)\r\n".utf8) }
    }
    let end = Array("\(parts.isEmpty ? "" : "\r\n")--\(boundary)--\r\n".utf8)
    try end.withUnsafeBytes { try sink.write($0) }
  }

  private func writeContent(
    at index: Int, to sink: inout some MultipartSink, _ buffer: inout [UInt8]
  ) throws {
    let part = parts[index]
    switch part.content {
    case .data(let data):
      try data.withUnsafeBytes { try sink.write($0) }
    case .file(let url):
      // The file may have been removed since it was appended.
      _ = try MultipartFile.length(of: url, fileManager)
      guard let stream = InputStream(url: url) else {
        throw AFError.multipartEncodingFailed(reason: .bodyPartInputStreamCreationFailed(for: url))
      }
      try stream.readToEnd(length: part.length, buffer: &buffer) { try sink.write($0) }
    case .stream(let stream):
      try readOnce(stream, at: index, &buffer) { try sink.write($0) }
    case .spent(let error):
      throw error
    }
  }

  /// Replaces a stream with its bytes.
  private func keepStream(at index: Int, _ buffer: inout [UInt8]) throws {
    guard case .stream(let stream) = parts[index].content else { return }
    // The declared length may be wrong, so only a limited capacity is reserved.
    var memory = MultipartMemory(capacity: min(parts[index].length, Self.encodingMemoryThreshold))
    try readOnce(stream, at: index, &buffer) { memory.write($0) }
    parts[index].content = .data(memory.data)
  }

  /// Reads a stream. The stream counts as read from the first byte on, whatever the outcome; a later encoding throws
  /// the same failure.
  private func readOnce(
    _ stream: InputStream, at index: Int, _ buffer: inout [UInt8],
    consume: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    let alreadyRead = AFError.MultipartFormFailure.alreadyRead
    parts[index].content = .spent(
      .multipartEncodingFailed(reason: .inputStreamReadFailed(error: alreadyRead)))
    do {
      try stream.readToEnd(length: parts[index].length, buffer: &buffer, consume: consume)
    } catch let error as AFError {
      if case .multipartEncodingFailed(.inputStreamReadFailed) = error {
        parts[index].content = .spent(error)
      }
      throw error
    }
  }

  /// The length of the body, or `UInt64.max` if it overflows.
  private var encodedLength: UInt64 {
    let framing = parts.reduce(boundary.utf8.count + 8) { $0 + $1.head.count + boundary.utf8.count + 6 }
    let (sum, overflow) = contentLength.addingReportingOverflow(UInt64(framing))
    return overflow ? .max : sum
  }

  private static func makeBuffer() -> [UInt8] {
    [UInt8](repeating: 0, count: InputStream.chunkSize)
  }
}

/// The head of a part: its fields and the delimiters between them (RFC 7578 §4.2, RFC 2046 §5.1).
enum MultipartHead {
  static func headers(name: String, fileName: String?, mimeType: String?) -> HTTPHeaders {
    var disposition = "form-data; name=\"\(escaped(name))\""
    if let fileName { disposition += "; filename=\"\(escaped(fileName))\"" }
    var headers = HTTPHeaders([.contentDisposition(disposition)])
    if let mimeType { headers.add(.contentType(mimeType)) }
    return headers
  }

  /// Returns a name for use between quotation marks: `"` and control characters become `%XX`.
  ///
  /// Browsers escape `"`, CR and LF in this way (WHATWG HTML, "Multipart form data"). The other control characters are
  /// escaped because no field may contain them (RFC 9110 §5.5). So is a backslash at the end, because many parsers
  /// interpret it and the closing quotation mark as an escape (RFC 9110 §5.6.4).
  static func escaped(_ name: String) -> String {
    guard name.utf8.contains(where: mustEscape) || name.utf8.last == UInt8(ascii: "\\") else { return name }
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for (index, byte) in zip(name.utf8.indices, name.utf8) {
      let endsWithBackslash =
        byte == UInt8(ascii: "\\") && name.utf8.index(after: index) == name.utf8.endIndex
      if mustEscape(byte) || endsWithBackslash {
        bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Returns the bytes of the fields, with the empty line after them.
  ///
  /// - Throws: An error if a field could add another one.
  static func bytes(of headers: HTTPHeaders) throws(AFError.MultipartFormFailure) -> [UInt8] {
    do {
      try HeaderFieldRules.validate(method: "POST", fields: Array(headers))
    } catch {
      throw AFError.MultipartFormFailure(.invalidHeaderField, error.message)
    }
    var bytes: [UInt8] = []
    for header in headers { bytes += "\(header.name): \(header.value)\r\n".utf8 }
    bytes += "\r\n".utf8
    return bytes
  }

  private static func mustEscape(_ byte: UInt8) -> Bool {
    byte < 0x20 || byte == 0x22 || byte == 0x7F
  }
}

/// The delimiter between the parts of a form (RFC 2046 §5.1.1).
enum MultipartBoundary {
  static func random() -> String {
    String(
      format: "alamofire.boundary.%08x%08x", UInt32.random(in: 0...(.max)), UInt32.random(in: 0...(.max)))
  }

  /// Returns whether a boundary has 1 to 70 of the characters that the RFC calls `bchars`, the last of which is not a
  /// space.
  static func isValid(_ boundary: String) -> Bool {
    let bytes = boundary.utf8
    return (1...70).contains(bytes.count) && bytes.allSatisfy(isBoundaryByte) && bytes.last != 0x20
  }

  /// Returns the content type of a form; a boundary that is not a token is quoted (RFC 2045 §5.1).
  static func contentType(_ boundary: String) -> String {
    let isQuoted = isValid(boundary) && !HeaderFieldRules.isToken(boundary)
    return "multipart/form-data; boundary=" + (isQuoted ? "\"\(boundary)\"" : boundary)
  }

  private static func isBoundaryByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x61...0x7A, 0x41...0x5A, 0x30...0x39: true
    // ( ) + , - . / : and the rest, one by one.
    case 0x28, 0x29, 0x2B...0x2F, 0x3A, 0x20, 0x27, 0x3D, 0x3F, 0x5F: true
    default: false
    }
  }
}
