import Alamofire
import Foundation
import Glibc

/// A file to which the body of a response is written.
final class SavedFile: Sendable {
  /// The reason why a file could not be written.
  struct Failure: Error {
    let sentence: String

    init(_ path: String, code: Int32 = errno) {
      sentence = "'\(path)' cannot be written: \(String(cString: strerror(code)))."
    }
  }

  /// The path as it is shown.
  let path: String
  private let location: String
  private let descriptor: Int32

  /// Opens a file that the user has named. The earlier content of the file is replaced, unless the file is continued.
  init(path: String, isContinued: Bool) throws(Failure) {
    self.path = path
    location = path
    let mode = O_WRONLY | O_CREAT | O_CLOEXEC | (isContinued ? O_APPEND : O_TRUNC)
    descriptor = open(path, mode, 0o666)
    guard descriptor >= 0 else { throw Failure(path) }
  }

  /// Makes a new file in a folder, by default the current one. The name from the server is used without its path, and
  /// never for a file that exists.
  init(suggestedName: String?, folder: String = ".") throws(Failure) {
    let name = Self.safe(suggestedName ?? "")
    let parts = URL(fileURLWithPath: name)
    let suffix = parts.pathExtension.isEmpty ? "" : ".\(parts.pathExtension)"
    let stem = name.dropLast(suffix.count)
    var candidate = name
    var opened: Int32 = -1
    for number in 1...1000 {
      opened = open("\(folder)/\(candidate)", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
      if opened >= 0 || errno != EEXIST { break }
      candidate = "\(stem)-\(number)\(suffix)"
    }
    path = candidate
    location = "\(folder)/\(candidate)"
    descriptor = opened
    guard descriptor >= 0 else { throw Failure(candidate) }
  }

  deinit { if descriptor >= 0 { Glibc.close(descriptor) } }

  /// Returns a name for the current folder, by the rule of `suggestedFilename`. It leaves room for a number and for the
  /// names of partial files.
  static func safe(_ name: String) -> String { FileNames.component(of: name, longest: 200) ?? "download" }

  /// Keeps the version of the resource until the file is complete. Pipes and devices are not continued.
  func record(_ response: HTTPURLResponse) {
    var information = stat()
    guard fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return }
    if let record = PartialFileRecord(response) {
      record.write(beside: location)
    } else {
      removeRecord()
    }
  }

  /// Moves another file of the same folder to the place of this one.
  func replace(with other: String) throws(Failure) {
    guard rename(other, location) == 0 else { throw Failure(location) }
  }

  /// Called when the file is complete.
  func removeRecord() { PartialFileRecord.remove(beside: location) }

  func write(_ data: Data) throws(Failure) {
    var rest = data[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno != EINTR {
        throw Failure(path)
      }
    }
  }
}
