public import Alamofire
public import Foundation
import FoundationNetworking

extension DataStreamRequest {
  /// Returns the images of a response of the type `multipart/x-mixed-replace`, as cameras send them, while they arrive.
  /// Another response is one image.
  ///
  /// ```swift
  /// for try await image in AF.streamRequest(url).validate().streamImages() {
  ///   print(image.size)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - imageScale: The pixels per point of the images. Default: `DataRequest.imageScale`.
  ///   - inflateResponseImage: Whether the pixels are decoded, on a thread for images. Default: `true`.
  ///   - limits: What an image may cost. They also limit the bytes of a part.
  public func streamImages(
    imageScale: CGFloat = DataRequest.imageScale, inflateResponseImage: Bool = true,
    limits: ImageLimits = .default
  ) -> ImageStream {
    ImageStream(request: self, scale: imageScale, inflates: inflateResponseImage, limits: limits)
  }
}

/// The images of a `DataStreamRequest`, for `for try await`.
///
/// While an image is decoded, the server waits. The loop ends with an error if a part cannot be decoded or is too
/// large, or if the request fails. Read it once, in one loop.
public struct ImageStream: AsyncSequence, Sendable {
  /// An image.
  public typealias Element = Image

  let request: DataStreamRequest
  let scale: CGFloat
  let inflates: Bool
  let limits: ImageLimits

  /// Makes the iterator, and starts the request.
  public func makeAsyncIterator() -> Iterator { Iterator(self) }

  /// The iterator of the images.
  public struct Iterator: AsyncIteratorProtocol {
    private let stream: ImageStream
    private var chunks: StreamValues<Data>.AsyncIterator
    private var parts: MixedParts?
    /// The bytes of a body that is not multipart.
    private var body = Data()
    private var ready: [Data] = []
    private var hasHead = false
    private var isOver = false

    init(_ stream: ImageStream) {
      self.stream = stream
      chunks = stream.request.chunks().makeAsyncIterator()
    }

    /// Returns the next image; `nil` at the end, and after an error.
    ///
    /// - Throws: ``ImageError``, or the error of the request.
    public mutating func next() async throws -> Image? {
      do {
        return try await nextImage()
      } catch {
        isOver = true
        ready = []
        throw error
      }
    }

    private mutating func nextImage() async throws -> Image? {
      while ready.isEmpty, !isOver {
        if let chunk = try await chunks.next() {
          try take(chunk)
        } else {
          isOver = true
          if parts == nil, !body.isEmpty { ready = [body] }
        }
      }
      guard !ready.isEmpty else { return nil }
      let data = ready.removeFirst()
      let image = try Image(data: data, scale: stream.scale, limits: stream.limits)
      return stream.inflates ? try await image.inflated() : image
    }

    private mutating func take(_ chunk: Data) throws {
      if !hasHead {
        hasHead = true
        let type = stream.request.response?.value(forHTTPHeaderField: "Content-Type") ?? ""
        parts = MixedParts(contentType: type, limit: stream.limits.bytes)
      }
      if parts != nil {
        ready += try parts?.append(chunk) ?? []
      } else {
        body.append(chunk)
        try stream.limits.check(.bytes, body.count, limit: stream.limits.bytes)
      }
    }
  }
}

/// The parts of a multipart body (RFC 2046 §5.1) that arrives in chunks, as cameras send it.
struct MixedParts {
  /// The most bytes of a part, with its head.
  let limit: Int
  /// The line that begins each part, without its line break.
  private let delimiter: Data
  private var buffer = Data()
  /// The number of bytes at the beginning of the buffer that contain no delimiter, so that none is read twice.
  private(set) var searched = 0
  /// Whether the first delimiter has been seen. The text before it belongs to no part.
  private var hasBegun = false
  private(set) var isOver = false

  /// Makes the reader for a media type, or returns `nil` if it is not a multipart type with a boundary.
  init?(contentType: String, limit: Int) {
    let pieces = contentType.split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }
    guard pieces.first?.lowercased().hasPrefix("multipart/") == true,
      let parameter = pieces.dropFirst().first(where: { $0.lowercased().hasPrefix("boundary=") })
    else { return nil }
    var boundary = parameter.dropFirst("boundary=".count)
    if boundary.count >= 2, boundary.hasPrefix("\""), boundary.hasSuffix("\"") {
      boundary = boundary.dropFirst().dropLast()
    }
    // Some cameras write the two hyphens into the parameter, too.
    if boundary.hasPrefix("--") { boundary = boundary.dropFirst(2) }
    guard !boundary.isEmpty, boundary.utf8.count <= 70 else { return nil }
    delimiter = Data("--\(boundary)".utf8)
    self.limit = limit
  }

  /// Takes bytes, and returns the contents of the parts that are complete.
  ///
  /// - Throws: ``ImageError/limitExceeded(_:limit:actual:)`` if a part is too large.
  mutating func append(_ bytes: Data) throws(ImageError) -> [Data] {
    guard !isOver else { return [] }
    buffer.append(bytes)
    var parts: [Data] = []
    while !isOver, let range = nextDelimiter() {
      if hasBegun {
        let part = buffer[buffer.startIndex..<range.lowerBound]
        try check(part.count)
        if let content = Self.content(of: part) { parts.append(content) }
      }
      hasBegun = true
      isOver = buffer[range.upperBound...].starts(with: Data("--".utf8))
      // A slice, because a chunk may have very many parts.
      buffer = buffer[range.upperBound...]
      searched = 0
    }
    // What follows the last part is ignored, however long it is.
    if isOver { buffer = Data() } else if buffer.startIndex > 0 { buffer = Data(buffer) }
    try check(buffer.count)
    return parts
  }

  private func check(_ count: Int) throws(ImageError) {
    guard count <= limit else { throw .limitExceeded(.bytes, limit: limit, actual: count) }
  }

  /// Finds the next delimiter at the beginning of a line, with the two bytes behind it.
  private mutating func nextDelimiter() -> Range<Data.Index>? {
    var start = buffer.startIndex + searched
    while let range = rangeOfDelimiter(from: start) {
      start = range.upperBound
      guard range.lowerBound == buffer.startIndex || buffer[range.lowerBound - 1] == 0x0a else { continue }
      guard buffer.endIndex - range.upperBound >= 2 else {
        searched = range.lowerBound - buffer.startIndex
        return nil
      }
      if Self.endsDelimiter(buffer[range.upperBound]) { return range }
    }
    searched = max(searched, buffer.count - delimiter.count - 2)
    return nil
  }

  /// Finds the text of the delimiter. `Data.range(of:)` would read all of the buffer, also behind the place at which it
  /// finds the text.
  private func rangeOfDelimiter(from start: Data.Index) -> Range<Data.Index>? {
    buffer[start...].withUnsafeBytes { bytes in
      delimiter.withUnsafeBytes { delimiter in
        var place = 0
        while place + delimiter.count <= bytes.count {
          let rest = UnsafeRawBufferPointer(rebasing: bytes[place...])
          guard let hyphen = rest.firstIndex(of: 0x2d) else { return nil }
          place += hyphen
          guard place + delimiter.count <= bytes.count else { return nil }
          if bytes[place..<place + delimiter.count].elementsEqual(delimiter) {
            return start + place..<start + place + delimiter.count
          }
          place += 1
        }
        return nil
      }
    }
  }

  /// Returns whether a byte may follow a delimiter: a hyphen, white space or a line break.
  private static func endsDelimiter(_ byte: UInt8) -> Bool { [0x2d, 0x20, 0x09, 0x0d, 0x0a].contains(byte) }

  /// Returns what is behind the head of a part, without the line break before the next delimiter. The head ends with
  /// the first empty line, whose line break may be a line feed alone.
  private static func content(of part: Data) -> Data? {
    var rest = part
    while let lineEnd = rest.firstIndex(of: 0x0a) {
      rest = rest[(lineEnd + 1)...]
      let isEmptyLine = rest.first == 0x0a || rest.starts(with: [0x0d, 0x0a])
      guard isEmptyLine else { continue }
      var content = rest.dropFirst(rest.first == 0x0a ? 1 : 2)
      if content.last == 0x0a { content = content.dropLast() }
      if content.last == 0x0d { content = content.dropLast() }
      return content.isEmpty ? nil : Data(content)
    }
    return nil
  }
}
