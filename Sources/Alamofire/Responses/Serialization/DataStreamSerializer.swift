public import Foundation

/// Turns the pieces of a stream into values.
///
/// Called off the network thread and off the handler's queue, one call at a time for each handler; an implementation
/// may block, the server waits then.
///
/// ```swift
/// struct ByteCounter: DataStreamSerializer {
///   func serialize(_ data: Data) throws -> Int { data.count }
/// }
/// ```
@preconcurrency
public protocol DataStreamSerializer<SerializedObject>: Sendable {
  /// What the serializer makes.
  associatedtype SerializedObject: Sendable

  /// Makes a value.
  ///
  /// - Parameter data: The next bytes of the response; never empty. Where they are cut depends on the network.
  /// - Returns: The value.
  /// - Throws: Any error; one that is no ``AFError`` is wrapped in `.customSerializationFailed`.
  func serialize(_ data: Data) throws -> SerializedObject
}

/// Hands out the bytes as they come.
///
/// ```swift
/// let serializer = PassthroughStreamSerializer()
/// ```
public struct PassthroughStreamSerializer: DataStreamSerializer {
  /// Makes the serializer.
  public init() {}

  /// The same bytes.
  public func serialize(_ data: Data) throws -> Data { data }
}

/// Makes text of UTF-8. In a stream, text is cut between characters wherever the network cut it; what is no UTF-8
/// becomes U+FFFD.
///
/// ```swift
/// let serializer = StringStreamSerializer()
/// ```
public struct StringStreamSerializer: DataStreamSerializer {
  /// Makes the serializer.
  public init() {}

  /// The text of these bytes.
  public func serialize(_ data: Data) throws -> String { String(decoding: data, as: UTF8.self) }
}

/// Makes values, of JSON by default.
///
/// With a `JSONDecoder` the documents may follow one another with or without white space between them, one a line
/// (NDJSON) or as a JSON text sequence (RFC 7464), and it does not matter where the network cuts them: each document
/// is a value. A document that is not valid is a failure of its own; reading goes on behind it, as far as its end can
/// be told. Bytes after the preprocessor are held in memory until their document is complete.
///
/// With any other decoder each piece that comes from the network has to be a document.
///
/// ```swift
/// let serializer = DecodableStreamSerializer<User>(decoder: JSONDecoder())
/// ```
public struct DecodableStreamSerializer<T: Decodable & Sendable>: DataStreamSerializer {
  /// What decodes.
  public let decoder: any DataDecoder
  /// What happens to the bytes of each piece before they are decoded.
  public let dataPreprocessor: any DataPreprocessor

  /// Makes the serializer.
  ///
  /// - Parameters:
  ///   - decoder: What decodes. Default: a `JSONDecoder`. Do not change it afterwards.
  ///   - dataPreprocessor: What happens to the bytes before. Default: nothing.
  public init(
    decoder: any DataDecoder = JSONDecoder(),
    dataPreprocessor: any DataPreprocessor = PassthroughPreprocessor()
  ) {
    self.decoder = decoder
    self.dataPreprocessor = dataPreprocessor
  }

  /// The value of one document.
  ///
  /// - Throws: What the preprocessor throws; `.decodingFailed` for what the decoder throws.
  public func serialize(_ data: Data) throws -> T {
    try decode(dataPreprocessor.preprocess(data))
  }
}

extension DataStreamSerializer {
  /// A serializer for values; see ``DecodableStreamSerializer``.
  ///
  /// - Parameters:
  ///   - type: The type of the value; by default what the context asks for.
  ///   - decoder: What decodes. Default: a `JSONDecoder`. Do not change it afterwards.
  ///   - dataPreprocessor: What happens to the bytes before. Default: nothing.
  public static func decodable<T: Decodable & Sendable>(
    of type: T.Type = T.self, decoder: any DataDecoder = JSONDecoder(),
    dataPreprocessor: any DataPreprocessor = PassthroughPreprocessor()
  ) -> Self where Self == DecodableStreamSerializer<T> {
    DecodableStreamSerializer<T>(decoder: decoder, dataPreprocessor: dataPreprocessor)
  }
}

extension DataStreamSerializer where Self == PassthroughStreamSerializer {
  /// Hands out the bytes as they come.
  public static var passthrough: PassthroughStreamSerializer { PassthroughStreamSerializer() }
}

extension DataStreamSerializer where Self == StringStreamSerializer {
  /// Makes text of UTF-8.
  public static var string: StringStreamSerializer { StringStreamSerializer() }
}

/// A serializer that is not called with what the network gives, but with whole documents or characters.
protocol FramedStreamSerializer<SerializedObject>: DataStreamSerializer {
  /// How chunks become its values.
  var decoding: StreamDecoding<SerializedObject, AFError> { get }
}

extension StringStreamSerializer: FramedStreamSerializer {
  var decoding: StreamDecoding<String, AFError> {
    StreamDecoding(.characters) { .success(String(decoding: $0, as: UTF8.self)) }
  }
}

extension DecodableStreamSerializer: FramedStreamSerializer {
  var decoding: StreamDecoding<T, AFError> {
    guard decoder is JSONDecoder else {
      return StreamDecoding(.chunks) { data in .caught { try serialize(data) } }
    }
    let preprocessor = dataPreprocessor.isPassthrough ? nil : dataPreprocessor
    return StreamDecoding(
      .json,
      preprocess: preprocessor.map { preprocessor in { data in .caught { try preprocessor.preprocess(data) } }
      },
      make: { document in .caught { try decode(document) } })
  }

  private func decode(_ document: Data) throws -> T {
    do {
      return try decoder.decode(T.self, from: document)
    } catch {
      throw AFError.responseSerializationFailed(reason: .decodingFailed(error: error))
    }
  }
}

extension Result where Failure == AFError {
  /// What a step of a serializer gives; an error that is no ``AFError`` is wrapped.
  static func caught(_ body: () throws -> Success) -> Self {
    do {
      return .success(try body())
    } catch {
      return .failure(
        error.asAFError(or: .responseSerializationFailed(reason: .customSerializationFailed(error: error))))
    }
  }
}
