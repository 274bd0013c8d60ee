public import Foundation
public import FoundationNetworking
import HTTPWire
import Synchronization

/// A request whose response is handed out as it comes, and kept nowhere.
///
/// Each handler gets every piece in its order, then ``Event/complete(_:)`` once. Handlers may be slow: what waits for
/// the slowest one is limited to about a mebibyte, then the server has to wait. Without a handler the body is read and
/// forgotten. A handler that is added while the body comes gets the rest, one that is added after the end the
/// completion alone. A retry hands out the new response from its beginning.
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
public final class DataStreamRequest: Request, @unchecked Sendable {
  // Unchecked, as ``Request`` is: what it adds is constant.

  /// Called with each event of a stream. What it throws ends the request: an ``AFError`` as it is, another error as
  /// `.customSerializationFailed`; the handler then gets its completion alone. What it throws there is lost.
  public typealias Handler<Success, Failure: Error> =
    @Sendable (_ stream: Stream<Success, Failure>) throws -> Void

  /// Judges a response.
  public typealias Validation = @Sendable (URLRequest?, HTTPURLResponse) -> ValidationResult

  /// What the request was made from; asked again for each attempt.
  public var convertible: any URLRequestConvertible { core.convertible }

  /// Whether a piece that a serializer refuses cancels the request. Default: `false`, the stream goes on.
  public let automaticallyCancelOnStreamError: Bool

  package let flow: StreamFlow

  init(core: RequestCore, flow: StreamFlow, automaticallyCancelOnStreamError: Bool) {
    self.flow = flow
    self.automaticallyCancelOnStreamError = automaticallyCancelOnStreamError
    super.init(core: core)
  }

  // MARK: Validation

  /// Adds a validator. Validators run in their order when all of the response has come, before retriers are asked; a
  /// failure is the error of the completion. What has come is handed out all the same. Not called on the engine's
  /// thread.
  @preconcurrency
  @discardableResult
  public func validate(_ validation: @escaping Validation) -> Self {
    add(.custom { request, response, _ in validation(request, response) })
  }

  /// Accepts the given status codes alone; none at all if the sequence is empty.
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

  /// Accepts the given media types alone, wildcards such as `image/*` among them, also for an empty body. The types are
  /// asked for when the response has come.
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

  /// Accepts status codes from 200 to 299, and the media types that the request's `Accept` field names (all, without
  /// one).
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
    core.state.withLock { $0.validators.append(validator) }
    return self
  }

  // MARK: The head of the response

  /// Calls `handler` on `queue` (default: main) with the response before its body is read, as
  /// the form of ``DataRequest`` does. With
  /// ``Request/ResponseDisposition/cancel`` nothing of the body is handed out.
  @preconcurrency
  @discardableResult
  public func onHTTPResponse(
    on queue: DispatchQueue = .main,
    perform handler:
      @escaping @Sendable (
        _ response: HTTPURLResponse, _ completionHandler: @escaping @Sendable (ResponseDisposition) -> Void
      ) -> Void
  ) -> Self {
    core.setHeadHandler(HeadHandler(queue: queue, kind: .decide(handler)))
    return self
  }

  /// Calls `handler` on `queue` (default: main) with the response before its body has come.
  @preconcurrency
  @discardableResult
  public func onHTTPResponse(
    on queue: DispatchQueue = .main, perform handler: @escaping @Sendable (HTTPURLResponse) -> Void
  ) -> Self {
    core.setHeadHandler(HeadHandler(queue: queue, kind: .observe(handler)))
    return self
  }
}
