public import Foundation
public import FoundationNetworking
public import HTTPWire

/// Decodes the body into a value.
///
/// An empty body that is allowed gives the empty value of a type that conforms to ``EmptyResponse``.
///
/// ```swift
/// let decoder = JSONDecoder()
/// decoder.keyDecodingStrategy = .convertFromSnakeCase
/// let serializer = DecodableResponseSerializer<User>(decoder: decoder)
/// ```
public final class DecodableResponseSerializer<T: Decodable>: ResponseSerializer {
  /// The type of the decoded value.
  public typealias SerializedObject = T

  /// The transformation of the bytes before they are decoded.
  public let dataPreprocessor: any DataPreprocessor
  /// The decoder.
  public let decoder: any DataDecoder
  /// The status codes for which an empty body is allowed.
  public let emptyResponseCodes: Set<Int>
  /// The methods for which an empty body is allowed.
  public let emptyRequestMethods: Set<HTTPMethod>

  /// Makes the serializer.
  ///
  /// - Parameters:
  ///   - dataPreprocessor:    The transformation of the bytes before they are decoded. Default: none.
  ///   - decoder:             The decoder. Default: a `JSONDecoder`. Do not change it afterwards.
  ///   - emptyResponseCodes:  The status codes for which an empty body is allowed. Default: 204 and 205.
  ///   - emptyRequestMethods: The methods for which an empty body is allowed. Default: `HEAD`.
  public init(
    dataPreprocessor: any DataPreprocessor = DecodableResponseSerializer.defaultDataPreprocessor,
    decoder: any DataDecoder = JSONDecoder(),
    emptyResponseCodes: Set<Int> = DecodableResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = DecodableResponseSerializer.defaultEmptyRequestMethods
  ) {
    self.dataPreprocessor = dataPreprocessor
    self.decoder = decoder
    self.emptyResponseCodes = emptyResponseCodes
    self.emptyRequestMethods = emptyRequestMethods
  }

  /// Returns the decoded value, or the empty one if that is allowed.
  ///
  /// - Throws: `error` unchanged, if there is one. `.inputDataNilOrZeroLength` for an empty body that is not allowed.
  ///   `.invalidEmptyResponse` for an allowed one if the type has no empty value. Otherwise the error of the
  ///   preprocessor, or `.decodingFailed`.
  public func serialize(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) throws -> T {
    try serializeOnWire(request: request, response: response, data: data, error: error)
  }
}

extension DecodableResponseSerializer: WireSerializer {
  package func serialize(
    method: @autoclosure () -> String?, status: Int?, textEncodingName: () -> String?, data: Data?
  ) throws -> T {
    try serialize(method: method(), status: status, data: data, emptyValue: { try Self.emptyValue() }) {
      data in
      do {
        return try decoder.value(T.self, from: data)
      } catch {
        throw AFError.responseSerializationFailed(
          reason: .decodingFailed(error: (error as? DecodingError)?.showing(data) ?? error))
      }
    }
  }

  private static func emptyValue() throws -> T {
    guard let type = T.self as? any EmptyResponse.Type, let value = type.emptyValue() as? T else {
      throw AFError.responseSerializationFailed(reason: .invalidEmptyResponse(type: "\(T.self)"))
    }
    return value
  }
}

extension ResponseSerializer {
  /// Makes a serializer for values.
  ///
  /// - Parameters:
  ///   - type:                The type of the value; inferred by default.
  ///   - dataPreprocessor:    The transformation of the bytes before they are decoded. Default: none.
  ///   - decoder:             The decoder. Default: a `JSONDecoder`. Do not change it afterwards.
  ///   - emptyResponseCodes:  The status codes for which an empty body is allowed. Default: 204 and 205.
  ///   - emptyRequestMethods: The methods for which an empty body is allowed. Default: `HEAD`.
  public static func decodable<T: Decodable>(
    of type: T.Type = T.self,
    dataPreprocessor: any DataPreprocessor = DecodableResponseSerializer<T>.defaultDataPreprocessor,
    decoder: any DataDecoder = JSONDecoder(),
    emptyResponseCodes: Set<Int> = DecodableResponseSerializer<T>.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = DecodableResponseSerializer<T>.defaultEmptyRequestMethods
  ) -> DecodableResponseSerializer<T> where Self == DecodableResponseSerializer<T> {
    DecodableResponseSerializer<T>(
      dataPreprocessor: dataPreprocessor, decoder: decoder, emptyResponseCodes: emptyResponseCodes,
      emptyRequestMethods: emptyRequestMethods)
  }
}

/// A decoder that creates values from bytes: `JSONDecoder`, `PropertyListDecoder`, or your own.
@preconcurrency
public protocol DataDecoder: Sendable {
  /// Makes a value.
  ///
  /// - Parameters:
  ///   - type: The type of the value.
  ///   - data: The bytes. An empty body does not come here; an empty message of a WebSocket, an event without text, and
  ///     a body that a preprocessor has emptied do.
  /// - Returns: The value.
  /// - Throws: Any error; a serializer wraps it in `.decodingFailed`.
  func decode<D: Decodable>(_ type: D.Type, from data: Data) throws -> D
}

extension JSONDecoder: DataDecoder {}

extension PropertyListDecoder: DataDecoder {}

/// The decoder of handlers and tasks without their own. It is shared, because making one costs as much as decoding a
/// small document. No code can change it.
@usableFromInline
let defaultJSONDecoder = JSONDecoder()

/// The limits for the nesting of property lists, which come from servers, and for the size of binary ones.
///
/// `PropertyListDecoder` reads the elements of XML recursively, and too many end the process. It has no limit.
/// ``BinaryPropertyList`` says what the binary format can contain.
enum PropertyListNesting {
  /// The number of open elements that is allowed. `PropertyListSerialization` allows 512 arrays and dictionaries. They
  /// are in one `plist` element, and the innermost has one value.
  static let limit = 514

  /// Checks a document before it is parsed.
  ///
  /// - Throws: `CocoaError.propertyListReadCorrupt` if its elements are nested too deeply, if it is in an encoding
  ///   whose text cannot be checked, or if it is binary and damaged or its value too large.
  static func check(_ data: Data) throws(CocoaError) {
    if let refusal = data.withUnsafeBytes({ BinaryPropertyList.refusal(of: $0) }) {
      throw error(refusal.description)
    }
    guard !isSafe(data) else { return }
    let utf8 = try utf8(data)
    guard utf8.withUnsafeBytes({ XMLNesting.isDeeper(than: limit, $0) }) else { return }
    throw error("The elements are nested too deeply; at most \(limit) may be open at a time.")
  }

  /// Whether the document is not XML. A binary one was checked before, and the parser of text has a limit.
  private static func isSafe(_ data: Data) -> Bool {
    if BinaryPropertyList.isBinary(data) { return true }
    guard let first = data.first(where: { ![0x09, 0x0A, 0x0D, 0x20].contains($0) }) else { return true }
    return first < 0x80 && (first == UInt8(ascii: "(") || first == UInt8(ascii: "{"))
  }

  /// Returns the document in UTF-8.
  private static func utf8(_ data: Data) throws(CocoaError) -> Data {
    guard let charset = try charset(of: data), charset != .utf8, charset != .isoLatin1 else { return data }
    guard let text = String(data: data, encoding: charset.encoding) else {
      throw error("The text is not valid in its encoding.")
    }
    return Data(text.utf8)
  }

  /// Returns the character set that a byte order mark or the XML declaration names.
  private static func charset(of data: Data) throws(CocoaError) -> Charset? {
    let marks: [([UInt8], Charset)] = [
      ([0xFF, 0xFE, 0, 0], .utf32), ([0, 0, 0xFE, 0xFF], .utf32), ([0xFF, 0xFE], .utf16),
      ([0xFE, 0xFF], .utf16),
    ]
    if let (_, charset) = marks.first(where: { data.starts(with: $0.0) }) { return charset }
    guard data.starts(with: Data("<?xml".utf8)) else { return nil }
    let declaration = data[..<(data.range(of: Data("?>".utf8))?.lowerBound ?? data.endIndex)]
    guard let label = declaration.range(of: Data("encoding".utf8)) else { return nil }
    // Another parser might read another attribute, if the word is there twice or is a part of another word.
    guard declaration[label.upperBound...].range(of: Data("encoding".utf8)) == nil,
      let name = encodingName(in: declaration, label)
    else { throw error("The XML declaration does not name the encoding as XML defines it.") }
    if name.lowercased() == "us-ascii" { return nil }
    guard let charset = Charset(name: name) else { throw error("The encoding is not supported: \(name)") }
    return charset
  }

  /// Returns the value of the attribute whose name is at `label`; `nil` if no attribute with a value is there.
  private static func encodingName(in declaration: Data, _ label: Range<Data.Index>) -> String? {
    let isSpace = { (byte: UInt8) in [0x09, 0x0A, 0x0D, 0x20].contains(byte) }
    guard isSpace(declaration[label.lowerBound - 1]) else { return nil }
    var rest = declaration[label.upperBound...].drop(while: isSpace)
    guard rest.popFirst() == UInt8(ascii: "=") else { return nil }
    rest = rest.drop(while: isSpace)
    guard let quote = rest.popFirst(), quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"),
      let end = rest.firstIndex(of: quote)
    else { return nil }
    return String(decoding: rest[..<end], as: UTF8.self)
  }

  private static func error(_ text: String) -> CocoaError {
    CocoaError(.propertyListReadCorrupt, userInfo: [NSDebugDescriptionErrorKey: text])
  }
}

extension DataDecoder {
  /// Makes a value from the body of a response or a message.
  func value<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
    if self is PropertyListDecoder {
      do {
        try PropertyListNesting.check(data)
      } catch {
        throw DecodingError.dataCorrupted(
          DecodingError.Context(
            codingPath: [], debugDescription: "The given data was not a valid property list.",
            underlyingError: error))
      }
    }
    return try decode(type, from: data)
  }
}
