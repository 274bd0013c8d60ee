import Foundation
import HTTPSystem
import HTTPWire

/// The destination of the bytes of an encoded form.
protocol MultipartSink {
  mutating func write(_ bytes: UnsafeRawBufferPointer) throws
}

/// Collects the bytes in memory.
struct MultipartMemory: MultipartSink {
  private(set) var data = Data()

  /// Makes an empty sink.
  ///
  /// - Parameter capacity: The expected number of bytes. At most a gigabyte is reserved, so that a large number on its
  ///   own cannot exhaust the memory.
  init(capacity: UInt64) {
    data.reserveCapacity(Int(min(capacity, 1 << 30)))
  }

  mutating func write(_ bytes: UnsafeRawBufferPointer) {
    data.append(contentsOf: bytes)
  }
}

/// The output file of a form, and functions for the files of its parts.
struct MultipartFile: MultipartSink {
  private static let capacity = InputStream.chunkSize

  private let handle: FileHandle
  /// Small chunks, collected to save system calls.
  private var pending: [UInt8] = []

  init(handle: FileHandle) {
    self.handle = handle
    pending.reserveCapacity(Self.capacity)
  }

  mutating func write(_ bytes: UnsafeRawBufferPointer) throws {
    if pending.count + bytes.count > Self.capacity { try flush() }
    if bytes.count < Self.capacity {
      pending.append(contentsOf: bytes)
    } else {
      try put(bytes)
    }
  }

  /// Writes the bytes that have been collected.
  mutating func flush() throws {
    guard !pending.isEmpty else { return }
    try pending.withUnsafeBytes { try put($0) }
    pending.removeAll(keepingCapacity: true)
  }

  private func put(_ bytes: UnsafeRawBufferPointer) throws {
    do { try handle.write(contentsOf: bytes) } catch { throw Self.failed(error) }
  }

  private static func failed(_ error: any Error) -> AFError {
    .multipartEncodingFailed(reason: .outputStreamWriteFailed(error: error))
  }
}

extension MultipartFile {
  /// Makes a file that `body` fills. If that fails, the file is removed.
  ///
  /// It uses `open`, because Foundation makes a file that every user can read and restricts it afterwards. Foundation
  /// also overwrites a file that another process has just created.
  ///
  /// The descriptor is closed here, once. After a failed close its number may belong to another file already, and
  /// `FileHandle` would close it again.
  ///
  /// - Parameters:
  ///   - permissions: The mode of the file, before the process's umask.
  ///   - close: Closes the descriptor as the system's function does; tests let it fail.
  static func create(
    _ url: URL, permissions: UInt32, _ fileManager: FileManager, close: (Int32) -> Int32 = { close($0) },
    body: (inout MultipartFile) throws -> Void
  ) throws {
    let descriptor = open(url.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions)
    guard descriptor >= 0 else { throw creationFailed(url, errno) }
    do {
      var file = MultipartFile(handle: FileHandle(fileDescriptor: descriptor, closeOnDealloc: false))
      let written = Result {
        try body(&file)
        try file.flush()
      }
      // Some file systems report a full disk only when a file is closed.
      let code = close(descriptor) == 0 ? 0 : errno
      try written.get()
      if code != 0 { throw systemFailure(url, code) }
    } catch {
      try? fileManager.removeItem(at: url)
      throw error
    }
  }

  private static func creationFailed(_ url: URL, _ code: Int32) -> AFError {
    if code == EEXIST { return .multipartEncodingFailed(reason: .outputStreamFileAlreadyExists(at: url)) }
    return systemFailure(url, code)
  }

  private static func systemFailure(_ url: URL, _ code: Int32) -> AFError {
    let text = "\(url.path): \(String(cString: strerror(code)))"
    return failed(
      NSError(
        domain: NSPOSIXErrorDomain, code: Int(code),
        userInfo: [NSLocalizedDescriptionKey: text, NSFilePathErrorKey: url.path]))
  }

  /// Returns the size of a file that can be a part, in bytes.
  static func length(of url: URL, _ fileManager: FileManager) throws(AFError) -> UInt64 {
    guard url.isFileURL else { throw .multipartEncodingFailed(reason: .bodyPartURLInvalid(url: url)) }
    var isDirectory: ObjCBool = false
    guard fileManager.fileExists(atPath: url.path, isDirectory: &isDirectory) else {
      throw .multipartEncodingFailed(
        reason: .bodyPartFileNotReachableWithError(atURL: url, error: reasonForMissing(url, fileManager)))
    }
    guard !isDirectory.boolValue else {
      throw .multipartEncodingFailed(reason: .bodyPartFileIsDirectory(at: url))
    }
    let attributes: [FileAttributeKey: Any]
    do {
      // The attributes of a link are its own.
      attributes = try fileManager.attributesOfItem(atPath: url.resolvingSymlinksInPath().path)
    } catch {
      throw .multipartEncodingFailed(reason: .bodyPartFileSizeQueryFailedWithError(forURL: url, error: error))
    }
    // Reading a pipe or a device may take for ever.
    guard attributes[.type] as? FileAttributeType == .typeRegular, let size = size(attributes[.size]) else {
      throw .multipartEncodingFailed(reason: .bodyPartFileSizeNotAvailable(at: url))
    }
    guard fileManager.isReadableFile(atPath: url.path) else {
      throw .multipartEncodingFailed(reason: .bodyPartInputStreamCreationFailed(for: url))
    }
    return size
  }

  /// Reads a file whose size is not the number of its bytes, as in `/proc`. Returns `nil` for any other.
  static func generatedContent(of url: URL) throws(AFError) -> Data? {
    do throws(TransportFailure) {
      return try GeneratedFile.content(of: url.path).map { Data($0) }
    } catch {
      throw .multipartEncodingFailed(
        reason: .inputStreamReadFailed(error: URLError(.cannotOpenFile, error.message, url: nil)))
    }
  }

  /// Returns the error of a file that is missing, or that a folder above it hides.
  private static func reasonForMissing(_ url: URL, _ fileManager: FileManager) -> any Error {
    do {
      _ = try fileManager.attributesOfItem(atPath: url.path)
    } catch {
      return error
    }
    // A link that leads nowhere has its own attributes.
    return CocoaError(.fileReadNoSuchFile, userInfo: [NSFilePathErrorKey: url.path, NSURLErrorKey: url])
  }

  private static func size(_ value: Any?) -> UInt64? {
    if let number = value as? NSNumber { return number.uint64Value }
    return (value as? any BinaryInteger).flatMap { UInt64(exactly: $0) }
  }
}

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

  /// `false` for a stream that Foundation created from a URL that is not a file. Such a stream has no contents, and
  /// every call to it ends the process; only reflection can detect it.
  var isUsable: Bool {
    var mirror: Mirror? = Mirror(reflecting: self)
    while let level = mirror, level.subjectType != InputStream.self { mirror = level.superclassMirror }
    guard let storage = mirror?.descendant("_streamStorage") else { return true }
    let inside = Mirror(reflecting: storage)
    return inside.displayStyle != .optional || !inside.children.isEmpty
  }

  /// The error of a usable stream of Foundation. Such a stream always has one in the state `.error`; a subclass may
  /// have none.
  var foundationError: (any Error)? {
    type(of: self) == InputStream.self && streamStatus == .error ? streamError : nil
  }

  private var failure: any Error { foundationError ?? AFError.MultipartFormFailure.unreadable }

  private static func failed(_ error: any Error) -> AFError {
    .multipartEncodingFailed(reason: .inputStreamReadFailed(error: error))
  }
}
