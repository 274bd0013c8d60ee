import Alamofire
public import Foundation
import FoundationNetworking

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
