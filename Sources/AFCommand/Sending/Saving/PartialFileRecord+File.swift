import Alamofire
import Foundation
import Glibc

extension PartialFileRecord {
  /// Makes the record of a whole response; `nil` if the response says nothing of its version.
  init?(_ response: HTTPURLResponse) {
    let field = response.af.strongValidator
    let validator = field.map { field -> Validator in
      field.name == "ETag" ? .entityTag(field.value) : .modificationDate(field.value)
    }
    let length = response.expectedContentLength
    self.init(validator, length: length >= 0 ? length : nil)
  }

  /// Whether a partial response is of the same version. If the first part had a strong entity tag, this one has to
  /// repeat it, because a server may ignore `If-Range` (RFC 9110 §15.3.7.3). It may omit a date that was in `If-Range`.
  func matches(_ response: HTTPURLResponse, total: Int64?) -> Bool {
    if let length, let total, length != total { return false }
    let tag = response.value(forHTTPHeaderField: "ETag")
    switch validator {
    case .entityTag(let own): return tag == own
    case .modificationDate(let date):
      return response.value(forHTTPHeaderField: "Last-Modified").map { $0 == date } ?? (tag == nil)
    case nil: return true
    }
  }

  // MARK: The file

  private static let suffix = ".af-continue"

  private static func path(of file: String) -> String { FileNames.path(beside: file, suffix: suffix) }

  /// Whether a name is the one of a record.
  static func isName(_ name: String) -> Bool { name.hasSuffix(suffix) }

  /// Whether nothing is where the record of a file would be.
  static func isAbsent(beside file: String) -> Bool {
    var information = stat()
    return lstat(path(of: file), &information) != 0 && errno == ENOENT
  }

  /// Reads the record of a partial file; `nil` if there is none, or a file of another kind has its name.
  init?(file: String) {
    guard let handle = Self.open(file, O_RDONLY), let text = try? handle.read(upToCount: Self.longestText + 1)
    else { return nil }
    self.init(text)
  }

  /// Writes the record beside a file. Without a record the file can still be continued, so that a failure is none of
  /// the download.
  ///
  /// - Returns: Whether the record was written. A file that is no record stays as it is.
  func write(beside file: String) -> Bool {
    guard let text else { return false }
    let isNew = Self.isAbsent(beside: file)
    guard isNew || PartialFileRecord(file: file) != nil,
      let handle = Self.open(file, O_WRONLY | (isNew ? O_CREAT | O_EXCL : O_TRUNC))
    else { return false }
    return (try? handle.write(contentsOf: text)) != nil
  }

  /// Removes the record of a file; nothing else that has its name.
  static func remove(beside file: String) {
    if PartialFileRecord(file: file) != nil { unlink(path(of: file)) }
  }

  /// Opens a regular file, not what a link points to.
  private static func open(_ file: String, _ flags: Int32) -> FileHandle? {
    let descriptor = Glibc.open(path(of: file), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o666)
    guard descriptor >= 0 else { return nil }
    let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    var information = stat()
    guard fstat(descriptor, &information) == 0, information.st_mode & S_IFMT == S_IFREG else { return nil }
    return handle
  }
}
