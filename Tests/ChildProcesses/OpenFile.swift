import Foundation

/// A file that this process has open.
package struct OpenFile {
  private let descriptor: Int32

  /// Finds the file among the descriptors of this process.
  ///
  /// - Parameter path: Its path without symbolic links.
  package init?(path: String) {
    let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    let found = numbers.first { number in
      var name = [UInt8](repeating: 0, count: Int(PATH_MAX))
      let count = readlink("/proc/self/fd/\(number)", &name, name.count)
      return count > 0 && String(decoding: name.prefix(count), as: UTF8.self) == path
    }
    guard let number = found.flatMap({ Int32($0) }) else { return nil }
    descriptor = number
  }

  /// Returns a copy of the descriptor, as a process that is being started has it.
  package func duplicate() -> Int32 { fcntl(descriptor, F_DUPFD_CLOEXEC, 0) }

  /// Opens the file again that a copy belongs to, and closes the copy.
  package func restore(_ copy: Int32) -> Bool {
    defer { close(copy) }
    return replace(by: copy)
  }

  /// Exchanges the file for `/dev/zero`, to which bytes can be written, but which cannot be flushed.
  package func makeUnflushable() -> Bool {
    let zero = open("/dev/zero", O_RDWR | O_CLOEXEC)
    defer { close(zero) }
    return replace(by: zero)
  }

  private func replace(by other: Int32) -> Bool {
    dup2(other, descriptor) == descriptor && fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0
  }
}
