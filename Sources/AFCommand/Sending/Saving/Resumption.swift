import Alamofire
import Foundation
import Glibc

/// The part of a file that an earlier run has saved.
struct Resumption: Sendable {
  /// The meaning of a response for the partial file.
  enum Finding: Equatable {
    /// The bytes from the first missing one on.
    case rest
    /// No byte is missing.
    case complete
    /// A part that must not be appended, and the reason.
    case refused(String)
    /// The whole file, or no file.
    case unrelated
  }

  static let otherAnswer = "The server sent neither the missing part nor the whole file; nothing was written."
  static let otherPart = "The server sent another part of the file than was asked for; nothing was written."
  static let excess = "The server sent more bytes than the range of its response has; they were not written."

  let offset: Int64
  private let path: String
  private let record: PartialFileRecord?

  /// Makes the continuation of a partial file; `nil` if nothing is to be continued, or there is no file yet.
  init?(_ invocation: Invocation) throws(UsageError) {
    guard invocation.isContinued, case .file(let path) = invocation.output else { return nil }
    guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else { return nil }
    guard attributes[.type] as? FileAttributeType == .typeRegular,
      let size = attributes[.size] as? Int64 ?? (attributes[.size] as? NSNumber)?.int64Value
    else { throw UsageError("'\(path)' is not a file that can be continued.") }
    guard size > 0 else { return nil }
    offset = size
    self.path = path
    record = PartialFileRecord(file: path)
  }

  /// Adds the fields that ask for the missing part, if the file is the same. Otherwise the server sends all of it.
  func apply(to request: inout URLRequest) {
    request.setValue("bytes=\(offset)-", forHTTPHeaderField: "Range")
    guard let validator = record?.validator?.value, request.value(forHTTPHeaderField: "If-Range") == nil
    else {
      return
    }
    request.setValue(validator, forHTTPHeaderField: "If-Range")
  }

  func finding(_ response: HTTPURLResponse) -> Finding {
    let range = response.af.contentRange
    switch response.statusCode {
    case 206:
      guard let range, let bounds = range.bounds, bounds.lowerBound == offset else {
        return .refused(Self.otherPart)
      }
      // A length that contradicts the range belongs to other bytes.
      let length = response.expectedContentLength
      guard length < 0 || length == Int64(bounds.count) else { return .refused(Self.otherPart) }
      // The rest of a coded file is not the rest of the file.
      guard response.isIdentity else { return .refused(Self.otherPart) }
      guard record?.matches(response, total: range.total) ?? true else {
        return .refused(
          "The file on the server has changed; nothing was written. Remove '\(path)' to get it again.")
      }
      return .rest
    // A server without the length in its answer may have sent it with the first part.
    case 416:
      let isWhole = (range?.total ?? record?.length) == offset && record?.length ?? offset == offset
      return isWhole ? .complete : .unrelated
    default: return .unrelated
    }
  }
}

extension HTTPURLResponse {
  /// Whether the content has no coding (RFC 9110 §8.4).
  fileprivate var isIdentity: Bool {
    let coding = value(forHTTPHeaderField: "Content-Encoding") ?? ""
    return coding.isEmpty || coding.lowercased() == "identity"
  }
}

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
