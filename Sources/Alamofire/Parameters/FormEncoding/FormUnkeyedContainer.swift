/// The items of an array.
struct FormUnkeyedContainer: UnkeyedEncodingContainer {
  let encoder: FormEncoder
  /// Whether another encoder wrote items before: the first item of this container takes the place of the first one.
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
