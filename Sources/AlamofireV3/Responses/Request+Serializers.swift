import Alamofire
public import Foundation
import FoundationNetworking

extension Request {
  /// A serializer for the bytes of a body. Without a response, or with nothing to hold the body in (a download),
  /// it fails with `DataSerializationFailed`; a body of no bytes is one.
  public static func dataResponseSerializer() -> ResponseSerializer<Data, NSError> {
    serializer(emptyValue: Data(), missing: .DataSerializationFailed, "Data") { data, _ in data }
  }

  /// A serializer for text.
  ///
  /// - Parameter encoding: Of the text. Default: that of the response, or ISO Latin 1 where it names none.
  ///   Bytes that are no text in it are `StringSerializationFailed`.
  public static func stringResponseSerializer(
    encoding: String.Encoding? = nil
  ) -> ResponseSerializer<String, NSError> {
    serializer(emptyValue: "", missing: .StringSerializationFailed, "String") { data, response in
      guard !data.isEmpty else { return "" }
      return try StringResponseSerializer(encoding: encoding).serialize(
        request: nil, response: response, data: data, error: nil)
    }
  }

  /// A serializer for JSON, which fails with `JSONSerializationFailed` without a body, and with Foundation's
  /// error for a body that is no JSON.
  ///
  /// - Parameter options: How it is read. Default: values other than arrays and objects are accepted.
  public static func JSONResponseSerializer(
    options: JSONSerialization.ReadingOptions = .allowFragments
  ) -> ResponseSerializer<Any, NSError> {
    serializer(
      emptyValue: NSNull(), missing: .JSONSerializationFailed, "JSON", needsBytes: true
    ) { data, _ in
      try JSONSerialization.jsonObject(with: data, options: options)
    }
  }

  /// A serializer for property lists, which fails with `PropertyListSerializationFailed` without a body, and with
  /// Foundation's error for a body that is none.
  ///
  /// - Parameter options: How it is read. Default: none.
  public static func propertyListResponseSerializer(
    options: PropertyListSerialization.ReadOptions = []
  ) -> ResponseSerializer<Any, NSError> {
    serializer(
      emptyValue: NSNull(), missing: .PropertyListSerializationFailed, "Property list", needsBytes: true
    ) { data, _ in
      try PropertyListSerialization.propertyList(from: data, options: options, format: nil)
    }
  }

  /// An error so far stays; the status 204 has the empty value, whatever the body.
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
