import Alamofire
public import Foundation
public import FoundationNetworking

/// The argument of a response handler.
public struct Response<Value, Error: Swift.Error> {
  /// The request as it was created; `nil` if it could not be.
  public let request: URLRequest?
  /// The server's answer; `nil` when there was none.
  public let response: HTTPURLResponse?
  /// The body. `nil` for streams; for downloads, the resume data of one that failed.
  public let data: Data?
  /// The value of the serializer, or the error.
  public let result: Result<Value, Error>
  /// The points in time of the request.
  public let timeline: Timeline

  /// Makes a response of its parts.
  public init(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, result: Result<Value, Error>,
    timeline: Timeline = Timeline()
  ) {
    self.request = request
    self.response = response
    self.data = data
    self.result = result
    self.timeline = timeline
  }
}

extension Response: Sendable where Value: Sendable {}

extension Response: CustomStringConvertible, CustomDebugStringConvertible {
  /// `SUCCESS` or `FAILURE`, with the value or the error.
  public var description: String { result.debugDescription }

  /// Everything, a line each. Secrets of URLs and header fields are left out; see `Redaction`. The value is shown
  /// unchanged.
  public var debugDescription: String {
    [
      "[Request]: \(request?.debugLine ?? "nil")",
      "[Response]: \(response?.debugLine ?? "nil")",
      "[Data]: \(data?.count ?? 0) bytes",
      "[Result]: \(result.debugDescription)",
      "[Timeline]: \(timeline.debugDescription)",
    ].joined(separator: "\n")
  }
}

/// A value, or the error that prevented it.
public enum Result<Value, Error: Swift.Error> {
  /// A success, with its value.
  case Success(Value)
  /// A failure, with its error.
  case Failure(Error)

  /// Whether there is a value.
  public var isSuccess: Bool {
    if case .Success = self { true } else { false }
  }

  /// Whether there is an error.
  public var isFailure: Bool { !isSuccess }

  /// The value; `nil` after a failure.
  public var value: Value? {
    if case .Success(let value) = self { value } else { nil }
  }

  /// The error; `nil` after a success.
  public var error: Error? {
    if case .Failure(let error) = self { error } else { nil }
  }
}

extension Result: Sendable where Value: Sendable {}

extension Result: CustomStringConvertible, CustomDebugStringConvertible {
  /// `SUCCESS` or `FAILURE`.
  public var description: String { isSuccess ? "SUCCESS" : "FAILURE" }

  /// `SUCCESS` or `FAILURE`, with the value or the error. Secrets are left out of the error.
  public var debugDescription: String {
    switch self {
    case .Success(let value): ReadableText.lines("SUCCESS: \(value)")
    case .Failure(let error): ReadableText.lines("FAILURE: " + Redaction.standard.urls(in: "\(error)"))
    }
  }
}

/// A type that makes a value from a response.
public protocol ResponseSerializerType {
  /// The type of its values.
  associatedtype SerializedObject
  /// The type of its errors.
  associatedtype ErrorObject: Error

  /// Makes the value of the request, the response, the body and the error so far. Called away from the main queue,
  /// once for each handler; a failure never sends the request again.
  var serializeResponse:
    (URLRequest?, HTTPURLResponse?, Data?, NSError?) -> Result<SerializedObject, ErrorObject>
  { get }
}

/// A serializer created from a closure.
public struct ResponseSerializer<Value, Error: Swift.Error>: ResponseSerializerType {
  /// The type of its values.
  public typealias SerializedObject = Value
  /// The type of its errors.
  public typealias ErrorObject = Error

  /// The closure.
  public var serializeResponse: (URLRequest?, HTTPURLResponse?, Data?, NSError?) -> Result<Value, Error>

  /// Makes a serializer of the closure.
  public init(
    serializeResponse: @escaping (URLRequest?, HTTPURLResponse?, Data?, NSError?) -> Result<Value, Error>
  ) {
    self.serializeResponse = serializeResponse
  }
}

extension Request {
  /// Makes a serializer for the bytes of a body. If there is no response, or no body in memory (a download), the
  /// serializer fails with `DataSerializationFailed`. An empty body is accepted.
  public static func dataResponseSerializer() -> ResponseSerializer<Data, NSError> {
    serializer(emptyValue: Data(), missing: .DataSerializationFailed, "Data") { data, _ in data }
  }

  /// Makes a serializer for text.
  ///
  /// - Parameter encoding: The encoding of the text. Default: the response's, otherwise UTF-8 for JSON and ISO Latin 1
  ///   for other types. Bytes that are not text in it are `StringSerializationFailed`.
  public static func stringResponseSerializer(
    encoding: String.Encoding? = nil
  ) -> ResponseSerializer<String, NSError> {
    serializer(emptyValue: "", missing: .StringSerializationFailed, "String") { data, response in
      guard !data.isEmpty else { return "" }
      return try StringResponseSerializer(encoding: encoding).serialize(
        request: nil, response: response, data: data, error: nil)
    }
  }

  /// Makes a serializer for JSON. Without a body, the serializer fails with `JSONSerializationFailed`. With a body that
  /// is not JSON, it fails with Foundation's error.
  ///
  /// - Parameter options: The options of `JSONSerialization`. Default: values of any kind are accepted.
  public static func JSONResponseSerializer(
    options: JSONSerialization.ReadingOptions = .allowFragments
  ) -> ResponseSerializer<Any, NSError> {
    serializer(
      emptyValue: NSNull(), missing: .JSONSerializationFailed, "JSON", needsBytes: true
    ) { data, _ in
      try JSONSerialization.jsonObject(with: data, options: options)
    }
  }

  /// Makes a serializer for property lists. Without a body, the serializer fails with
  /// `PropertyListSerializationFailed`. With a body that is not a property list, it fails with Foundation's error.
  ///
  /// - Parameter options: The options of `PropertyListSerialization`. Default: none.
  public static func propertyListResponseSerializer(
    options: PropertyListSerialization.ReadOptions = []
  ) -> ResponseSerializer<Any, NSError> {
    serializer(
      emptyValue: NSNull(), missing: .PropertyListSerializationFailed, "Property list", needsBytes: true
    ) { data, _ in
      try PropertyListSerialization.untrusted(data, options: options)
    }
  }

  /// Makes a serializer that passes on an earlier error, and returns the empty value for the status 204, whatever the
  /// body.
  private static func serializer<Value>(
    emptyValue: Value, missing: Alamofire.Error.Code, _ noun: String, needsBytes: Bool = false,
    _ read: @escaping (Data, HTTPURLResponse?) throws -> Value
  ) -> ResponseSerializer<Value, NSError> {
    ResponseSerializer { _, response, data, error in
      if let error { return .Failure(error) }
      if response?.statusCode == 204 { return .Success(emptyValue) }
      guard let data, !(needsBytes && data.isEmpty) else {
        let what = needsBytes ? "nil or zero length" : "nil"
        return .Failure(
          Alamofire.Error.errorWithCode(
            missing, failureReason: "\(noun) could not be serialized. Input data was \(what)."))
      }
      do {
        return .Success(try read(data, response))
      } catch {
        return .Failure(generationThreeError(error))
      }
    }
  }
}
