import Foundation
import FoundationNetworking
import HTTPWire

/// One rule for responses. The built-in rules read our own values, so that they make no `HTTPURLResponse`.
enum Validator: Sendable {
  /// Status codes in `200..<300`, content types as the request's `Accept` allows.
  case automatic
  case statusCodes(Range<Int>)
  /// Content types; a body that is empty has none.
  case contentTypes(@Sendable (_ type: String?, _ isBodyEmpty: Bool) -> ValidationRules.Reason?)
  case custom(@Sendable (URLRequest?, HTTPURLResponse, Data?) -> Result<Void, any Error>)

  var runsUserCode: Bool {
    switch self {
    case .automatic, .statusCodes: false
    case .contentTypes, .custom: true
    }
  }

  /// Why the response does not pass; `nil` when it does.
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
  /// The bytes in memory; `nil` without a body, and if the body was handed out in chunks.
  let data: Data?
  let isEmpty: Bool

  /// - Parameter handedOut: The number of bytes that were handed out in chunks; `nil` if the body stays in memory.
  init(_ data: Data?, handedOut: Int64?) {
    self.data = handedOut == nil ? data : nil
    isEmpty = (data?.isEmpty ?? true) && (handedOut ?? 0) == 0
  }
}
