import Foundation
import HTTPWire

/// The decoding of chunks into the values of one reader. The beginning of an incomplete value is state of that
/// reader; each response begins anew.
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
  /// Makes the value of an event; `nil` if a value is made of the bytes of each.
  private let makeOfEvent: (@Sendable (ServerSentEvent) -> Outcome)?
  /// Makes the failure for a response that follows a part of another one; `nil` if it may follow.
  private var refusal: (@Sendable () -> Failure)?
  private var hasChunks = false

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

  mutating func values(of entries: [ChunkLog.Entry]) -> [Outcome] {
    var values: [Outcome] = []
    values.reserveCapacity(entries.count)
    for entry in entries {
      switch entry {
      case .begin:
        if hasChunks, let refusal { values.append(.failure(refusal())) }
        characters = CharacterFramer()
        json = JSONFramer()
      case .chunk(let data):
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
    guard let makeOfEvent else { return events.forEach { add($0.encoded, to: &values) } }
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
  /// The chunks as they come.
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
