import Foundation

extension InputStream {
  /// The size of a read, in bytes.
  static let chunkSize = 131_072

  /// Reads the stream to its end on the calling thread, and closes it.
  ///
  /// It needs no run loop. `streamError` is read only after an error, because otherwise Foundation's getter traps.
  ///
  /// - Parameters:
  ///   - length: The expected number of bytes.
  ///   - buffer: The memory for reads; its size is the size of a read.
  ///   - consume: Called with each chunk; an error that it throws ends the reading.
  /// - Throws: ``AFError`` with `.inputStreamReadFailed`, or the error of `consume`.
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
      // A subclass may return any number.
      guard count <= buffer.count else { throw Self.failed(AFError.MultipartFormFailure.unreadable) }
      total += UInt64(count)
      guard total <= length else { break }
      try buffer.withUnsafeBytes { try consume(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    }
    guard total == length else {
      throw Self.failed(AFError.UnexpectedInputStreamLength(bytesExpected: length, bytesRead: total))
    }
  }

  /// `false` for a stream that Foundation made of a URL that is not a file. Such a stream has no contents, and every
  /// call to it ends the process; only reflection can detect it.
  var isUsable: Bool {
    var mirror: Mirror? = Mirror(reflecting: self)
    while let level = mirror, level.subjectType != InputStream.self { mirror = level.superclassMirror }
    guard let storage = mirror?.descendant("_streamStorage") else { return true }
    let inside = Mirror(reflecting: storage)
    return inside.displayStyle != .optional || !inside.children.isEmpty
  }

  /// Foundation's own streams always have an error in the state `.error`; a subclass may have none.
  private var failure: any Error {
    let isFoundations = type(of: self) == InputStream.self
    let known = isFoundations && streamStatus == .error ? streamError : nil
    return known ?? AFError.MultipartFormFailure.unreadable
  }

  private static func failed(_ error: any Error) -> AFError {
    .multipartEncodingFailed(reason: .inputStreamReadFailed(error: error))
  }
}
