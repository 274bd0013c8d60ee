package import Foundation
import Glibc

/// Files with secrets, which only their owner may read: sessions, cookie jars and archives.
package enum PrivateFile {
  /// The reason why a file could not be written.
  package struct Failure: Error, Sendable {
    package let code: Int32
  }

  /// Replaces a file as a whole, so that an earlier one stays if this fails. The new one has the mode 0600 from its
  /// beginning on. A link is followed. A device or a pipe is written to, because a new file would take its place.
  ///
  /// - Parameter keepsMode: Whether an earlier file keeps its permissions.
  package static func write(_ data: Data, to path: String, keepsMode: Bool = false) throws(Failure) {
    let target = destination(of: path)
    var information = stat()
    let exists = stat(target, &information) == 0
    if exists, information.st_mode & S_IFMT != S_IFREG { return try overwrite(target, data) }
    let new = "\(target).\(UUID().uuidString.prefix(8))"
    let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      let code = errno
      // A file can be there in a folder that takes no other one.
      guard exists, keepsMode else { throw Failure(code: code) }
      return try overwrite(target, data)
    }
    if exists, keepsMode { fchmod(descriptor, information.st_mode & 0o7777) }
    var failure: Failure?
    do throws(Failure) { try write(data, to: descriptor) } catch { failure = error }
    if close(descriptor) != 0, failure == nil { failure = Failure(code: errno) }
    if failure == nil, rename(new, target) != 0 { failure = Failure(code: errno) }
    guard let failure else { return }
    unlink(new)
    throw failure
  }

  /// Returns the path behind a link and its further links, also if there is no file yet. Foundation resolves a link
  /// only if its target exists.
  private static func destination(of path: String) -> String {
    var url = URL(fileURLWithPath: path).resolvingSymlinksInPath()
    for _ in 0..<40 {
      guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: url.path) else { break }
      url = URL(fileURLWithPath: target, relativeTo: url.deletingLastPathComponent())
        .resolvingSymlinksInPath()
    }
    return url.path
  }

  private static func overwrite(_ path: String, _ data: Data) throws(Failure) {
    let descriptor = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC)
    guard descriptor >= 0 else { throw Failure(code: errno) }
    defer { close(descriptor) }
    try write(data, to: descriptor)
  }

  private static func write(_ data: Data, to descriptor: Int32) throws(Failure) {
    var rest = data[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno != EINTR {
        throw Failure(code: errno)
      }
    }
  }
}
