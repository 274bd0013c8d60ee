import Alamofire
public import Foundation
import FoundationNetworking

// The handlers of data requests and uploads. They are called on `queue`, by default the main one, in the order in which
// they were added. Each is called as soon as its own value has been created.
extension DataRequest {
  /// Adds a handler that gets the data without serialization.
  @discardableResult
  public func response(
    queue: DispatchQueue? = nil, completionHandler: @escaping (DefaultDataResponse) -> Void
  ) -> Self {
    let handler = Boxed(completionHandler)
    bridge.handle { outcome in
      let response = DefaultDataResponse(
        request: outcome.request, response: outcome.response, data: outcome.data, error: outcome.error,
        timeline: outcome.timeline, metrics: outcome.metrics)
      (queue ?? .main).async { handler.value(response) }
    }
    return self
  }

  /// Adds a handler that gets the value which a serializer makes. A serializer that fails leads to no retry.
  @discardableResult
  public func response<Serializer: DataResponseSerializerProtocol>(
    queue: DispatchQueue? = nil, responseSerializer: Serializer,
    completionHandler: @escaping (DataResponse<Serializer.SerializedObject>) -> Void
  ) -> Self {
    let handler = Boxed(completionHandler)
    bridge.handle { outcome in
      let result = responseSerializer.serializeResponse(
        outcome.request, outcome.response, outcome.data, outcome.error)
      var response = DataResponse(
        request: outcome.request, response: outcome.response, data: outcome.data, result: result,
        timeline: outcome.timeline)
      response.metrics = outcome.metrics
      let made = Boxed(response)
      (queue ?? .main).async { handler.value(made.value) }
    }
    return self
  }

  /// Adds a handler that gets the unchanged body, which may be empty.
  @discardableResult
  public func responseData(
    queue: DispatchQueue? = nil, completionHandler: @escaping (DataResponse<Data>) -> Void
  ) -> Self {
    response(
      queue: queue, responseSerializer: Self.dataResponseSerializer(), completionHandler: completionHandler)
  }

  /// Adds a handler that gets the body as text.
  ///
  /// - Parameters:
  ///   - queue:             The queue of the handler. Default: the main queue.
  ///   - encoding:          The encoding. Default: the response's, else UTF-8 for JSON and ISO Latin 1.
  ///   - completionHandler: Called once.
  @discardableResult
  public func responseString(
    queue: DispatchQueue? = nil, encoding: String.Encoding? = nil,
    completionHandler: @escaping (DataResponse<String>) -> Void
  ) -> Self {
    response(
      queue: queue, responseSerializer: Self.stringResponseSerializer(encoding: encoding),
      completionHandler: completionHandler)
  }

  /// Adds a handler that gets the body as JSON: dictionaries, arrays, strings, numbers, `NSNull`.
  ///
  /// - Parameters:
  ///   - queue:             The queue of the handler. Default: the main queue.
  ///   - options:           The options of `JSONSerialization`. Default: values of any kind are allowed.
  ///   - completionHandler: Called once.
  @discardableResult
  public func responseJSON(
    queue: DispatchQueue? = nil, options: JSONSerialization.ReadingOptions = .allowFragments,
    completionHandler: @escaping (DataResponse<Any>) -> Void
  ) -> Self {
    response(
      queue: queue, responseSerializer: Self.jsonResponseSerializer(options: options),
      completionHandler: completionHandler)
  }

  /// Adds a handler that gets the body as a property list.
  ///
  /// - Parameters:
  ///   - queue:             The queue of the handler. Default: the main queue.
  ///   - options:           The options of `PropertyListSerialization`. Default: none.
  ///   - completionHandler: Called once.
  @discardableResult
  public func responsePropertyList(
    queue: DispatchQueue? = nil, options: PropertyListSerialization.ReadOptions = [],
    completionHandler: @escaping (DataResponse<Any>) -> Void
  ) -> Self {
    response(
      queue: queue, responseSerializer: Self.propertyListResponseSerializer(options: options),
      completionHandler: completionHandler)
  }
}

extension DataRequest {
  /// Makes a serializer that returns the body unchanged. 204 and 205 give empty data; a response without a body gives
  /// `AFError`'s `.inputDataNil`.
  public static func dataResponseSerializer() -> DataResponseSerializer<Data> {
    DataResponseSerializer { _, response, data, error in
      Request.serializeResponseData(response: response, data: data, error: error)
    }
  }

  /// Makes a serializer that returns the body as text.
  public static func stringResponseSerializer(
    encoding: String.Encoding? = nil
  ) -> DataResponseSerializer<String> {
    DataResponseSerializer { _, response, data, error in
      Request.serializeResponseString(encoding: encoding, response: response, data: data, error: error)
    }
  }

  /// Makes a serializer that parses the body as JSON.
  public static func jsonResponseSerializer(
    options: JSONSerialization.ReadingOptions = .allowFragments
  ) -> DataResponseSerializer<Any> {
    DataResponseSerializer { _, response, data, error in
      Request.serializeResponseJSON(options: options, response: response, data: data, error: error)
    }
  }

  /// Makes a serializer that parses the body as a property list.
  public static func propertyListResponseSerializer(
    options: PropertyListSerialization.ReadOptions = []
  ) -> DataResponseSerializer<Any> {
    DataResponseSerializer { _, response, data, error in
      Request.serializeResponsePropertyList(options: options, response: response, data: data, error: error)
    }
  }
}

// The handlers of downloads. They are called on `queue`, by default the main one, in the order in which they were
// added. Each is called as soon as its own value has been created.
extension DownloadRequest {
  /// Adds a handler that gets where the file is, without reading it.
  @discardableResult
  public func response(
    queue: DispatchQueue? = nil, completionHandler: @escaping (DefaultDownloadResponse) -> Void
  ) -> Self {
    let handler = Boxed(completionHandler)
    bridge.handle { outcome in
      let response = DefaultDownloadResponse(
        request: outcome.request, response: outcome.response, temporaryURL: outcome.temporaryURL,
        destinationURL: outcome.destinationURL, resumeData: outcome.resumeData, error: outcome.error,
        timeline: outcome.timeline, metrics: outcome.metrics)
      (queue ?? .main).async { handler.value(response) }
    }
    return self
  }

  /// Adds a handler that gets the value which a serializer makes of the file. A serializer that fails leads to no
  /// retry.
  @discardableResult
  public func response<Serializer: DownloadResponseSerializerProtocol>(
    queue: DispatchQueue? = nil, responseSerializer: Serializer,
    completionHandler: @escaping (DownloadResponse<Serializer.SerializedObject>) -> Void
  ) -> Self {
    let handler = Boxed(completionHandler)
    bridge.handle { outcome in
      let result = responseSerializer.serializeResponse(
        outcome.request, outcome.response, outcome.fileURL, outcome.error)
      var response = DownloadResponse(
        request: outcome.request, response: outcome.response, temporaryURL: outcome.temporaryURL,
        destinationURL: outcome.destinationURL, resumeData: outcome.resumeData, result: result,
        timeline: outcome.timeline)
      response.metrics = outcome.metrics
      let made = Boxed(response)
      (queue ?? .main).async { handler.value(made.value) }
    }
    return self
  }

  /// Adds a handler that gets the bytes of the file; an empty one is fine.
  @discardableResult
  public func responseData(
    queue: DispatchQueue? = nil, completionHandler: @escaping (DownloadResponse<Data>) -> Void
  ) -> Self {
    response(
      queue: queue, responseSerializer: Self.dataResponseSerializer(), completionHandler: completionHandler)
  }

  /// Adds a handler that gets the text of the file.
  ///
  /// - Parameters:
  ///   - queue:             The queue of the handler. Default: the main queue.
  ///   - encoding:          The encoding. Default: the response's, else UTF-8 for JSON and ISO Latin 1.
  ///   - completionHandler: Called once.
  @discardableResult
  public func responseString(
    queue: DispatchQueue? = nil, encoding: String.Encoding? = nil,
    completionHandler: @escaping (DownloadResponse<String>) -> Void
  ) -> Self {
    response(
      queue: queue, responseSerializer: Self.stringResponseSerializer(encoding: encoding),
      completionHandler: completionHandler)
  }

  /// Adds a handler that gets the JSON of the file.
  ///
  /// - Parameters:
  ///   - queue:             The queue of the handler. Default: the main queue.
  ///   - options:           The options of `JSONSerialization`. Default: values of any kind are allowed.
  ///   - completionHandler: Called once.
  @discardableResult
  public func responseJSON(
    queue: DispatchQueue? = nil, options: JSONSerialization.ReadingOptions = .allowFragments,
    completionHandler: @escaping (DownloadResponse<Any>) -> Void
  ) -> Self {
    response(
      queue: queue, responseSerializer: Self.jsonResponseSerializer(options: options),
      completionHandler: completionHandler)
  }

  /// Adds a handler that gets the property list of the file.
  ///
  /// - Parameters:
  ///   - queue:             The queue of the handler. Default: the main queue.
  ///   - options:           The options of `PropertyListSerialization`. Default: none.
  ///   - completionHandler: Called once.
  @discardableResult
  public func responsePropertyList(
    queue: DispatchQueue? = nil, options: PropertyListSerialization.ReadOptions = [],
    completionHandler: @escaping (DownloadResponse<Any>) -> Void
  ) -> Self {
    response(
      queue: queue, responseSerializer: Self.propertyListResponseSerializer(options: options),
      completionHandler: completionHandler)
  }
}

extension DownloadRequest {
  /// Makes a serializer that returns the bytes of the file.
  public static func dataResponseSerializer() -> DownloadResponseSerializer<Data> {
    reading { Request.serializeResponseData(response: $0, data: $1, error: nil) }
  }

  /// Makes a serializer that returns the text of the file.
  public static func stringResponseSerializer(
    encoding: String.Encoding? = nil
  ) -> DownloadResponseSerializer<String> {
    reading { Request.serializeResponseString(encoding: encoding, response: $0, data: $1, error: nil) }
  }

  /// Makes a serializer that parses the file as JSON.
  public static func jsonResponseSerializer(
    options: JSONSerialization.ReadingOptions = .allowFragments
  ) -> DownloadResponseSerializer<Any> {
    reading { Request.serializeResponseJSON(options: options, response: $0, data: $1, error: nil) }
  }

  /// Makes a serializer that parses the file as a property list.
  public static func propertyListResponseSerializer(
    options: PropertyListSerialization.ReadOptions = []
  ) -> DownloadResponseSerializer<Any> {
    reading { Request.serializeResponsePropertyList(options: options, response: $0, data: $1, error: nil) }
  }

  private static func reading<Value>(
    _ serialize: @escaping (HTTPURLResponse?, Data) -> Result<Value>
  ) -> DownloadResponseSerializer<Value> {
    DownloadResponseSerializer { _, response, fileURL, error in
      switch Serialization.contents(of: fileURL, error: error) {
      case .success(let data): serialize(response, data)
      case .failure(let error): .failure(error)
      }
    }
  }
}

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
