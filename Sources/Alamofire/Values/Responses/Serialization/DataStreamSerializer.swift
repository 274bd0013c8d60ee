public import Foundation
import HTTPWire

/// Makes values of the chunks of a stream.
///
/// Called neither on the engine's thread nor on the handler's queue, one call at a time for each handler. An
/// implementation may block; the server then waits.
///
/// ```swift
/// struct ByteCounter: DataStreamSerializer {
///   func serialize(_ data: Data) throws -> Int { data.count }
/// }
/// ```
@preconcurrency
public protocol DataStreamSerializer<SerializedObject>: Sendable {
  /// The type of the value.
  associatedtype SerializedObject: Sendable

  /// Makes a value.
  ///
  /// - Parameter data: The next bytes of the response; never empty. Chunk boundaries are arbitrary.
  /// - Returns: The value.
  /// - Throws: Any error; if it is not an ``AFError``, it is wrapped in `.customSerializationFailed`.
  func serialize(_ data: Data) throws -> SerializedObject
}

/// Returns the bytes unchanged.
///
/// ```swift
/// let serializer = PassthroughStreamSerializer()
/// ```
public struct PassthroughStreamSerializer: DataStreamSerializer {
  /// Makes the serializer.
  public init() {}

  /// Returns the bytes unchanged.
  public func serialize(_ data: Data) throws -> Data { data }
}

/// Makes strings of UTF-8. In a stream, strings end between characters, at arbitrary boundaries; invalid UTF-8
/// becomes U+FFFD.
///
/// ```swift
/// let serializer = StringStreamSerializer()
/// ```
public struct StringStreamSerializer: DataStreamSerializer {
  /// Makes the serializer.
  public init() {}

  /// Returns the text of these bytes.
  public func serialize(_ data: Data) throws -> String { String(decoding: data, as: UTF8.self) }
}

/// Makes values, of JSON by default.
///
/// With a `JSONDecoder`, each document of the stream is a value. Documents may follow one another with or without
/// white space, one a line (NDJSON) or as a JSON text sequence (RFC 7464). An invalid document is a failure, and
/// reading continues after its end if that can be found. Bytes after the preprocessor are held in memory until their
/// document is complete.
///
/// With any other decoder each chunk that the network delivers has to be a document.
///
/// ```swift
/// let serializer = DecodableStreamSerializer<User>(decoder: JSONDecoder())
/// ```
public struct DecodableStreamSerializer<T: Decodable & Sendable>: DataStreamSerializer {
  /// The decoder.
  public let decoder: any DataDecoder
  /// The transformation of each chunk before it is decoded.
  public let dataPreprocessor: any DataPreprocessor

  /// Makes the serializer.
  ///
  /// - Parameters:
  ///   - decoder: The decoder. Default: a `JSONDecoder`. Do not change it afterwards.
  ///   - dataPreprocessor: The transformation of each chunk before it is decoded. Default: none.
  public init(
    decoder: any DataDecoder = JSONDecoder(),
    dataPreprocessor: any DataPreprocessor = PassthroughPreprocessor()
  ) {
    self.decoder = decoder
    self.dataPreprocessor = dataPreprocessor
  }

  /// Decodes one document.
  ///
  /// - Throws: The error of the preprocessor; `.decodingFailed` with the error of the decoder.
  public func serialize(_ data: Data) throws -> T {
    try decode(dataPreprocessor.preprocess(data))
  }
}

extension DataStreamSerializer {
  /// Makes a serializer for values; see ``DecodableStreamSerializer``.
  ///
  /// - Parameters:
  ///   - type: The type of the value; inferred by default.
  ///   - decoder: The decoder. Default: a `JSONDecoder`. Do not change it afterwards.
  ///   - dataPreprocessor: The transformation of each chunk before it is decoded. Default: none.
  public static func decodable<T: Decodable & Sendable>(
    of type: T.Type = T.self, decoder: any DataDecoder = JSONDecoder(),
    dataPreprocessor: any DataPreprocessor = PassthroughPreprocessor()
  ) -> Self where Self == DecodableStreamSerializer<T> {
    DecodableStreamSerializer<T>(decoder: decoder, dataPreprocessor: dataPreprocessor)
  }
}

extension DataStreamSerializer where Self == PassthroughStreamSerializer {
  /// A serializer that returns the bytes unchanged.
  public static var passthrough: PassthroughStreamSerializer { PassthroughStreamSerializer() }
}

extension DataStreamSerializer where Self == StringStreamSerializer {
  /// A serializer that makes strings of UTF-8.
  public static var string: StringStreamSerializer { StringStreamSerializer() }
}

/// A serializer that is called with whole documents or characters instead of network chunks.
protocol FramedStreamSerializer<SerializedObject>: DataStreamSerializer {
  /// The decoding of chunks into values.
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
      return try decoder.value(T.self, from: document)
    } catch {
      throw AFError.responseSerializationFailed(reason: .decodingFailed(error: error))
    }
  }
}

extension Result where Failure == AFError {
  /// Returns the result of `body`; an error that is not an ``AFError`` is wrapped.
  static func caught(_ body: () throws -> Success) -> Self {
    do {
      return .success(try body())
    } catch {
      return .failure(
        error.asAFError(or: .responseSerializationFailed(reason: .customSerializationFailed(error: error))))
    }
  }
}

/// A part of a stream.
enum StreamEntry: Sendable {
  /// A response begins; earlier entries belong to another one.
  case begin
  case chunk(Data)
  /// A chunk that has grown until a reader took it.
  case growing(GrowingChunk)
  /// Server-sent events that arrived together.
  case events([ServerSentEvent])
  /// The response is complete.
  case end

  /// The bytes of a chunk.
  var data: Data? {
    switch self {
    case .chunk(let data): data
    case .growing(let chunk): chunk.data
    case .begin, .events, .end: nil
    }
  }
}

/// The decoding of chunks into the values of one reader. The beginning of an incomplete value is state of that reader;
/// each response starts afresh.
struct StreamDecoding<Success: Sendable, Failure: Error>: Sendable {
  typealias Outcome = Result<Success, Failure>

  /// The boundaries of values.
  enum Framing: Sendable {
    /// Each chunk is a value.
    case chunks
    case characters
    case json
  }

  private let framing: Framing
  private var characters = CharacterFramer()
  private var json = JSONFramer()
  /// The transformation of a chunk before it is decoded.
  private let preprocess: (@Sendable (Data) -> Result<Data, Failure>)?
  private let make: @Sendable (Data) -> Outcome
  /// A closure that creates the value of an event; `nil` if a value is created from the bytes of each event.
  private let makeOfEvent: (@Sendable (ServerSentEvent) -> Outcome)?
  /// Makes the failure for a response that follows a part of another one; `nil` if it may follow.
  private var refusal: (@Sendable () -> Failure)?
  private var hasChunks = false
  private var lastEventID = ""

  /// Makes a decoding of bytes.
  init(
    _ framing: Framing, preprocess: (@Sendable (Data) -> Result<Data, Failure>)? = nil,
    make: @escaping @Sendable (Data) -> Outcome
  ) {
    self.framing = framing
    self.preprocess = preprocess
    self.make = make
    makeOfEvent = nil
  }

  mutating func values(of entries: [StreamEntry]) -> [Outcome] {
    var values: [Outcome] = []
    values.reserveCapacity(entries.count)
    for entry in entries {
      switch entry {
      case .begin:
        if hasChunks, let refusal { values.append(.failure(refusal())) }
        characters = CharacterFramer()
        json = JSONFramer()
      case .chunk, .growing:
        guard let data = entry.data else { continue }
        hasChunks = true
        add(data, to: &values)
      case .events(let events):
        hasChunks = true
        add(events, to: &values)
      case .end:
        if let rest = characters.finish() ?? json.finish() { values.append(make(rest)) }
      }
    }
    return values
  }

  private mutating func add(_ events: [ServerSentEvent], to values: inout [Outcome]) {
    guard let makeOfEvent else {
      for event in events {
        add(event.encoded(after: lastEventID), to: &values)
        lastEventID = event.id
      }
      return
    }
    values.reserveCapacity(values.count + events.count)
    for event in events { values.append(makeOfEvent(event)) }
  }

  /// Returns the decoding of one response: a later one that follows a part of it is a failure.
  func ofOneResponse(_ refusal: @escaping @Sendable () -> Failure) -> StreamDecoding {
    var copy = self
    copy.refusal = refusal
    return copy
  }

  private mutating func add(_ data: Data, to values: inout [Outcome]) {
    var data = data
    if let preprocess {
      switch preprocess(data) {
      case .success(let new): data = new
      case .failure(let error): return values.append(.failure(error))
      }
    }
    switch framing {
    case .chunks: values.append(make(data))
    case .characters:
      if let text = characters.push(data) { values.append(make(text)) }
    case .json: values += json.push(data).map(make)
    }
  }
}

extension StreamDecoding where Success == Data, Failure == Never {
  /// The chunks as they arrive.
  static var data: StreamDecoding { StreamDecoding(.chunks) { .success($0) } }
}

extension StreamDecoding where Success == String, Failure == Never {
  /// Decodes UTF-8; invalid bytes become U+FFFD.
  static var text: StreamDecoding {
    StreamDecoding(.characters) { .success(String(decoding: $0, as: UTF8.self)) }
  }
}

extension StreamDecoding where Failure == AFError {
  /// Makes a decoding of the events of an ``EventSource``.
  init(events makeOfEvent: @escaping @Sendable (ServerSentEvent) -> Outcome) {
    framing = .chunks
    preprocess = nil
    make = { _ in .failure(.responseSerializationFailed(reason: .inputDataNilOrZeroLength)) }
    self.makeOfEvent = makeOfEvent
  }

  /// Makes the decoding of a serializer of the library or of a user.
  init<Serializer: DataStreamSerializer>(_ serializer: Serializer)
  where Serializer.SerializedObject == Success {
    if let framed = serializer as? any FramedStreamSerializer<Success> {
      self = framed.decoding
    } else {
      self.init(.chunks) { data in .caught { try serializer.serialize(data) } }
    }
  }
}
