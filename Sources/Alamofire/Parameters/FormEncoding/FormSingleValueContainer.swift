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
