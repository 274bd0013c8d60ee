import Foundation

extension InputStream {
  /// How much is asked of a stream at a time.
  static let chunkSize = 131_072

  /// Reads the stream to its end, on this thread, and closes it.
  ///
  /// Nothing is scheduled in a run loop, and `streamError` is read only where there is sure to be one:
  /// everywhere else it is a trap in Foundation.
  ///
  /// - Parameters:
  ///   - length: How many bytes there must be.
  ///   - buffer: Where to read; its size is that of a read.
  ///   - consume: Called with the bytes, piece by piece; what it throws ends the reading.
  /// - Throws: ``AFError`` with `.inputStreamReadFailed`, or what `consume` throws.
  func readToEnd(
    length: UInt64, buffer: inout [UInt8], consume: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    guard isUsable else { throw Self.failed(AFError.MultipartFormFailure.unreadable) }
    switch streamStatus {
    case .notOpen: open()
    case .closed: throw Self.failed(AFError.MultipartFormFailure.closed)
    default: break
    }
    defer { close() }
    var total: UInt64 = 0
    while true {
      let count = read(&buffer, maxLength: buffer.count)
      guard count > 0 else {
        if count < 0 || streamStatus == .error { throw Self.failed(failure) }
        break
      }
      // A stream of a user may say anything.
      guard count <= buffer.count else { throw Self.failed(AFError.MultipartFormFailure.unreadable) }
      total += UInt64(count)
      guard total <= length else { break }
      try buffer.withUnsafeBytes { try consume(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    }
    guard total == length else {
      throw Self.failed(AFError.UnexpectedInputStreamLength(bytesExpected: length, bytesRead: total))
    }
  }

  /// `false` for the stream that Foundation makes of a URL that is no file: it has nothing inside, and every
  /// call to it ends the process. Only a mirror can tell.
  var isUsable: Bool {
    var mirror: Mirror? = Mirror(reflecting: self)
    while let level = mirror, level.subjectType != InputStream.self { mirror = level.superclassMirror }
    guard let storage = mirror?.descendant("_streamStorage") else { return true }
    let inside = Mirror(reflecting: storage)
    return inside.displayStyle != .optional || !inside.children.isEmpty
  }

  /// Foundation's own streams have an error when they say so; a subclass may say so and have none.
  private var failure: any Error {
    let isFoundations = type(of: self) == InputStream.self
    let known = isFoundations && streamStatus == .error ? streamError : nil
    return known ?? AFError.MultipartFormFailure.unreadable
  }

  private static func failed(_ error: any Error) -> AFError {
    .multipartEncodingFailed(reason: .inputStreamReadFailed(error: error))
  }
}
