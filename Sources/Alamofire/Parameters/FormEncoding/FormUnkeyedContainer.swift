/// The items of an array.
struct FormUnkeyedContainer: UnkeyedEncodingContainer {
  let encoder: FormEncoder
  private(set) var count = 0

  init(encoder: FormEncoder) {
    self.encoder = encoder
  }

  var codingPath: [any CodingKey] { encoder.codingPath }

  private mutating func nextItem() -> FormEncoder {
    defer { count += 1 }
    return encoder.nested(encoder.node.appendItem(), FormIndexKey(count))
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
