public import Foundation
public import FoundationNetworking
import HTTPWire
import Synchronization

/// A request whose response is kept in memory. A ``Session`` makes it.
///
/// ```swift
/// AF.request("https://example.com/user")
///   .validate()
///   .responseDecodable(of: User.self) { response in print(response.result) }
/// ```
public class DataRequest: Request, @unchecked Sendable {
  // Unchecked, as ``Request`` is: its own properties are constants.

  /// Evaluates a response: the request, the response, and the data, which is `nil` when there is none.
  public typealias Validation = @Sendable (URLRequest?, HTTPURLResponse, Data?) -> ValidationResult

  /// The value that makes the `URLRequest`; used anew for each attempt.
  public var convertible: any URLRequestConvertible { core.convertible }

  /// The body of the last response, after the end of the attempt; after a failure, the bytes received before it.
  /// `nil` if there were none, or if ``responseChunks(on:onRestart:perform:)`` delivers them.
  public var data: Data? { core.state.withLock { $0.collectedBody } }

  // MARK: Validation

  /// Adds a validator. Validators run in their order after a response, before the retriers and the handlers; the first
  /// failure stops them. Validators are skipped if the transfer failed. An error that is no `AFError` becomes
  /// `.customValidationFailed`. Never called on the engine's thread.
  @preconcurrency
  @discardableResult
  public func validate(_ validation: @escaping Validation) -> Self {
    add(.custom(validation))
  }

  /// Accepts the given status codes alone; none at all if the sequence is empty.
  @preconcurrency
  @discardableResult
  public func validate<Codes: Sequence & Sendable>(statusCode acceptableStatusCodes: Codes) -> Self
  where Codes.Element == Int {
    if let range = acceptableStatusCodes as? Range<Int> { return add(.statusCodes(range)) }
    return validate { _, response, _ in
      ValidationRules.statusCode(response.statusCode, in: acceptableStatusCodes)
        .map { .failure(AFError.responseValidationFailed(reason: $0)) } ?? .success(())
    }
  }

  /// Accepts the given media types, including wildcards such as `image/*`; an empty body is always accepted. The
  /// closure is evaluated after the response.
  @preconcurrency
  @discardableResult
  public func validate<Types: Sequence & Sendable>(
    contentType acceptableContentTypes: @escaping @Sendable @autoclosure () -> Types
  ) -> Self where Types.Element == String {
    add(
      .contentTypes { type, isBodyEmpty in
        ValidationRules.contentType(type, in: acceptableContentTypes(), isBodyEmpty: isBodyEmpty)
      })
  }

  /// Accepts status codes from 200 to 299, and the media types that the request's `Accept` field names
  /// (all, without one).
  @discardableResult
  public func validate() -> Self {
    add(.automatic)
  }

  private func add(_ validator: Validator) -> Self {
    core.add(validator)
    return self
  }

  // MARK: The head of the response

  /// Calls `handler` on `queue` (default: main) with the response before its body is read. The body is read if the
  /// completion is called with ``Request/ResponseDisposition/allow`` or released without a call. With
  /// ``Request/ResponseDisposition/cancel`` the request is cancelled. The handler is called for each retry, but not
  /// for followed redirects. The last handler set is used.
  @preconcurrency
  @discardableResult
  public func onHTTPResponse(
    on queue: DispatchQueue = .main,
    perform handler:
      @escaping @Sendable (
        _ response: HTTPURLResponse, _ completionHandler: @escaping @Sendable (ResponseDisposition) -> Void
      ) -> Void
  ) -> Self {
    core.setHeadHandler(HeadHandler(queue: queue, closure: handler))
    return self
  }

  /// Calls `handler` on `queue` (default: main) with the response before its body is read. The body is read when the
  /// handler returns, so a queue that does not run holds the response back.
  @preconcurrency
  @discardableResult
  public func onHTTPResponse(
    on queue: DispatchQueue = .main, perform handler: @escaping @Sendable (HTTPURLResponse) -> Void
  ) -> Self {
    onHTTPResponse(on: queue) { response, completionHandler in
      handler(response)
      completionHandler(.allow)
    }
  }
}

extension Request {
  /// The decision about a response, made after its head.
  public enum ResponseDisposition: Sendable {
    /// The body of the response is read.
    case allow
    /// The request is cancelled.
    case cancel
  }
}
