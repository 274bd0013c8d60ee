public import Foundation
public import FoundationNetworking

// The response to the handshake.
extension WebSocketRequest {
  /// Checks the response to the handshake. The data is ``data``.
  public typealias Validation = @Sendable (URLRequest?, HTTPURLResponse, Data?) -> ValidationResult

  /// The body of a response other than 101, at most a mebibyte; `nil` without one.
  public var data: Data? { core.state.withLock { $0.collectedBody } }

  /// Adds a validator of the response to the handshake. Validators run in their order, before `connected` and before
  /// the retriers; the first failure stops them and closes the connection. An error that is no `AFError` becomes
  /// `.customValidationFailed`. A status other than 101 is an error also if all validators accept it. Never called on
  /// the engine's thread.
  @preconcurrency
  @discardableResult
  public func validate(_ validation: @escaping Validation) -> Self {
    add(.custom(validation))
  }

  /// Accepts the given status codes; none if the sequence is empty. A status other than 101 is an error in any case.
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

  /// Accepts the status code 101. The error for another one is `.responseValidationFailed` with
  /// `.unacceptableStatusCode`, as for any request, in place of `URLError.badServerResponse`.
  @discardableResult
  public func validate() -> Self { add(.statusCodes(101..<102)) }

  private func add(_ validator: Validator) -> Self {
    core.add(validator)
    return self
  }
}
