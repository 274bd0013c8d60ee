/// Masking keys that cannot be predicted (RFC 6455 §5.3). Keys are drawn in blocks, because a draw for each frame would
/// cost as much as the masking of a small one.
struct MaskingKeys {
  private static let blockSize = 64

  private var words: [UInt32] = []

  mutating func next() -> UInt32 {
    if words.isEmpty { words = WebSocketFeatures.randomWords(Self.blockSize) ?? [] }
    return words.popLast() ?? UInt32.random(in: .min ... .max)
  }
}
