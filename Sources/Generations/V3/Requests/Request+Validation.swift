public import Foundation
public import FoundationNetworking

extension Request {
  /// The verdict of a validator.
  public enum ValidationResult: Sendable {
    /// The response is accepted.
    case Success
    /// The response is refused, and this is the error that handlers get.
    case Failure(NSError)
  }

  /// Checks a response.
  public typealias Validation = (URLRequest?, HTTPURLResponse) -> ValidationResult

  /// Adds a validator. It is not called if the request has failed or an earlier validator has refused the response,
  /// and not on the main queue. Its failure has no effect on handlers that were added before it.
  @discardableResult
  public func validate(_ validation: @escaping Validation) -> Self {
    let validation = Boxed(validation)
    completionQueue.add {
      let (error, response) = self.record.withLock { ($0.error, $0.response) }
      guard error == nil, let response else { return }
      guard case .Failure(let refusal) = validation.value(self.request, response) else { return }
      self.record.withLock { $0.error = refusal }
    }
    return self
  }

  /// Refuses status codes other than these: `StatusCodeValidationFailed`.
  @discardableResult
  public func validate<S: Sequence>(statusCode acceptableStatusCode: S) -> Self where S.Element == Int {
    validate { _, response in
      acceptableStatusCode.contains(response.statusCode)
        ? .Success : .Failure(.unacceptable(status: response.statusCode))
    }
  }

  /// Accepts only these content types: `ContentTypeValidationFailed`. In them, `*` matches any type or subtype;
  /// parameters are ignored. A response without a body is always accepted.
  @discardableResult
  public func validate<S: Sequence>(contentType acceptableContentTypes: S) -> Self
  where S.Element == String {
    let accepted = acceptableContentTypes.compactMap { MIMEType($0) }
    return validate { _, response in
      if self.record.withLock({ $0 }).hasEmptyBody { return .Success }
      let shown = response.value(forHTTPHeaderField: "Content-Type")
      if let type = shown.flatMap({ MIMEType($0) }) {
        return accepted.contains { $0.covers(type) } ? .Success : .Failure(.unacceptable(contentType: shown))
      }
      return accepted.contains { $0.isAny } ? .Success : .Failure(.unacceptable(contentType: shown))
    }
  }

  /// Refuses status codes other than 200 to 299, and content types that the request's field `Accept` does not
  /// name, if it has one.
  @discardableResult
  public func validate() -> Self {
    let accept = request?.value(forHTTPHeaderField: "Accept")
    let types = accept?.split(separator: ",").map(String.init) ?? ["*/*"]
    return validate(statusCode: 200..<300).validate(contentType: types)
  }
}

/// A type and a subtype, either of which can be `*` (RFC 9110 §8.3.1, §12.5.1).
private struct MIMEType {
  let type: Substring
  let subtype: Substring

  init?(_ text: String) {
    let bare = text.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
    let parts = bare.split(separator: "/", maxSplits: 1)
    guard parts.count == 2 else { return nil }
    type = parts[0]
    subtype = parts[1]
  }

  var isAny: Bool { type == "*" && subtype == "*" }

  func covers(_ other: MIMEType) -> Bool {
    (type == "*" || type == other.type) && (subtype == "*" || subtype == other.subtype)
  }
}
