import CZlib

/// Content codings of replies (RFC 1950, RFC 1952).
enum Compression {
  /// Compresses bytes in the gzip format.
  static func gzip(_ bytes: [UInt8]) -> [UInt8] { compress(bytes, windowBits: 15 + 16) }

  /// Compresses bytes in the zlib format, which HTTP calls `deflate` (RFC 9110 §8.4.1.2).
  static func zlib(_ bytes: [UInt8]) -> [UInt8] { compress(bytes, windowBits: 15) }

  private static func compress(_ bytes: [UInt8], windowBits: Int32) -> [UInt8] {
    var stream = z_stream()
    let status = deflateInit2_(
      &stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, windowBits, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
      Int32(MemoryLayout<z_stream>.size))
    precondition(status == Z_OK, "zlib refuses its default settings")
    defer { deflateEnd(&stream) }
    var input = bytes
    return input.withUnsafeMutableBufferPointer { input in
      let capacity = Int(deflateBound(&stream, UInt(input.count)))
      return [UInt8](unsafeUninitializedCapacity: capacity) { output, count in
        stream.next_in = input.baseAddress
        stream.avail_in = UInt32(input.count)
        stream.next_out = output.baseAddress
        stream.avail_out = UInt32(capacity)
        let status = deflate(&stream, Z_FINISH)
        precondition(status == Z_STREAM_END, "zlib needs more room than it asked for")
        count = capacity - Int(stream.avail_out)
      }
    }
  }
}
