public import Foundation
public import FoundationNetworking

extension Request {
  /// Calls `completionHandler` after the end of the request with the data unchanged. For a download, these are its
  /// resume data.
  ///
  /// - Parameters:
  ///   - queue: The queue of the handler. Default: the main queue.
  ///   - completionHandler: The handler.
  @discardableResult
  public func response(
    queue: DispatchQueue? = nil,
    completionHandler: @escaping (URLRequest?, HTTPURLResponse?, Data?, NSError?) -> Void
  ) -> Self {
    let completion = Boxed(completionHandler)
    completionQueue.add(for: self) { request in
      let record = request.record.withLock { $0 }
      (queue ?? .main).async {
        completion.value(request.request, record.response, record.data, record.error)
      }
    }
    return self
  }

  /// Calls a closure with one parameter, a tuple of all four values, when the request is over.
  @_disfavoredOverload
  @discardableResult
  public func response(
    queue: DispatchQueue? = nil,
    completionHandler:
      @escaping ((request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: NSError?)) -> Void
  ) -> Self {
    response(queue: queue) { completionHandler(($0, $1, $2, $3)) }
  }

  /// Calls `completionHandler` after the end of the request with the result of the serializer, which does not run on
  /// the main queue.
  ///
  /// - Parameters:
  ///   - queue: The queue of the handler. Default: the main queue.
  ///   - responseSerializer: Makes the value. The request is not retried after its failure.
  ///   - completionHandler: The handler.
  @discardableResult
  public func response<Serializer: ResponseSerializerType>(
    queue: DispatchQueue? = nil, responseSerializer: Serializer,
    completionHandler: @escaping (Response<Serializer.SerializedObject, Serializer.ErrorObject>) -> Void
  ) -> Self {
    add(responseSerializer.serializeResponse, queue, completionHandler)
  }

  private func add<Value, Failure: Error>(
    _ serialize: @escaping (URLRequest?, HTTPURLResponse?, Data?, NSError?) -> Result<Value, Failure>,
    _ queue: DispatchQueue?, _ completion: @escaping (Response<Value, Failure>) -> Void
  ) -> Self {
    let user = Boxed((serialize: serialize, completion: completion))
    completionQueue.add(for: self) { request in
      let urlRequest = request.request
      let record = request.record.withLock { $0 }
      let result = user.value.serialize(urlRequest, record.response, record.data, record.error)
      let response = Boxed(
        Response(
          request: urlRequest, response: record.response, data: record.data, result: result,
          timeline: record.timeline))
      (queue ?? .main).async { user.value.completion(response.value) }
    }
    return self
  }

  /// Calls `completionHandler` with the bytes of the body; see ``dataResponseSerializer()``.
  @discardableResult
  public func responseData(
    queue: DispatchQueue? = nil, completionHandler: @escaping (Response<Data, NSError>) -> Void
  ) -> Self {
    response(
      queue: queue, responseSerializer: Request.dataResponseSerializer(),
      completionHandler: completionHandler)
  }

  /// Calls `completionHandler` with the body as text; see ``stringResponseSerializer(encoding:)``.
  @discardableResult
  public func responseString(
    queue: DispatchQueue? = nil, encoding: String.Encoding? = nil,
    completionHandler: @escaping (Response<String, NSError>) -> Void
  ) -> Self {
    response(
      queue: queue, responseSerializer: Request.stringResponseSerializer(encoding: encoding),
      completionHandler: completionHandler)
  }

  /// Calls `completionHandler` with the body read as JSON; see ``JSONResponseSerializer(options:)``.
  @discardableResult
  public func responseJSON(
    queue: DispatchQueue? = nil, options: JSONSerialization.ReadingOptions = .allowFragments,
    completionHandler: @escaping (Response<Any, NSError>) -> Void
  ) -> Self {
    response(
      queue: queue, responseSerializer: Request.JSONResponseSerializer(options: options),
      completionHandler: completionHandler)
  }

  /// Calls `completionHandler` with the body read as a property list; see
  /// ``propertyListResponseSerializer(options:)``.
  @discardableResult
  public func responsePropertyList(
    queue: DispatchQueue? = nil, options: PropertyListSerialization.ReadOptions = [],
    completionHandler: @escaping (Response<Any, NSError>) -> Void
  ) -> Self {
    response(
      queue: queue, responseSerializer: Request.propertyListResponseSerializer(options: options),
      completionHandler: completionHandler)
  }
}

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
    check { request, response in validation(request.request, response) }
  }

  /// Adds a validator that gets the request itself, so that it need not retain it.
  private func check(_ validation: @escaping (Request, HTTPURLResponse) -> ValidationResult) -> Self {
    let validation = Boxed(validation)
    completionQueue.add(for: self) { request in
      let (error, response) = request.record.withLock { ($0.error, $0.response) }
      guard error == nil, let response else { return }
      guard case .Failure(let refusal) = validation.value(request, response) else { return }
      request.record.withLock { $0.error = refusal }
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
    return check { request, response in
      if request.record.withLock({ $0 }).hasEmptyBody { return .Success }
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

/// The validators and handlers of a request, which run one after the other in the order in which they were added. They
/// do not run before the request has ended, nor while it is suspended.
///
/// All functions take the request, because what waits must not retain it: a request that is never started would not be
/// released.
final class CompletionQueue: Sendable {
  typealias Step = @Sendable (Request) -> Void

  private struct State {
    /// The number of ends that are still missing.
    var pendingEnds = 1
    var isHeld = false
    var isRunning = false
    var steps: [Step] = []
    /// The request from its start to the last of its ends: users need not retain it.
    var running: Request?

    /// Whether the next step may run.
    var hasNext: Bool { pendingEnds == 0 && !isHeld && !steps.isEmpty }
  }

  /// The queue of the steps. Each request has its own, so that a slow serializer delays no other request.
  let queue = DispatchQueue(label: "com.alamofire.request")
  /// The handlers in their order, for any thread.
  private let state = Mutex(State())

  func add(for request: Request, _ step: @escaping Step) {
    change(for: request) { $0.steps.append(step) }
  }

  /// Notes that the request was started or cancelled, and will end.
  func start(for request: Request) { change(for: request) { $0.running = request } }

  /// Waits for one more end, also if the request has ended.
  func close(for request: Request) {
    change(for: request) { state in
      if state.pendingEnds == 0 { state.running = request }
      state.pendingEnds += 1
    }
  }

  /// Notes that the request, or another step that was waited for, has ended.
  func open(for request: Request) { change(for: request) { $0.pendingEnds -= 1 } }

  func hold(for request: Request) { change(for: request) { $0.isHeld = true } }

  func release(for request: Request) { change(for: request) { $0.isHeld = false } }

  private func change(for request: Request, _ body: (inout sending State) -> Void) {
    let begins = state.withLock { state in
      body(&state)
      // The caller still has a reference, so that nothing is released under the lock.
      if state.pendingEnds == 0 { state.running = nil }
      guard state.hasNext, !state.isRunning else { return false }
      state.isRunning = true
      return true
    }
    guard begins else { return }
    queue.async {
      while let step = self.next() { step(request) }
    }
  }

  private func next() -> Step? {
    state.withLock { state in
      guard state.hasNext else {
        state.isRunning = false
        return nil
      }
      return state.steps.removeFirst()
    }
  }
}
