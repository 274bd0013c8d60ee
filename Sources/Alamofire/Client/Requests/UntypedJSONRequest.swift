public import Foundation
public import HTTPWire

// `Any` is not `Sendable`, as the value of a response has to be. In the Swift 6 mode, in which this library is
// compiled, a response of `Any` cannot be written, but as an associated type it can. There are two forms of
// `responseJSON`: the form in the class has a `Sendable` value. It is chosen in either mode, unless the code around it
// asks for `Any`.

/// A request whose body can be read as JSON without a type: ``DataRequest``. Do not conform to it.
///
/// It has the form of `responseJSON` with a value of `Any`, for code in the Swift 5 mode.
public protocol UntypedJSONRequest: AnyObject {
  /// `Any`.
  associatedtype JSONObject
}

/// A download whose file can be read as JSON without a type: ``DownloadRequest``. Do not conform to it.
///
/// It has the form of `responseJSON` with a value of `Any`, for code in the Swift 5 mode.
public protocol UntypedJSONDownload: AnyObject {
  /// `Any`.
  associatedtype JSONObject
}

extension DataRequest: UntypedJSONRequest {
  /// The value of untyped JSON.
  public typealias JSONObject = Any

  /// Adds a handler that gets the body as untyped JSON: dictionaries, arrays, strings, numbers, `NSNull`.
  ///
  /// - Parameters:
  ///   - queue: The queue of the handler. Default: the main queue.
  ///   - dataPreprocessor: Changes the body first. Default: leaves it as it is.
  ///   - emptyResponseCodes: Status codes that allow an empty body, which gives `NSNull`. Default: 204 and 205.
  ///   - emptyRequestMethods: Methods that allow an empty body. Default: HEAD.
  ///   - options: The options of `JSONSerialization`. Default: values of any kind are allowed.
  ///   - completionHandler: Called once.
  @preconcurrency
  @available(*, deprecated, message: "Use responseDecodable, which gives values of your own types.")
  @discardableResult
  public func responseJSON(
    queue: DispatchQueue = .main,
    dataPreprocessor: any DataPreprocessor = PassthroughPreprocessor(),
    emptyResponseCodes: Set<Int> = [204, 205], emptyRequestMethods: Set<HTTPMethod> = [.head],
    options: JSONSerialization.ReadingOptions = .allowFragments,
    completionHandler: @escaping @Sendable (AFDataResponse<any Any & Sendable>) -> Void
  ) -> Self {
    let serializer = UntypedJSONSerializer(
      dataPreprocessor: dataPreprocessor, emptyResponseCodes: emptyResponseCodes,
      emptyRequestMethods: emptyRequestMethods, options: options)
    return addUntyped(serializer, queue) { completionHandler($0.map(\.sendable)) }
  }
}

extension DownloadRequest: UntypedJSONDownload {
  /// The value of untyped JSON.
  public typealias JSONObject = Any

  /// Calls `completionHandler` with the JSON of the file as an untyped value.
  ///
  /// - Parameters:
  ///   - queue: The queue of `completionHandler`. Default: the main queue.
  ///   - dataPreprocessor: The transformation of the bytes before they are parsed. Default: none.
  ///   - emptyResponseCodes: The status codes for which an empty file gives `NSNull`. Default: 204 and 205.
  ///   - emptyRequestMethods: The methods for which it does. Default: `HEAD`.
  ///   - options: The options of `JSONSerialization`. Default: top-level values of any type are allowed.
  ///   - completionHandler: Called once.
  @preconcurrency
  @available(*, deprecated, message: "Use responseDecodable, which gives values of your own types.")
  @discardableResult
  public func responseJSON(
    queue: DispatchQueue = .main,
    dataPreprocessor: any DataPreprocessor = PassthroughPreprocessor(),
    emptyResponseCodes: Set<Int> = [204, 205], emptyRequestMethods: Set<HTTPMethod> = [.head],
    options: JSONSerialization.ReadingOptions = .allowFragments,
    completionHandler: @escaping @Sendable (AFDownloadResponse<any Any & Sendable>) -> Void
  ) -> Self {
    let serializer = UntypedJSONSerializer(
      dataPreprocessor: dataPreprocessor, emptyResponseCodes: emptyResponseCodes,
      emptyRequestMethods: emptyRequestMethods, options: options)
    return addUntyped(serializer, queue) { completionHandler($0.map(\.sendable)) }
  }
}

extension UntypedJSONRequest {
  /// Adds a handler that gets the body as untyped JSON. The parameters are the same as in the form with a `Sendable`
  /// value.
  @preconcurrency
  @available(*, deprecated, message: "Use responseDecodable, which gives values of your own types.")
  @discardableResult
  public func responseJSON(
    queue: DispatchQueue = .main,
    dataPreprocessor: any DataPreprocessor = PassthroughPreprocessor(),
    emptyResponseCodes: Set<Int> = [204, 205], emptyRequestMethods: Set<HTTPMethod> = [.head],
    options: JSONSerialization.ReadingOptions = .allowFragments,
    completionHandler: @escaping @Sendable (AFDataResponse<JSONObject>) -> Void
  ) -> Self where JSONObject: Sendable {
    let serializer = UntypedJSONSerializer(
      dataPreprocessor: dataPreprocessor, emptyResponseCodes: emptyResponseCodes,
      emptyRequestMethods: emptyRequestMethods, options: options)
    (self as? DataRequest)?.addUntyped(serializer, queue) { completionHandler($0.map { $0.object() }) }
    return self
  }
}

extension UntypedJSONDownload {
  /// Calls `completionHandler` with the JSON of the file. The parameters are the same as in the form with a `Sendable`
  /// value.
  @preconcurrency
  @available(*, deprecated, message: "Use responseDecodable, which gives values of your own types.")
  @discardableResult
  public func responseJSON(
    queue: DispatchQueue = .main,
    dataPreprocessor: any DataPreprocessor = PassthroughPreprocessor(),
    emptyResponseCodes: Set<Int> = [204, 205], emptyRequestMethods: Set<HTTPMethod> = [.head],
    options: JSONSerialization.ReadingOptions = .allowFragments,
    completionHandler: @escaping @Sendable (AFDownloadResponse<JSONObject>) -> Void
  ) -> Self where JSONObject: Sendable {
    let serializer = UntypedJSONSerializer(
      dataPreprocessor: dataPreprocessor, emptyResponseCodes: emptyResponseCodes,
      emptyRequestMethods: emptyRequestMethods, options: options)
    (self as? DownloadRequest)?.addUntyped(serializer, queue) { completionHandler($0.map { $0.object() }) }
    return self
  }
}

extension DataRequest {
  @discardableResult
  fileprivate func addUntyped(
    _ serializer: UntypedJSONSerializer, _ queue: DispatchQueue,
    _ completion: @escaping @Sendable (AFDataResponse<UntypedJSON>) -> Void
  ) -> Self {
    add(Serialization(wire: serializer, runsUserCode: true), queue, completion)
  }
}

extension DownloadRequest {
  @discardableResult
  fileprivate func addUntyped(
    _ serializer: UntypedJSONSerializer, _ queue: DispatchQueue,
    _ completion: @escaping @Sendable (AFDownloadResponse<UntypedJSON>) -> Void
  ) -> Self {
    add(Serialization(download: serializer), queue, completion)
  }
}
