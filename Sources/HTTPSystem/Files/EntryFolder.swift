package import FoundationEssentials
import Glibc
package import HTTPWire
import Synchronization

/// A folder of stored responses that only its owner can write to. Only the owner can read its files.
///
/// A file is written under a temporary name and then renamed, so a process that is killed before leaves the previous
/// file. A crash of the machine does so only if the file is flushed before. A process that lists the folder, or opens
/// it for a single file, removes temporary files that are older than ten minutes.
package final class EntryFolder: EntryFiles {
  private static let leftover = ".new-"
  private static let leftoverAge: Int64 = 600

  private let path: String
  private let nextName: @Sendable (OpaquePointer) -> String?
  /// The number in the name of the last temporary file.
  private let counter = Atomic<UInt64>(0)

  /// Opens the folder, which is created at the first write. Returns `nil` if the folder belongs to another user, or if
  /// other users may write to it, because they could forge responses.
  ///
  /// - Parameters:
  ///   - mustBeWritable: Whether the folder has to be writable, because a cache needs its removals to last.
  ///   - nextName:       Reads the next name of an open folder. Returns `nil` at the end, or with the error in `errno`.
  package init?(
    path: String, mustBeWritable: Bool = true,
    nextName: @escaping @Sendable (OpaquePointer) -> String? = { EntryFolder.readName($0) }
  ) {
    self.path = path
    self.nextName = nextName
    var status = stat()
    guard stat(path, &status) == 0 else {
      guard errno == ENOENT else { return nil }
      return
    }
    guard Self.isOurs(status), !mustBeWritable || access(path, W_OK | X_OK) == 0 else { return nil }
  }

  private static func isOurs(_ status: stat) -> Bool {
    status.st_mode & S_IFMT == S_IFDIR && status.st_uid == geteuid() && status.st_mode & 0o022 == 0
  }

  /// Makes the folder and its parents.
  private func make() -> Bool {
    var part = path.hasPrefix("/") ? "" : "."
    for name in path.unicodeScalars.split(separator: "/") {
      part += "/\(Substring(name))"
      _ = mkdir(part, 0o700)
    }
    var status = stat()
    return stat(path, &status) == 0 && Self.isOurs(status)
  }

  package var location: String { path }

  package func list() -> [EntryFile]? {
    let (files, isWhole) = listed()
    return isWhole ? files : nil
  }

  package func listUntilError() -> [EntryFile] { listed().files }

  private func listed() -> (files: [EntryFile], isWhole: Bool) {
    var files: [EntryFile] = []
    let isWhole = visit { name, status in
      guard !name.hasPrefix(".") else { return }
      files.append(EntryFile(name: name, size: Int(status.st_size), used: Int64(status.st_mtim.tv_sec)))
    }
    return (files, isWhole)
  }

  package func removeLeftovers() { _ = visit { _, _ in } }

  /// Reads the next name of an open folder. Returns `nil` at the end, or with the error in `errno`.
  package static func readName(_ folder: OpaquePointer) -> String? {
    guard let entry = readdir(folder) else { return nil }
    return withUnsafePointer(to: &entry.pointee.d_name) { pointer in
      pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
  }

  /// Visits the regular files of the folder. Old temporary files are removed instead. Returns whether the folder can be
  /// read to its end; one that does not exist is empty.
  private func visit(_ body: (_ name: String, _ status: stat) -> Void) -> Bool {
    guard let folder = opendir(path) else { return errno == ENOENT }
    defer { closedir(folder) }
    let descriptor = dirfd(folder)
    let now = Int64(time(nil))
    while true {
      errno = 0
      guard let name = nextName(folder) else { return errno == 0 }
      var status = stat()
      guard fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT == S_IFREG
      else { continue }
      guard Self.isLeftover(name) else {
        body(name, status)
        continue
      }
      if now - Int64(status.st_mtim.tv_sec) > Self.leftoverAge { unlinkat(descriptor, name, 0) }
    }
  }

  /// Whether a name is one that ``write(_:_:)`` makes: three numbers after a prefix. The folder of a single file may
  /// have other hidden files.
  private static func isLeftover(_ name: String) -> Bool {
    guard name.hasPrefix(leftover) else { return false }
    let numbers = name.dropFirst(leftover.count).split(separator: "-", omittingEmptySubsequences: false)
    return numbers.count == 3 && numbers.allSatisfy { UInt64($0) != nil }
  }

  package func read(_ name: String) -> EntryReading { read(name, upTo: .max) }

  package func read(_ name: String, upTo count: Int) -> EntryReading {
    let descriptor = open("\(path)/\(name)", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    // ELOOP is a symbolic link. Other errors may be temporary, so the file is not removed.
    guard descriptor >= 0 else { return errno == ENOENT || errno == ELOOP ? .missing : .unavailable }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return .unavailable }
    guard status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() else { return .missing }
    // The size of a file may be wrong, and `Data` ends the process if memory is short.
    let size = min(Int(status.st_size), count)
    guard size > 0 else { return .bytes(Data()) }
    guard let memory = malloc(size) else { return .unavailable }
    guard fill(UnsafeMutableRawBufferPointer(start: memory, count: size), from: descriptor) else {
      free(memory)
      return .unavailable
    }
    return .bytes(Data(bytesNoCopy: memory, count: size, deallocator: .free))
  }

  /// Returns false if fewer bytes were read, because the file has become shorter or the disk fails.
  private func fill(_ memory: UnsafeMutableRawBufferPointer, from descriptor: Int32) -> Bool {
    var rest = memory[...]
    while !rest.isEmpty {
      let count = Glibc.read(
        descriptor, UnsafeMutableRawBufferPointer(rebasing: rest).baseAddress, rest.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  // A stored response has a checksum, so that a crash of the machine costs only the response.
  package func write(_ name: String, _ bytes: Data) -> Bool { write(name, bytes) { _ in 0 } }

  /// Replaces a file. Returns false if that failed; the file is then unchanged.
  ///
  /// - Parameter flush: Flushes the new file to the disk before it gets its name. Returns the number of the error, or
  ///   0.
  package func write(_ name: String, _ bytes: Data, flush: (Int32) -> Int32) -> Bool {
    let number = counter.wrappingAdd(1, ordering: .relaxed).newValue
    let beside = "\(path)/\(Self.leftover)\(getpid())-\(number)-\(UInt32.random(in: 0 ... .max))"
    let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW
    // Another user may have created the folder since it was found missing.
    var status = stat()
    guard stat(path, &status) != 0 || Self.isOurs(status) else { return false }
    var descriptor = open(beside, flags, 0o600)
    if descriptor < 0, errno == ENOENT, make() { descriptor = open(beside, flags, 0o600) }
    guard descriptor >= 0 else { return false }
    let isWritten = Self.fill(descriptor, bytes) && flush(descriptor) == 0
    let isClosed = close(descriptor) == 0
    if isWritten, isClosed, rename(beside, "\(path)/\(name)") == 0 { return true }
    unlink(beside)
    return false
  }

  private static func fill(_ descriptor: Int32, _ bytes: Data) -> Bool {
    bytes.withUnsafeBytes { buffer in
      var done = 0
      while done < buffer.count, let start = buffer.baseAddress {
        let count = Glibc.write(descriptor, start + done, buffer.count - done)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return false }
        done += count
      }
      return true
    }
  }

  package func remove(_ name: String) -> Bool {
    let file = "\(path)/\(name)"
    if unlink(file) == 0 || errno == ENOENT { return true }
    // If the folder is not writable any more, its files may still be. An empty file is not a response.
    var status = stat()
    guard lstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return false }
    return truncate(file, 0) == 0
  }

  package func touch(_ name: String) { utimensat(AT_FDCWD, "\(path)/\(name)", nil, AT_SYMLINK_NOFOLLOW) }
}
