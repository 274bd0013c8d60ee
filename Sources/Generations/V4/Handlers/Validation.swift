import Alamofire
import Foundation
import FoundationNetworking

// Validation of responses. Checks run in their order after a response, before the retrier and the handlers, on any
// thread. The first failure stops them, and the handlers get it unchanged. Failed requests skip them. A check may be
// added until the first handler was called; it applies to later handlers.
extension DataRequest {
  /// Adds your own check.
  @discardableResult
  public func validate(_ validation: @escaping Validation) -> Self {
    check { outcome, response in validation(outcome.request, response, outcome.data).failure }
  }

  /// Accepts only these status codes; none at all if the sequence is empty.
  @discardableResult
  public func validate<S: Sequence>(statusCode acceptableStatusCodes: S) -> Self where S.Element == Int {
    check { _, response in AcceptedResponse.failure(response, statusCodes: acceptableStatusCodes) }
  }

  /// Accepts only these media types, including wildcards such as `image/*`; an empty body passes.
  @discardableResult
  public func validate<S: Sequence>(contentType acceptableContentTypes: S) -> Self where S.Element == String {
    check { outcome, response in
      guard outcome.data?.isEmpty == false else { return nil }
      return AcceptedResponse.failure(response, contentTypes: Array(acceptableContentTypes))
    }
  }

  /// Accepts status codes from 200 to 299, and the media types that the request's `Accept` field names (all, without
  /// one).
  @discardableResult
  public func validate() -> Self {
    validate(statusCode: 200..<300).check { outcome, response in
      guard outcome.data?.isEmpty == false else { return nil }
      return AcceptedResponse.failure(response, contentTypes: AcceptedResponse.types(of: outcome.request))
    }
  }
}

extension DownloadRequest {
  /// Adds your own check.
  @discardableResult
  public func validate(_ validation: @escaping Validation) -> Self {
    check { outcome, response in
      validation(outcome.request, response, outcome.temporaryURL, outcome.destinationURL).failure
    }
  }

  /// Accepts only these status codes; none at all if the sequence is empty.
  @discardableResult
  public func validate<S: Sequence>(statusCode acceptableStatusCodes: S) -> Self where S.Element == Int {
    check { _, response in AcceptedResponse.failure(response, statusCodes: acceptableStatusCodes) }
  }

  /// Accepts only these media types, including wildcards such as `image/*`; an empty file passes.
  @discardableResult
  public func validate<S: Sequence>(contentType acceptableContentTypes: S) -> Self where S.Element == String {
    check { outcome, response in
      AcceptedResponse.failure(response, contentTypes: Array(acceptableContentTypes), file: outcome.fileURL)
    }
  }

  /// Accepts status codes from 200 to 299, and the media types that the request's `Accept` field names (all, without
  /// one).
  @discardableResult
  public func validate() -> Self {
    validate(statusCode: 200..<300).check { outcome, response in
      AcceptedResponse.failure(
        response, contentTypes: AcceptedResponse.types(of: outcome.request), file: outcome.fileURL)
    }
  }
}

extension Request.ValidationResult {
  fileprivate var failure: (any Error)? { if case .failure(let error) = self { error } else { nil } }
}

/// The responses that pass. The rules are the core's, which does not make them accessible.
private enum AcceptedResponse {
  static func failure(
    _ response: HTTPURLResponse, statusCodes: some Sequence<Int>
  ) -> (any Error)? {
    guard !statusCodes.contains(response.statusCode) else { return nil }
    return failed(.unacceptableStatusCode(code: response.statusCode))
  }

  static func failure(
    _ response: HTTPURLResponse, contentTypes acceptable: [String], file: URL?
  ) -> (any Error)? {
    guard let file else { return failed(.dataFileNil) }
    let attributes = try? FileManager.default.attributesOfItem(atPath: file.path)
    guard let size = attributes?[.size] as? NSNumber else { return failed(.dataFileReadFailed(at: file)) }
    return size.int64Value == 0 ? nil : failure(response, contentTypes: acceptable)
  }

  static func failure(_ response: HTTPURLResponse, contentTypes acceptable: [String]) -> (any Error)? {
    let wanted = acceptable.compactMap { MediaRange($0) }
    guard let text = response.value(forHTTPHeaderField: "Content-Type"), let type = MediaRange(text) else {
      return wanted.contains { $0.isAnything }
        ? nil : failed(.missingContentType(acceptableContentTypes: acceptable))
    }
    guard !wanted.contains(where: { $0.contains(type) }) else { return nil }
    return failed(
      .unacceptableContentType(
        acceptableContentTypes: acceptable, responseContentType: "\(type.type)/\(type.subtype)"))
  }

  static func types(of request: URLRequest?) -> [String] {
    request?.value(forHTTPHeaderField: "Accept")?.components(separatedBy: ",") ?? ["*/*"]
  }

  private static func failed(_ reason: AFError.ResponseValidationFailureReason) -> any Error {
    AFError.responseValidationFailed(reason: reason)
  }
}

/// `type/subtype`, either of which may be `*` (RFC 9110 §12.5.1); parameters do not count.
private struct MediaRange {
  let type: Substring
  let subtype: Substring

  init?(_ text: String) {
    let parts = text.prefix { $0 != ";" }.split(separator: "/", omittingEmptySubsequences: false)
      .map { $0.trimmingPrefix { $0.isWhitespace } }
    guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else { return nil }
    type = parts[0]
    subtype = parts[1].prefix { !$0.isWhitespace }
  }

  var isAnything: Bool { type == "*" && subtype == "*" }

  func contains(_ other: MediaRange) -> Bool {
    (type == "*" || type == other.type) && (subtype == "*" || subtype == other.subtype)
  }
}
