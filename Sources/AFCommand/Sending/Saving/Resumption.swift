import Alamofire
import Foundation

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
