/// Values that were made of data of users. When there are too many of them, or their data is too large, all are
/// forgotten. The newest value is always there, so that large data is not read again for each use.
package struct SizedTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let countLimit: Int
  private let sizeLimit: Int
  private var values: [Key: Value] = [:]
  /// The bytes of the data of all values.
  private var size = 0

  package init(countLimit: Int, sizeLimit: Int = 32 << 20) {
    self.countLimit = countLimit
    self.sizeLimit = sizeLimit
  }

  package subscript(key: Key) -> Value? { values[key] }

  /// Keeps a new value, which was made of `bytes` bytes. A key that has a value keeps it.
  package mutating func keep(_ value: Value, for key: Key, bytes: Int) {
    guard values[key] == nil else { return }
    if values.count >= countLimit || size > sizeLimit - bytes {
      values.removeAll()
      size = 0
    }
    values[key] = value
    size += bytes
  }
}
