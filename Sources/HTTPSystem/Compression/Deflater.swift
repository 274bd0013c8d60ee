import CZlib
package import FoundationEssentials

/// Compression of request bodies.
package enum Deflater {
  /// The format around the compressed bytes.
  package enum Wrapping: Sendable {
    /// RFC 1950, which HTTP calls `deflate`.
    case zlib
    /// RFC 1952.
    case gzip
  }

  /// The level for which zlib writes the header `78 5E`.
  private static let level: Int32 = 5

  /// Returns the compressed bytes; `nil` if there is no memory.
  package static func compress(_ data: Data, _ wrapping: Wrapping) -> Data? {
    var stream = z_stream()
    let windowBits: Int32 = wrapping == .gzip ? MAX_WBITS + 16 : MAX_WBITS
    guard
      deflateInit2_(
        &stream, level, Z_DEFLATED, windowBits, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
        Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else { return nil }
    defer { deflateEnd(&stream) }
    var output = [UInt8](repeating: 0, count: 65_536)
    var result = Data()
    var status = Z_OK
    for region in data.regions where status == Z_OK {
      status = run(&stream, region, Z_NO_FLUSH, &output, &result)
    }
    guard status == Z_OK, run(&stream, Data(), Z_FINISH, &output, &result) == Z_STREAM_END else { return nil }
    return result
  }

  /// Gives bytes to zlib in portions that it can count, and collects the output.
  private static func run(
    _ stream: inout z_stream, _ data: Data, _ flush: Int32, _ output: inout [UInt8], _ result: inout Data
  ) -> Int32 {
    var rest = data[...]
    repeat {
      let portion = rest.prefix(1 << 30)
      rest = rest.dropFirst(portion.count)
      let status = portion.withUnsafeBytes { bytes in
        // zlib only reads the input, but its type does not say so.
        stream.next_in = UnsafeMutablePointer(mutating: bytes.bindMemory(to: UInt8.self).baseAddress)
        stream.avail_in = UInt32(portion.count)
        return drain(&stream, flush, &output, &result)
      }
      if status != Z_OK { return status }
    } while !rest.isEmpty
    return Z_OK
  }

  private static func drain(
    _ stream: inout z_stream, _ flush: Int32, _ output: inout [UInt8], _ result: inout Data
  ) -> Int32 {
    while true {
      let (status, made) = output.withUnsafeMutableBufferPointer { buffer in
        stream.next_out = buffer.baseAddress
        stream.avail_out = UInt32(buffer.count)
        let status = deflate(&stream, flush)
        return (status, buffer.count - Int(stream.avail_out))
      }
      result.append(contentsOf: output[..<made])
      if status == Z_STREAM_END { return status }
      // zlib reports an error if it has neither input nor output left, although nothing is wrong.
      guard status == Z_OK || status == Z_BUF_ERROR else { return status }
      if made < output.count { return Z_OK }
    }
  }
}
