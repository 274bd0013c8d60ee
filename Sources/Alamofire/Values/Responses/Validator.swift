import Foundation
import FoundationNetworking
import HTTPWire

/// One rule for responses. The built-in rules read our own values, so that they make no `HTTPURLResponse`.
enum Validator: Sendable {
  /// Status codes in `200..<300`, content types as the request's `Accept` allows.
  case automatic
  case statusCodes(Range<Int>)
  /// Content types as the request's `Accept` allows.
  case acceptedContentTypes
  /// Content types; a body that is empty has none.
  case contentTypes(@Sendable (_ type: String?, _ isBodyEmpty: Bool) -> ValidationRules.Reason?)
  case custom(@Sendable (URLRequest?, HTTPURLResponse, Data?) -> Result<Void, any Error>)

  var runsUserCode: Bool {
    switch self {
    case .automatic, .statusCodes, .acceptedContentTypes: false
    case .contentTypes, .custom: true
    }
  }

  /// The rules that monitors see one by one.
  var rules: [Validator] {
    guard case .automatic = self else { return [self] }
    return [.statusCodes(ValidationRules.successfulStatusCodes), .acceptedContentTypes]
  }

  /// Returns the reason why the response is not valid; `nil` if it is.
  func failure(_ request: URLRequest?, _ exchange: Exchange, _ body: ValidationBody) -> AFError? {
    do throws(AFError) {
      try check(request, exchange, body)
      return nil
    } catch {
      return error
    }
  }

  func check(_ request: URLRequest?, _ exchange: Exchange, _ body: ValidationBody) throws(AFError) {
    guard let head = exchange.head else { return }
    switch self {
    case .automatic:
      let reason = ValidationRules.standard(
        status: head.status, contentType: head.block.value(of: "Content-Type"),
        accept: request?.headers["Accept"],
        isBodyEmpty: body.isEmpty)
      if let reason { throw .responseValidationFailed(reason: reason) }
    case .statusCodes(let range): try Self.check(statusCodes: range, head)
    case .acceptedContentTypes:
      let reason = ValidationRules.acceptedContentType(
        head.block.value(of: "Content-Type"), accept: request?.headers["Accept"], isBodyEmpty: body.isEmpty)
      if let reason { throw .responseValidationFailed(reason: reason) }
    case .contentTypes(let rule):
      let reason = rule(head.block.value(of: "Content-Type"), body.isEmpty)
      if let reason { throw .responseValidationFailed(reason: reason) }
    case .custom(let validation):
      guard let response = exchange.httpResponse else { return }
      if case .failure(let error) = validation(request, response, body.data) {
        throw error as? AFError ?? .responseValidationFailed(reason: .customValidationFailed(error: error))
      }
    }
  }

  private static func check(statusCodes: Range<Int>, _ head: ResponseHead) throws(AFError) {
    guard !statusCodes.contains(head.status) else { return }
    throw .responseValidationFailed(reason: .unacceptableStatusCode(code: head.status))
  }
}

/// The body of a response, as far as validators may know it.
struct ValidationBody: Sendable {
  /// The bytes in memory; `nil` without a body, and if the body was delivered in chunks.
  let data: Data?
  let isEmpty: Bool

  /// Makes the body that validators see.
  ///
  /// - Parameter handedOut: The number of bytes that were delivered in chunks; `nil` if the body stays in memory.
  init(_ data: Data?, handedOut: Int64?) {
    self.data = handedOut == nil ? data : nil
    isEmpty = (data?.isEmpty ?? true) && (handedOut ?? 0) == 0
  }
}

/// The built-in validation, on plain values: no `HTTPURLResponse` is created for it.
///
/// Each rule answers with the reason why a response is refused, or `nil`.
package enum ValidationRules {
  package typealias Reason = AFError.ResponseValidationFailureReason

  /// The codes that `validate()` accepts.
  package static let successfulStatusCodes = 200..<300

  /// Returns the fault of a status code that is not acceptable. An empty sequence accepts none.
  package static func statusCode(_ status: Int, in acceptable: some Sequence<Int>) -> Reason? {
    acceptable.contains(status) ? nil : .unacceptableStatusCode(code: status)
  }

  /// Returns the fault of a content type that matches no acceptable one.
  ///
  /// An empty body always passes. Only acceptable types may have wildcards; the comparison is case-sensitive; invalid
  /// types match nothing. A response without a valid type passes only if every type is acceptable.
  ///
  /// - Parameters:
  ///   - contentType: The value of `Content-Type`.
  ///   - acceptable:  The acceptable types; with none, every response that has a body is refused.
  ///   - isBodyEmpty: Whether the body is known to be empty.
  package static func contentType(
    _ contentType: String?, in acceptable: some Sequence<String>, isBodyEmpty: Bool
  ) -> Reason? {
    guard !isBodyEmpty else { return nil }
    let acceptable = Array(acceptable)
    // The usual `Accept`, checked first.
    if acceptable.contains("*/*") { return nil }
    let types = acceptable.compactMap { MediaType($0) }
    if types.contains(where: \.isWildcard) { return nil }
    guard let contentType, let type = MediaType(contentType) else {
      return .missingContentType(acceptableContentTypes: acceptable.sorted())
    }
    guard !types.contains(where: { $0.matches(type) }) else { return nil }
    return .unacceptableContentType(
      acceptableContentTypes: acceptable.sorted(), responseContentType: "\(type.type)/\(type.subtype)")
  }

  /// Returns the fault of a downloaded file's content type. Empty files pass, so its size is read.
  ///
  /// Without a file the result is `.dataFileNil`, for an unreadable one `.dataFileReadFailed`. A file of unknown size
  /// counts as empty.
  package static func contentType(
    _ contentType: String?, in acceptable: some Sequence<String>, ofFileAt fileURL: URL?
  ) -> Reason? {
    guard let fileURL else { return .dataFileNil }
    guard fileURL.isFileURL, FileManager.default.isReadableFile(atPath: fileURL.path) else {
      return .dataFileReadFailed(at: fileURL)
    }
    let attributes = try? FileManager.default.attributesOfItem(atPath: fileURL.path)
    let size = attributes?[.size] as? Int ?? 0
    return self.contentType(contentType, in: acceptable, isBodyEmpty: size == 0)
  }

  /// Returns the types that a request accepts: its `Accept` field at the commas, or everything without one.
  package static func acceptableContentTypes(accept: String?) -> [String] {
    accept?.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) } ?? ["*/*"]
  }

  /// Performs `validate()`: a code from 200 to 299, and a type that the request accepts.
  package static func standard(
    status: Int, contentType: @autoclosure () -> String?, accept: String?,
    isBodyEmpty: @autoclosure () -> Bool
  ) -> Reason? {
    statusCode(status, in: successfulStatusCodes)
      ?? acceptedContentType(contentType(), accept: accept, isBodyEmpty: isBodyEmpty())
  }

  /// Returns the fault of a content type that a request with this `Accept` field does not allow.
  static func acceptedContentType(
    _ contentType: @autoclosure () -> String?, accept: String?, isBodyEmpty: @autoclosure () -> Bool
  ) -> Reason? {
    guard let accept, !isBodyEmpty() else { return nil }
    return self.contentType(contentType(), in: acceptableContentTypes(accept: accept), isBodyEmpty: false)
  }
}
