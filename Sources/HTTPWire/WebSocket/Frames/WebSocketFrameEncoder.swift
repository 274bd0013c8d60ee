extension WebSocketFrameHeader {
  /// Appends the header and its payload, whose length is ``length``. The payload is copied once and masked in the copy.
  package func append(payload: UnsafeRawBufferPointer, to output: inout [UInt8]) {
    appendHeader(to: &output)
    let start = output.count
    output.append(contentsOf: payload)
    guard var mask else { return }
    output.withUnsafeMutableBytes { mask.apply(to: UnsafeMutableRawBufferPointer(rebasing: $0[start...])) }
  }

  /// Appends the header, with the length in the fewest bytes (RFC 6455 §5.2).
  func appendHeader(to output: inout [UInt8]) {
    withUnsafeTemporaryAllocation(byteCount: Self.longestHeader, alignment: 8) { bytes in
      var count = 2
      let maskBit: UInt8 = mask == nil ? 0 : 0x80
      bytes[0] = firstByte
      switch length {
      case 0...125: bytes[1] = maskBit | UInt8(length)
      case 126...0xFFFF:
        bytes[1] = maskBit | 126
        bytes.storeBytes(of: UInt16(length).bigEndian, toByteOffset: count, as: UInt16.self)
        count += 2
      default:
        bytes[1] = maskBit | 127
        bytes.storeBytes(of: UInt64(length).bigEndian, toByteOffset: count, as: UInt64.self)
        count += 8
      }
      if let mask {
        bytes.storeBytes(of: mask.key.littleEndian, toByteOffset: count, as: UInt32.self)
        count += 4
      }
      output.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
    }
  }
}
