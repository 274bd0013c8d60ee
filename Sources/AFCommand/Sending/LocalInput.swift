package import Foundation
import Glibc

extension RequestItem {
  /// Returns the item with the content of the file that it names. A line break at the end of a file is kept in a text
  /// or in JSON, and removed from a query or a header field.
  func withFileContent() throws(UsageError) -> RequestItem {
    switch self {
    case .queryFile(let name, let path):
      .query(name: name, value: try Self.line(Self.existing(path, after: "\(name)==")))
    case .headerFile(let name, let path):
      .header(name: name, value: try Self.line(Self.existing(path, after: "\(name):")))
    case .stringFile(let name, let path):
      .string(name: name, value: try Self.text(Self.existing(path, after: "\(name)=")))
    case .jsonFile(let name, let path): .json(name: name, text: try Self.json(path))
    case .query, .string, .json, .header, .omission, .file, .body: self
    }
  }

  /// Returns the path of a file. Throws if there is none, because the `@` may have been meant as the text.
  private static func existing(_ path: String, after start: String) throws(UsageError) -> String {
    guard FileManager.default.fileExists(atPath: LocalFile.expanded(path)) else {
      throw UsageError(
        "There is no file '\(path)'; for a text that begins with '@', write '\(start)\\@\(path)'.")
    }
    return path
  }

  private static func json(_ path: String) throws(UsageError) -> String {
    let text = try text(path).trimmingCharacters(in: .whitespacesAndNewlines)
    guard JSONTokens.isValid(text) else { throw UsageError("The file '\(path)' is not JSON.") }
    return text
  }

  private static func line(_ path: String) throws(UsageError) -> String {
    let bytes = Array(try text(path).utf8)
    let end = bytes.lastIndex { $0 != 0x0A && $0 != 0x0D }
    return String(decoding: bytes[..<(end.map { $0 + 1 } ?? 0)], as: UTF8.self)
  }

  private static func text(_ path: String) throws(UsageError) -> String {
    guard let text = String(data: try LocalFile.content(path), encoding: .utf8) else {
      throw UsageError("The file '\(path)' is not text in UTF-8.")
    }
    return text
  }
}

extension Invocation {
  /// Returns the invocation with the values of header fields instead of their files, so that a session keeps them.
  func withHeaderFiles() throws(UsageError) -> Invocation {
    var invocation = self
    for (index, item) in items.enumerated() {
      if case .headerFile = item { invocation.items[index] = try item.withFileContent() }
    }
    return invocation
  }
}

/// Files that arguments name.
enum LocalFile {
  /// Returns the path with the home folder in place of `~`, which shells leave alone after an `@`.
  static func expanded(_ path: String) -> String {
    path == "~" || path.hasPrefix("~/") ? "\(home())\(path.dropFirst())" : path
  }

  /// Returns the home folder: the absolute path in `HOME`, which shells and the completions use, too. Without it, the
  /// folder is the one that the system has for the user.
  static func home(_ variable: String? = getenv("HOME").map { String(cString: $0) }) -> String {
    if let variable, variable.utf8.first == UInt8(ascii: "/") { return variable }
    return NSString(string: "~").expandingTildeInPath
  }

  /// The largest file with settings, cookies or certificates. A larger one is something else.
  static let largestSettings = 16 << 20
  /// The largest text or form file that is read into memory. A file on a disk is sent from there instead.
  private static let largest = 1 << 30

  /// Returns the content of a file, which may be a pipe, such as the pipe of a process substitution, or a device. These
  /// have no size, and perhaps no end.
  static func content(_ path: String, limit: Int = largest) throws(UsageError) -> Data {
    try checkReadable(path)
    let descriptor = open(expanded(path), O_RDONLY | O_CLOEXEC | O_NOCTTY)
    defer { if descriptor >= 0 { close(descriptor) } }
    var content = Data()
    var room = [UInt8](repeating: 0, count: 1 << 16)
    while content.count <= limit {
      let count = Glibc.read(descriptor, &room, room.count)
      if count == 0 { return content }
      if count > 0 {
        content += room[..<count]
      } else if errno != EINTR {
        throw UsageError("The file '\(path)' cannot be read.")
      }
    }
    throw UsageError("The file '\(path)' has more than \(limit >> 20) MiB, which is too much here.")
  }

  static func checkReadable(_ path: String) throws(UsageError) {
    var isFolder: ObjCBool = false
    guard FileManager.default.fileExists(atPath: expanded(path), isDirectory: &isFolder) else {
      throw UsageError("There is no file '\(path)'.")
    }
    guard !isFolder.boolValue else { throw UsageError("'\(path)' is a folder, not a file.") }
    guard FileManager.default.isReadableFile(atPath: expanded(path)) else {
      throw UsageError("The file '\(path)' may not be read.")
    }
  }

  /// Whether it has a size and can be read again, unlike a pipe.
  static func isRegular(_ path: String) -> Bool {
    let resolved = URL(fileURLWithPath: expanded(path)).resolvingSymlinksInPath().path
    let type = try? FileManager.default.attributesOfItem(atPath: resolved)[.type] as? FileAttributeType
    return type == .typeRegular
  }

  /// Whether it is there, but is a pipe or a device, which can be read once.
  static func isSpecial(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: path) && !isRegular(path)
  }

  /// Whether it is a pipe, whose bytes are gone when they have been read.
  static func isPipe(_ path: String) -> Bool {
    var information = stat()
    return stat(path, &information) == 0 && [S_IFIFO, S_IFSOCK].contains(information.st_mode & S_IFMT)
  }

  /// Throws if the path is a link that the system does not follow, such as one that another user has placed in a shared
  /// folder. A link to a file that does not exist yet is none of them.
  static func checkLink(_ path: String) throws(UsageError) {
    var information = stat()
    guard lstat(path, &information) == 0, information.st_mode & S_IFMT == S_IFLNK,
      stat(path, &information) != 0, errno != ENOENT
    else { return }
    throw UsageError(SavedFile.Failure(path).sentence)
  }

  /// Returns the media type of a file by its extension; `application/octet-stream` for an unknown one.
  static func mediaType(_ path: String) -> String {
    let known = [
      "json": "application/json", "xml": "application/xml", "txt": "text/plain", "html": "text/html",
      "htm": "text/html", "csv": "text/csv", "md": "text/markdown", "yaml": "application/yaml",
      "yml": "application/yaml", "js": "text/javascript", "css": "text/css", "png": "image/png",
      "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "svg": "image/svg+xml",
      "webp": "image/webp", "pdf": "application/pdf", "zip": "application/zip", "gz": "application/gzip",
      "mp4": "video/mp4", "mp3": "audio/mpeg", "wasm": "application/wasm",
    ]
    let fileExtension = URL(fileURLWithPath: path).pathExtension.lowercased()
    return known[fileExtension] ?? "application/octet-stream"
  }
}

/// A body from the standard input, or from another source without a size.
package enum InputBody {
  /// All of it, since it is small.
  case data(Data)
  /// A body of unknown length, which can be read once.
  case stream(InputStream)

  /// Reads up to the mark and streams the body if there is more, because servers like bodies with a length.
  ///
  /// - Parameter isChunked: Whether to avoid reading ahead, for an input that grows slowly.
  package static func read(
    isChunked: Bool, _ source: @escaping @Sendable (UnsafeMutableRawBufferPointer) throws -> Int
  ) throws -> InputBody {
    if isChunked { return .stream(InputReader(prefix: Data(), source)) }
    var prefix = Data()
    var room = [UInt8](repeating: 0, count: 65_536)
    while prefix.count < mark {
      let count = try room.withUnsafeMutableBytes { try source($0) }
      if count == 0 { return .data(prefix) }
      prefix += room[..<count]
    }
    return .stream(InputReader(prefix: prefix, source))
  }

  private static let mark = 262_144
}

/// A stream over a source that blocks, such as a pipe.
private final class InputReader: InputStream {
  private struct State {
    var prefix: Data
    var status = Stream.Status.notOpen
  }

  /// The bytes that were read ahead.
  private let state: Mutex<State>
  private let source: @Sendable (UnsafeMutableRawBufferPointer) throws -> Int

  init(prefix: Data, _ source: @escaping @Sendable (UnsafeMutableRawBufferPointer) throws -> Int) {
    state = Mutex(State(prefix: prefix))
    self.source = source
    super.init(data: Data())
  }

  override func open() { state.withLock { $0.status = .open } }
  override func close() { state.withLock { $0.status = .closed } }
  override var streamStatus: Stream.Status { state.withLock { $0.status } }
  override var streamError: (any Error)? { nil }
  override var hasBytesAvailable: Bool { true }

  override func getBuffer(
    _ buffer: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, length: UnsafeMutablePointer<Int>
  ) -> Bool {
    false
  }

  override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int {
    let room = UnsafeMutableRawBufferPointer(start: buffer, count: maxLength)
    let fromPrefix = state.withLock { state in
      let count = min(maxLength, state.prefix.count)
      state.prefix.prefix(count).copyBytes(to: room)
      state.prefix = state.prefix.dropFirst(count)
      return count
    }
    if fromPrefix > 0 { return fromPrefix }
    do {
      let count = try source(room)
      if count == 0 { state.withLock { $0.status = .atEnd } }
      return count
    } catch {
      state.withLock { $0.status = .error }
      return -1
    }
  }
}
