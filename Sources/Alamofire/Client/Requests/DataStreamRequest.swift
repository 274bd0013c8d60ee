public import Foundation
public import FoundationNetworking
import HTTPWire
import Synchronization

/// A request whose response is delivered in chunks and not retained.
///
/// Each handler gets every chunk in order, then ``Event/complete(_:)`` once. If a handler is slow, about a mebibyte
/// is buffered, then the server has to wait. Without a handler the body is discarded. A handler that is added during
/// the body gets the rest; added after the end, only the completion. A retry delivers the new response from its
/// beginning.
///
/// ```swift
/// AF.streamRequest("https://httpbin.org/stream/100")
///   .validate()
///   .responseStreamDecodable(of: Item.self) { stream in
///     switch stream.event {
///     case .stream(.success(let item)): print(item)
///     case .stream(.failure(let error)): print("not an item: \(error)")
///     case .complete(let completion): print(completion.error ?? "the end")
///     }
///   }
/// ```
public class DataStreamRequest: Request, @unchecked Sendable {
  // Unchecked, as ``Request`` is: its own properties are constants.

  /// Called with each event of a stream. An error that it throws ends the request: an ``AFError`` unchanged, another
  /// one as `.customSerializationFailed`. The handler then gets only its completion, whose errors are ignored.
  public typealias Handler<Success: Sendable, Failure: Error> =
    @Sendable (_ stream: Stream<Success, Failure>) throws -> Void

  /// Checks a response.
  public typealias Validation = @Sendable (URLRequest?, HTTPURLResponse) -> ValidationResult

  /// The value that makes the `URLRequest`; used again for each attempt.
  public var convertible: any URLRequestConvertible { core.convertible }

  /// Whether an error of a serializer cancels the request. Default: `false`, the stream continues.
  public let automaticallyCancelOnStreamError: Bool

  package let flow: StreamFlow

  init(_ parts: RequestParts, flow: StreamFlow, automaticallyCancelOnStreamError: Bool) {
    self.flow = flow
    self.automaticallyCancelOnStreamError = automaticallyCancelOnStreamError
    super.init(parts)
  }

  // MARK: Validation

  /// Adds a validator. Validators run in their order after the whole response, before the retriers; a failure is the
  /// error of the completion. The chunks are delivered in any case. Never called on the engine's thread.
  @preconcurrency
  @discardableResult
  public func validate(_ validation: @escaping Validation) -> Self {
    add(.custom { request, response, _ in validation(request, response) })
  }

  /// Accepts the given status codes; none if the sequence is empty.
  @preconcurrency
  @discardableResult
  public func validate<Codes: Sequence & Sendable>(statusCode acceptableStatusCodes: Codes) -> Self
  where Codes.Element == Int {
    if let range = acceptableStatusCodes as? Range<Int> { return add(.statusCodes(range)) }
    return validate { _, response in
      ValidationRules.statusCode(response.statusCode, in: acceptableStatusCodes)
        .map { .failure(AFError.responseValidationFailed(reason: $0)) } ?? .success(())
    }
  }

  /// Accepts the given media types, including wildcards such as `image/*`, also for an empty body. The closure is
  /// evaluated after the response.
  @preconcurrency
  @discardableResult
  public func validate<Types: Sequence & Sendable>(
    contentType acceptableContentTypes: @escaping @Sendable @autoclosure () -> Types
  ) -> Self where Types.Element == String {
    validate { _, response in
      ValidationRules.contentType(
        response.value(forHTTPHeaderField: "Content-Type"), in: acceptableContentTypes(), isBodyEmpty: false
      ).map { .failure(AFError.responseValidationFailed(reason: $0)) } ?? .success(())
    }
  }

  /// Accepts status codes from 200 to 299, and the media types of the request's `Accept` field; all without one.
  @discardableResult
  public func validate() -> Self {
    validate(statusCode: 200..<300).validate { request, response in
      let acceptable = ValidationRules.acceptableContentTypes(accept: request?.headers["Accept"])
      return ValidationRules.contentType(
        response.value(forHTTPHeaderField: "Content-Type"), in: acceptable, isBodyEmpty: false
      ).map { .failure(AFError.responseValidationFailed(reason: $0)) } ?? .success(())
    }
  }

  private func add(_ validator: Validator) -> Self {
    core.add(validator)
    return self
  }

  // MARK: The head of the response

  /// Calls `handler` on `queue` (default: main) with the response before its body is read, as the method of
  /// ``DataRequest`` does. With ``Request/ResponseDisposition/cancel`` no chunk is delivered.
  @preconcurrency
  @discardableResult
  public func onHTTPResponse(
    on queue: DispatchQueue = .main,
    perform handler:
      @escaping @Sendable (
        _ response: HTTPURLResponse, _ completionHandler: @escaping @Sendable (ResponseDisposition) -> Void
      ) -> Void
  ) -> Self {
    core.setHeadHandler(HeadHandler(queue: queue, handler))
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
