package import FoundationEssentials

extension WebSocketFrameHeader {
  /// Appends the header and its payload, whose length is ``length``. The payload is copied once and masked in the copy.
  package func append(payload: UnsafeRawBufferPointer, to output: inout Data) {
    appendHeader(to: &output)
    let start = output.count
    output.append(contentsOf: payload)
    guard var mask else { return }
    output.withUnsafeMutableBytes { mask.apply(to: UnsafeMutableRawBufferPointer(rebasing: $0[start...])) }
  }

  /// Encodes the length in the fewest bytes (RFC 6455 §5.2).
  private func appendHeader(to output: inout Data) {
    // A Data holds the longest header without an allocation.
    var bytes = Data()
    bytes.append(firstByte)
    let maskBit: UInt8 = mask == nil ? 0 : 0x80
    switch length {
    case 0...125: bytes.append(maskBit | UInt8(length))
    case 126...0xFFFF:
      bytes.append(maskBit | 126)
      Self.append(UInt64(length), byteCount: 2, to: &bytes)
    default:
      bytes.append(maskBit | 127)
      Self.append(UInt64(length), byteCount: 8, to: &bytes)
    }
    if let mask { Self.append(UInt64(mask.key.byteSwapped), byteCount: 4, to: &bytes) }
    output.append(bytes)
  }

  /// Appends the lowest bytes of a number, the highest of them first.
  private static func append(_ number: UInt64, byteCount: Int, to bytes: inout Data) {
    for index in stride(from: byteCount - 1, through: 0, by: -1) {
      bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(index * 8)))
    }
  }
}
