import Foundation
import HTTPWire

/// The `Encoder` that a value sees: it writes to one node.
struct FormEncoder: Encoder {
  let node: FormNode
  let codingPath: [any CodingKey]
  let options: URLEncodedFormEncoder
  /// The number of this encoder among the encoders of its node.
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

/// The position of an item, for the messages of errors.
struct FormIndexKey: CodingKey {
  let index: Int

  init(_ index: Int) { self.index = index }
  init?(stringValue: String) { return nil }
  init?(intValue: Int) { index = intValue }

  var stringValue: String { String(index) }
  var intValue: Int? { index }
}

/// The properties of a value.
struct FormKeyedContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let encoder: FormEncoder

  var codingPath: [any CodingKey] { encoder.codingPath }

  private func property(_ key: Key) -> FormEncoder {
    encoder.nested(encoder.node.property(key.stringValue, encoder.turn), key)
  }

  mutating func encodeNil(forKey key: Key) throws {
    try property(key).write(encoder.options.nilEncoding.encode(), for: String?.none as Any)
  }

  mutating func encode(_ value: Int128, forKey key: Key) throws { try property(key).encode(value) }
  mutating func encode(_ value: UInt128, forKey key: Key) throws { try property(key).encode(value) }
  mutating func encode(_ value: some Encodable, forKey key: Key) throws { try property(key).encode(value) }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy keyType: NestedKey.Type, forKey key: Key
  ) -> KeyedEncodingContainer<NestedKey> {
    property(key).container(keyedBy: keyType)
  }

  mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    property(key).unkeyedContainer()
  }

  /// Returns an encoder for a superclass, which adds its properties to the same ones, without a separate name.
  mutating func superEncoder() -> any Encoder { encoder }

  mutating func superEncoder(forKey key: Key) -> any Encoder { property(key) }
}

// Synthesized conformances write optionals with these, and by default they write nothing for `nil`:
// then the nil encoding would not be asked.
extension FormKeyedContainer {
  private mutating func encodePresentOrNil(_ value: (some Encodable)?, forKey key: Key) throws {
    if let value {
      try encode(value, forKey: key)
    } else {
      try property(key).write(encoder.options.absentEncoding.encode(), for: String?.none as Any)
    }
  }

  mutating func encodeIfPresent(_ value: Bool?, forKey key: Key) throws {
    try encodePresentOrNil(value, forKey: key)
  }

  mutating func encodeIfPresent(_ value: String?, forKey key: Key) throws {
    try encodePresentOrNil(value, forKey: key)
  }

  mutating func encodeIfPresent(_ value: Double?, forKey key: Key) throws {
    try encodePresentOrNil(value, forKey: key)
  }

  mutating func encodeIfPresent(_ value: Float?, forKey key: Key) throws {
    try encodePresentOrNil(value, forKey: key)
  }

  mutating func encodeIfPresent(_ value: Int?, forKey key: Key) throws {
    try encodePresentOrNil(value, forKey: key)
  }

  mutating func encodeIfPresent(_ value: Int8?, forKey key: Key) throws {
    try encodePresentOrNil(value, forKey: key)
  }

  mutating func encodeIfPresent(_ value: Int16?, forKey key: Key) throws {
    try encodePresentOrNil(value, forKey: key)
  }

  mutating func encodeIfPresent(_ value: Int32?, forKey key: Key) throws {
    try encodePresentOrNil(value, forKey: key)
  }

  mutating func encodeIfPresent(_ value: Int64?, forKey key: Key) throws {
    try encodePresentOrNil(value, forKey: key)
  }

  mutating func encodeIfPresent(_ value: Int128?, forKey key: Key) throws {
    try encodePresentOrNil(value, forKey: key)
  }

  mutating func encodeIfPresent(_ value: UInt?, forKey key: Key) throws {
    try encodePresentOrNil(value, forKey: key)
  }

  mutating func encodeIfPresent(_ value: UInt8?, forKey key: Key) throws {
    try encodePresentOrNil(value, forKey: key)
  }

  mutating func encodeIfPresent(_ value: UInt16?, forKey key: Key) throws {
    try encodePresentOrNil(value, forKey: key)
  }

  mutating func encodeIfPresent(_ value: UInt32?, forKey key: Key) throws {
    try encodePresentOrNil(value, forKey: key)
  }

  mutating func encodeIfPresent(_ value: UInt64?, forKey key: Key) throws {
    try encodePresentOrNil(value, forKey: key)
  }

  mutating func encodeIfPresent(_ value: UInt128?, forKey key: Key) throws {
    try encodePresentOrNil(value, forKey: key)
  }

  mutating func encodeIfPresent(_ value: (some Encodable)?, forKey key: Key) throws {
    try encodePresentOrNil(value, forKey: key)
  }
}

/// The items of an array.
struct FormUnkeyedContainer: UnkeyedEncodingContainer {
  let encoder: FormEncoder
  /// Whether another encoder wrote items before. Then the first item of this container gets the position of the first
  /// one.
  private let isMerging: Bool
  private(set) var count = 0

  init(encoder: FormEncoder, isMerging: Bool) {
    self.encoder = encoder
    self.isMerging = isMerging
  }

  var codingPath: [any CodingKey] { encoder.codingPath }

  private mutating func nextItem() -> FormEncoder {
    defer { count += 1 }
    let item = encoder.node.item(at: isMerging ? count : nil, encoder.turn)
    return encoder.nested(item, FormIndexKey(count))
  }

  mutating func encodeNil() throws {
    try nextItem().write(encoder.options.nilEncoding.encode(), for: String?.none as Any)
  }

  mutating func encode(_ value: Int128) throws { try nextItem().encode(value) }
  mutating func encode(_ value: UInt128) throws { try nextItem().encode(value) }
  mutating func encode(_ value: some Encodable) throws { try nextItem().encode(value) }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy keyType: NestedKey.Type
  ) -> KeyedEncodingContainer<NestedKey> {
    nextItem().container(keyedBy: keyType)
  }

  mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    nextItem().unkeyedContainer()
  }

  /// Returns an encoder for a superclass, which adds to the same list, because there is no name for it.
  mutating func superEncoder() -> any Encoder {
    count += 1
    return encoder
  }
}

/// One value; a second one is refused.
struct FormSingleValueContainer: SingleValueEncodingContainer {
  let encoder: FormEncoder
  private var isFull = false

  init(encoder: FormEncoder) {
    self.encoder = encoder
  }

  var codingPath: [any CodingKey] { encoder.codingPath }

  private mutating func write(_ text: String?, for value: Any) throws {
    try fill(with: value)
    try encoder.write(text, for: value)
  }

  private mutating func fill(with value: Any) throws {
    guard !isFull else { throw encoder.conflict(value) }
    isFull = true
  }

  mutating func encodeNil() throws {
    try write(encoder.options.nilEncoding.encode(), for: String?.none as Any)
  }

  mutating func encode(_ value: Bool) throws {
    try write(encoder.options.boolEncoding.encode(value), for: value)
  }

  mutating func encode(_ value: String) throws { try write(value, for: value) }
  mutating func encode(_ value: Double) throws { try write(value.description, for: value) }
  mutating func encode(_ value: Float) throws { try write(value.description, for: value) }
  mutating func encode(_ value: Int) throws { try write(value.description, for: value) }
  mutating func encode(_ value: Int8) throws { try write(value.description, for: value) }
  mutating func encode(_ value: Int16) throws { try write(value.description, for: value) }
  mutating func encode(_ value: Int32) throws { try write(value.description, for: value) }
  mutating func encode(_ value: Int64) throws { try write(value.description, for: value) }
  mutating func encode(_ value: Int128) throws { try write(value.description, for: value) }
  mutating func encode(_ value: UInt) throws { try write(value.description, for: value) }
  mutating func encode(_ value: UInt8) throws { try write(value.description, for: value) }
  mutating func encode(_ value: UInt16) throws { try write(value.description, for: value) }
  mutating func encode(_ value: UInt32) throws { try write(value.description, for: value) }
  mutating func encode(_ value: UInt64) throws { try write(value.description, for: value) }
  mutating func encode(_ value: UInt128) throws { try write(value.description, for: value) }

  mutating func encode(_ value: some Encodable) throws {
    try fill(with: value)
    try encoder.encode(value)
  }
}

/// A node of a form: the values that an `Encodable` has written into one container.
///
/// A class, because several containers and encoders may write to the same node during one call of encode.
final class FormNode {
  enum Content {
    /// The node to which no value was written yet.
    case empty
    /// A `nil` was written that leaves no trace; nothing more may be written.
    case dropped
    case text(String)
    case items([FormNode])
    case properties(FormProperties)
  }

  private(set) var content: Content
  /// The number of encoders that were given this node.
  private var turns = 0
  /// The encoder that wrote last.
  private var writer = 0

  init(_ content: Content = .empty) {
    self.content = content
  }

  /// Whether nothing would be written for this node.
  var isDropped: Bool {
    switch content {
    case .empty, .dropped: true
    case .text, .items, .properties: false
    }
  }

  /// Returns the number of a new encoder. Several encoders get one node if a value writes twice under one key: their
  /// properties and items are merged by name and by index, and anything else replaces what was there.
  func beginTurn() -> Int {
    turns += 1
    return turns
  }

  /// Makes `turn` the writer. Returns whether the content, if there is any, is from another encoder.
  private func takeOver(_ turn: Int) -> Bool {
    defer { writer = turn }
    if case .empty = content { return false }
    return writer != turn
  }

  /// Turns an empty node into a list of properties. Returns a new item if the same encoder has turned it into a list of
  /// items: the superclass of an unkeyed value has keys.
  func openProperties(_ turn: Int) -> FormNode? {
    switch content {
    case .empty:
      content = .properties(FormProperties())
      writer = turn
    case .items where writer == turn:
      guard let item = item(at: nil, turn) else { return nil }
      item.content = .properties(FormProperties())
      return item
    case .items, .dropped, .text, .properties: break
    }
    return nil
  }

  /// Makes an empty node a list of items. Returns whether another encoder wrote to the node before.
  func openItems(_ turn: Int) -> Bool {
    guard case .empty = content else { return writer != turn }
    content = .items([])
    writer = turn
    return false
  }

  /// Writes a text, or a `nil` that leaves no trace; false if the same encoder wrote something before.
  func write(_ text: String?, _ turn: Int) -> Bool {
    if takeOver(turn) { content = .empty }
    switch content {
    case .empty:
      content = text.map(Content.text) ?? .dropped
      return true
    case .items:
      guard let item = item(at: nil, turn) else { return false }
      return item.write(text, item.beginTurn())
    case .dropped, .text, .properties:
      return false
    }
  }

  /// Returns the item at an index, or a new one at the end; `nil` if the same encoder wrote something other than items.
  func item(at index: Int?, _ turn: Int) -> FormNode? {
    let isOfOther = takeOver(turn)
    guard case .items(var items) = content else {
      guard isOfOther else { return nil }
      let item = FormNode()
      content = .items([item])
      return item
    }
    if let index, items.indices.contains(index) { return items[index] }
    content = .empty  // so that the array is not copied
    let item = FormNode()
    items.append(item)
    content = .items(items)
    return item
  }

  /// Returns the property of a name, which is added if there is none; `nil` if the same encoder wrote something other
  /// than properties.
  func property(_ name: String, _ turn: Int) -> FormNode? {
    let isOfOther = takeOver(turn)
    guard case .properties(var properties) = content else {
      guard isOfOther else { return nil }
      var properties = FormProperties()
      let node = properties.add(name)
      content = .properties(properties)
      return node
    }
    if let known = properties[name] { return known }
    content = .empty  // so that the properties are not copied
    let node = properties.add(name)
    content = .properties(properties)
    return node
  }
}

/// Properties in the order in which they were written first.
struct FormProperties {
  private(set) var all: [(name: String, value: FormNode)] = []
  private var positions: [String: Int] = [:]

  subscript(_ name: String) -> FormNode? {
    positions[name].map { all[$0].value }
  }

  mutating func add(_ name: String) -> FormNode {
    let node = FormNode()
    positions[name] = all.count
    all.append((name, node))
    return node
  }
}

/// Writes the tree of nodes as pairs.
struct FormSerializer {
  let encoder: URLEncodedFormEncoder
  let percentEncoding: PercentEncoding

  func serialize(_ properties: [(name: String, value: FormNode)]) -> String {
    join(
      properties.map { serialize($0.value, path: $0.name) }, sorted: encoder.alphabetizeKeyValuePairs)
  }

  /// Returns the pairs of a node, joined; empty when there is nothing to write.
  private func serialize(_ node: FormNode, path: String) -> String {
    switch node.content {
    case .empty, .dropped:
      return ""
    case .text(let text):
      return "\(escape(encoder.keyEncoding.encode(path)))=\(escape(text))"
    case .items(let items):
      let parts = items.lazy.filter { !$0.isDropped }.enumerated().map { index, item in
        serialize(item, path: encoder.arrayEncoding.encode(path, atIndex: index))
      }
      return join(
        Array(parts), sorted: encoder.alphabetizeKeyValuePairs && encoder.alphabetizeArrayItems)
    case .properties(let properties):
      let parts = properties.all.map { name, value in
        serialize(value, path: path + encoder.keyPathEncoding.encode(name))
      }
      return join(parts, sorted: encoder.alphabetizeKeyValuePairs)
    }
  }

  /// Joins pairs. Sorting compares pairs that are already joined, because callers rely on the order that this gives.
  private func join(_ parts: [String], sorted: Bool) -> String {
    let parts = parts.filter { !$0.isEmpty }
    return (sorted ? parts.sorted() : parts).joined(separator: "&")
  }

  private func escape(_ text: String) -> String {
    switch encoder.spaceEncoding {
    case .plusReplaced:
      percentEncoding.encode(text, spacesAsPluses: true)
    case .percentEscaped:
      percentEncoding.encode(text)
    }
  }
}
