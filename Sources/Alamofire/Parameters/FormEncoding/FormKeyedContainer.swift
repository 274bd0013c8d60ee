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

  /// Returns an encoder for a superclass, which adds its properties to the same ones, without a name of its own.
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
