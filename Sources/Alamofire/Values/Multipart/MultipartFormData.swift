public import Foundation
public import HTTPWire

/// A form whose fields and files are sent as `multipart/form-data` (RFC 7578).
///
/// ```swift
/// let form = MultipartFormData()
/// form.append(Data("Ada Lovelace".utf8), withName: "author")
/// form.append(URL(fileURLWithPath: "/tmp/engine.png"), withName: "picture")
/// let body = try form.encode()
/// ```
///
/// Parts are sent in the order in which they were appended. If a part is invalid, every later encoding throws the
/// first such failure. Further parts can be appended after a failure, and after an encoding.
///
/// **Names.** In names and file names a quotation mark becomes `%22`, a carriage return `%0D`, a line feed `%0A`, as in
/// browsers. Other control characters, NUL among them, become `%XX`, and a backslash at the end `%5C`. All other
/// characters are sent as UTF-8, including percent signs and other backslashes. Avoid backslashes, because some servers
/// mistake them for an escape. Therefore no name can add a parameter, a field or a part. MIME types and your own header
/// fields are not changed: a control character in them is an error.
///
/// **Encoding twice.** Data and files are read again each time. An `InputStream` can be read only once: ``encode()``
/// stores its bytes, so that the form can be encoded again. ``writeEncodedData(to:)`` does not, because they may be too
/// many; a later encoding then throws.
///
/// **Lengths.** A file or stream whose length differs from the appended or declared one is an error, and never a
/// truncated body.
///
/// **Boundary.** The boundary must not occur in a part, and parts are not searched for it. The default boundary has
/// 64 random bits, so it does not occur by chance. Set another one only if you know the content of every part.
///
/// **Threads.** A form is used by one thread at a time, and is not `Sendable`. The encoders read files and
/// streams on the calling thread, and may block.
open class MultipartFormData {
  /// The limit of ``contentLength``, in bytes, below which an upload encodes a form in memory: 10,000,000. Other
  /// forms are written to a temporary file.
  public static let encodingMemoryThreshold: UInt64 = 10_000_000

  /// The value of the `Content-Type` field of the form: `multipart/form-data; boundary=` and the boundary. The
  /// boundary is quoted if it has characters other than letters, digits and some marks (RFC 2046 §5.1.1).
  ///
  /// Can be set, or overridden, for another multipart type. It must name ``boundary``.
  open lazy var contentType: String = MultipartBoundary.contentType(boundary)

  /// The sum of the lengths of the parts in bytes, appended or declared, without their heads and the boundaries;
  /// `UInt64.max` if it overflows.
  public var contentLength: UInt64 {
    parts.reduce(0) { sum, part in
      let (next, overflow) = sum.addingReportingOverflow(part.length)
      return overflow ? .max : next
    }
  }

  /// The delimiter between the parts.
  public let boundary: String

  let fileManager: FileManager
  var parts: [MultipartPart] = []
  /// The first failure of appending a part.
  var failure: AFError?

  /// Makes an empty form. Encoded without parts, it consists of the closing boundary.
  ///
  /// - Parameters:
  ///   - fileManager: Finds the files of parts, and removes an incomplete output file.
  ///   - boundary: The delimiter between the parts: 1 to 70 letters, digits, spaces and `'()+_,-./:=?`, without a
  ///     space at the end (RFC 2046 §5.1.1). With another one encoding throws. Default: `alamofire.boundary.` and 16
  ///     random hexadecimal digits.
  public init(fileManager: FileManager = .default, boundary: String? = nil) {
    self.fileManager = fileManager
    self.boundary = boundary ?? MultipartBoundary.random()
  }

  /// Appends a part of bytes in memory.
  ///
  /// - Parameters:
  ///   - data: The bytes, which are shared with the caller and not copied.
  ///   - name: The name of the field.
  ///   - fileName: The name of the file that the part is; without one it is a plain field.
  ///   - mimeType: The value of the `Content-Type` field; without one the part has no such field.
  public func append(
    _ data: Data, withName name: String, fileName: String? = nil, mimeType: String? = nil
  ) {
    let headers = MultipartHead.headers(name: name, fileName: fileName, mimeType: mimeType)
    append(.data(data), length: UInt64(data.count), headers: headers)
  }

  /// Appends a file; its name is the last component of the URL, its MIME type follows from the extension.
  ///
  /// The types come from `/etc/mime.types` and the shared MIME database (`/usr/share/mime`), with a few well-known ones
  /// for a system that has neither. An unknown extension gives `application/octet-stream`.
  ///
  /// - Parameters:
  ///   - fileURL: A regular file, or a link to one. It is looked for at once, and read when the form is encoded.
  ///     Encoding throws `.bodyPartFilenameInvalid` when name or extension are empty; see also
  ///     ``append(_:withName:fileName:mimeType:)-(URL,_,_,_)``.
  ///   - name: The name of the field.
  public func append(_ fileURL: URL, withName name: String) {
    let fileName = fileURL.lastPathComponent
    let pathExtension = fileURL.pathExtension
    guard !fileName.isEmpty, !pathExtension.isEmpty else {
      return remember(.multipartEncodingFailed(reason: .bodyPartFilenameInvalid(in: fileURL)))
    }
    let mimeType = MIMETypes.system.type(forExtension: pathExtension)
    append(fileURL, withName: name, fileName: fileName, mimeType: mimeType)
  }

  /// Appends a file under a name of your choice. The MIME type follows from the extension of that name; if that has
  /// none, or an unknown one, from the extension of the file.
  ///
  /// ```swift
  /// form.append(temporaryFile, withName: "picture", fileName: "engine.png")  // image/png
  /// ```
  ///
  /// Without a known extension it is `application/octet-stream`.
  ///
  /// - Parameters:
  ///   - fileURL: A regular file, or a link to one; see ``append(_:withName:fileName:mimeType:)-(URL,_,_,_)``.
  ///   - name: The name of the field.
  ///   - fileName: The file name in the head of the part.
  public func append(_ fileURL: URL, withName name: String, fileName: String) {
    let extensions = [(fileName as NSString).pathExtension, fileURL.pathExtension]
    let mimeType = extensions.lazy.map { MIMETypes.system.type(forExtension: $0) }
      .first { $0 != MIMETypes.unknown }
    append(fileURL, withName: name, fileName: fileName, mimeType: mimeType ?? MIMETypes.unknown)
  }

  /// Appends a file under a name and with a MIME type of your choice.
  ///
  /// - Parameters:
  ///   - fileURL: A regular file, or a link to one. It is checked at once, and read when the form is encoded. A file of
  ///     `/proc` or `/sys`, whose size says nothing, is read at once, up to 16 MiB.
  ///     Encoding throws `.bodyPartURLInvalid` for another URL, and `.bodyPartFileNotReachableWithError` for a missing
  ///     file. For a folder it throws `.bodyPartFileIsDirectory`. `.bodyPartInputStreamCreationFailed` is thrown for a
  ///     file that cannot be opened, `.bodyPartFileSizeNotAvailable` for one without a size, such as a pipe.
  ///   - name: The name of the field.
  ///   - fileName: The file name in the head of the part.
  ///   - mimeType: The value of the `Content-Type` field.
  public func append(_ fileURL: URL, withName name: String, fileName: String, mimeType: String) {
    do {
      let length = try MultipartFile.length(of: fileURL, fileManager)
      let headers = MultipartHead.headers(name: name, fileName: fileName, mimeType: mimeType)
      if let content = try MultipartFile.generatedContent(of: fileURL) {
        append(.data(content), length: UInt64(content.count), headers: headers)
      } else {
        append(.file(fileURL), length: length, headers: headers)
      }
    } catch {
      remember(error)
    }
  }

  /// Appends the bytes of a stream, as a file.
  ///
  /// The stream is opened, read once and closed when the form is encoded. Reads block; run loops and delegates are
  /// not used.
  ///
  /// - Parameters:
  ///   - stream: The stream. From now on it belongs to the form.
  ///   - length: The exact number of bytes. The stream is read to its end to verify it: one that stays open after
  ///     `length` bytes blocks the encoder. A shorter or longer stream is an error
  ///     (``AFError/UnexpectedInputStreamLength``). Upstream's ``writeEncodedData(to:)`` sends the first `length` bytes
  ///     of a longer one; for a part of a stream, read that part into `Data`.
  ///   - name: The name of the field.
  ///   - fileName: The file name in the head of the part.
  ///   - mimeType: The value of the `Content-Type` field.
  public func append(
    _ stream: InputStream, withLength length: UInt64, name: String, fileName: String, mimeType: String
  ) {
    let headers = MultipartHead.headers(name: name, fileName: fileName, mimeType: mimeType)
    append(stream, withLength: length, headers: headers)
  }

  /// Appends the bytes of a stream, with your own header fields.
  ///
  /// - Parameters:
  ///   - stream: The stream; see ``append(_:withLength:name:fileName:mimeType:)``.
  ///   - length: The exact number of bytes.
  ///   - headers: The fields of the part, in this order; none is added. A part of a form needs a `Content-Disposition`
  ///     (RFC 7578 §4.2). Encoding throws for a name that is not a token, or a value with a control character.
  public func append(_ stream: InputStream, withLength length: UInt64, headers: HTTPHeaders) {
    append(.stream(stream), length: length, headers: headers)
  }

  private func append(_ content: MultipartPart.Content, length: UInt64, headers: HTTPHeaders) {
    do {
      let head = try MultipartHead.bytes(of: headers)
      parts.append(MultipartPart(head: head, length: length, content: content))
    } catch {
      remember(.multipartEncodingFailed(reason: .outputStreamWriteFailed(error: error)))
    }
  }

  private func remember(_ error: AFError) {
    if failure == nil { failure = error }
  }
}

extension MultipartFormData {
  /// Returns a form that `closure` has filled.
  static func filled(by closure: (MultipartFormData) -> Void, _ fileManager: FileManager) -> MultipartFormData
  {
    let form = MultipartFormData(fileManager: fileManager)
    closure(form)
    return form
  }
}

/// One part of a form, ready to be written.
struct MultipartPart {
  enum Content {
    case data(Data)
    /// Opened again for each encoding.
    case file(URL)
    /// A stream that has not been read.
    case stream(InputStream)
    /// A stream that was read, and the error of reading it again.
    case spent(AFError)
  }

  /// The fields and the empty line after them.
  let head: [UInt8]
  /// The bytes that the content must have.
  let length: UInt64
  var content: Content
}

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
