import Foundation

/// The `Encoder` that a value sees: it writes to one node.
struct FormEncoder: Encoder {
  let node: FormNode
  let codingPath: [any CodingKey]
  let options: URLEncodedFormEncoder
  /// The number of this encoder among those of its node.
  var turn = 0
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  /// Encodes a value to the node; dates, data and decimal numbers do not encode themselves.
  func encode(_ value: some Encodable) throws {
    let text: String? =
      switch value {
      case let date as Date: try options.dateEncoding.encode(date)
      case let data as Data: try options.dataEncoding.encode(data)
      case let decimal as Decimal: decimal.description
      default: nil
      }
    if let text {
      try write(text, for: value)
    } else {
      try value.encode(to: self)
    }
  }

  /// Writes the text of a value, or a `nil` that leaves no trace.
  func write(_ text: String?, for value: Any) throws {
    guard node.write(text, turn) else { throw conflict(value) }
  }

  func conflict(_ value: Any) -> EncodingError {
    EncodingError.invalidValue(
      value,
      EncodingError.Context(
        codingPath: codingPath,
        debugDescription: "Something was already encoded here that this value cannot be added to."))
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    guard let item = node.openProperties(turn) else {
      return KeyedEncodingContainer(FormKeyedContainer(encoder: self))
    }
    let target = FormEncoder(node: item, codingPath: codingPath, options: options, turn: item.beginTurn())
    return KeyedEncodingContainer(FormKeyedContainer(encoder: target))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    FormUnkeyedContainer(encoder: self, isMerging: node.openItems(turn))
  }

  func singleValueContainer() -> any SingleValueEncodingContainer {
    FormSingleValueContainer(encoder: self)
  }

  /// Returns an encoder for a nested value. If another value was written in its place, the encoder refuses every
  /// value.
  func nested(_ node: FormNode?, _ key: any CodingKey) -> FormEncoder {
    FormEncoder(
      node: node ?? FormNode(.dropped), codingPath: codingPath + [key], options: options,
      turn: node?.beginTurn() ?? 0)
  }
}

/// The place of an item, for the messages of errors.
struct FormIndexKey: CodingKey {
  let index: Int

  init(_ index: Int) { self.index = index }
  init?(stringValue: String) { return nil }
  init?(intValue: Int) { index = intValue }

  var stringValue: String { String(index) }
  var intValue: Int? { index }
}
