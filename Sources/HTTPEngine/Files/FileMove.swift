import Glibc

/// Brings a file to another place so that at every moment, also when the process is killed, there is either
/// nothing there or all of it.
package enum FileMove {
  package enum Outcome: Equatable, Sendable {
    case moved
    /// Nothing has happened; with the number of the error.
    case failed(Int32)
  }

  /// Moves `source` to `target`, where nothing may be. Between two file systems the bytes are copied into a file
  /// without a name first.
  package static func move(_ source: String, to target: String) -> Outcome {
    var status = stat()
    guard lstat(target, &status) != 0 else { return .failed(EEXIST) }
    if rename(source, target) == 0 { return .moved }
    guard errno == EXDEV else { return .failed(errno) }
    return copy(source, to: target)
  }

  /// `O_TMPFILE`, a macro that Swift does not see: a file without a name in the folder that is opened.
  private static let namelessFile = 0o20_000_000 | O_DIRECTORY

  private static func copy(_ source: String, to target: String) -> Outcome {
    let input = open(source, O_RDONLY | O_CLOEXEC)
    guard input >= 0 else { return .failed(errno) }
    defer { close(input) }
    let folder =
      target.lastIndex(of: "/").map { $0 == target.startIndex ? "/" : String(target[..<$0]) } ?? "."
    let output = open(folder, namelessFile | O_WRONLY | O_CLOEXEC, 0o600)
    guard output >= 0 else { return .failed(errno) }
    defer { close(output) }
    if let code = copy(input, to: output) { return .failed(code) }
    guard linkat(AT_FDCWD, "/proc/self/fd/\(output)", AT_FDCWD, target, AT_SYMLINK_FOLLOW) == 0 else {
      return .failed(errno)
    }
    unlink(source)
    return .moved
  }

  /// Returns the number of the error, if there is one.
  private static func copy(_ input: Int32, to output: Int32) -> Int32? {
    while true {
      let count = sendfile(output, input, nil, 1 << 26)
      if count == 0 { return nil }
      if count < 0, errno != EINTR { return errno }
    }
  }
}
