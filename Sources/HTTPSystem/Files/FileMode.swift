import Glibc

/// The permissions of files.
enum FileMode {
  /// The mode that the umask of the process gives to a new file; `nil` if the kernel does not tell the umask.
  ///
  /// It is read from `/proc`, because `umask()` changes the value for all threads while it reads it.
  static var ofNewFiles: mode_t? {
    let descriptor = open("/proc/self/status", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = read(descriptor, &buffer, buffer.count)
    guard count > 0 else { return nil }
    let lines = buffer[..<count].split(separator: UInt8(ascii: "\n"))
    guard let line = lines.first(where: { $0.starts(with: "Umask:".utf8) }),
      let umask = mode_t(String(decoding: line.dropFirst(6).filter { $0 > 0x20 }, as: UTF8.self), radix: 8)
    else { return nil }
    return 0o666 & ~umask
  }

  /// Gives an open file the mode of a new file. A file system without modes is no error.
  static func apply(to descriptor: Int32) {
    if let mode = ofNewFiles { fchmod(descriptor, mode) }
  }

  /// Gives a file the mode of a new file. Links are not followed.
  static func apply(to path: String) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    apply(to: descriptor)
  }
}
