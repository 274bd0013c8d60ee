import CZlib
import HTTPWire

/// The compression of the messages of a ``WebSocketEndpoint``. The client has its own compression, because shared
/// code could have the same fault on both sides.
struct ServerMessageCompression: MessageCompression {
  func makeCompressor(windowBits: Int) -> (any MessageCompressor)? {
    windowBits >= 9 ? ServerCompressor(windowBits: Int32(windowBits)) : nil
  }

  func makeDecompressor(windowBits: Int) -> (any MessageDecompressor)? {
    ServerDecompressor(windowBits: Int32(windowBits))
  }
}

/// Keeps the state of zlib at one address, to which zlib refers.
private class ServerStream {
  let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)

  init() { stream.initialize(to: z_stream()) }

  deinit { stream.deallocate() }
}

private final class ServerCompressor: ServerStream, MessageCompressor {
  init(windowBits: Int32) {
    super.init()
    let status = deflateInit2_(
      stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -windowBits, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
      Int32(MemoryLayout<z_stream>.size))
    precondition(status == Z_OK, "zlib refuses its default settings")
  }

  deinit { deflateEnd(stream) }

  func compress(_ message: UnsafeRawBufferPointer, into output: inout [UInt8]) -> Bool {
    var input = Array(message)
    var room = [UInt8](repeating: 0, count: 65_536)
    return input.withUnsafeMutableBufferPointer { input in
      stream.pointee.next_in = input.baseAddress
      stream.pointee.avail_in = UInt32(input.count)
      repeat {
        let count = room.withUnsafeMutableBufferPointer { room in
          stream.pointee.next_out = room.baseAddress
          stream.pointee.avail_out = UInt32(room.count)
          _ = deflate(stream, Z_SYNC_FLUSH)
          return room.count - Int(stream.pointee.avail_out)
        }
        output += room.prefix(count)
      } while stream.pointee.avail_out == 0
      return true
    }
  }

  func reset() { deflateReset(stream) }
}

private final class ServerDecompressor: ServerStream, MessageDecompressor {
  init(windowBits: Int32) {
    super.init()
    let status = inflateInit2_(stream, -windowBits, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    precondition(status == Z_OK, "zlib refuses its default settings")
  }

  deinit { inflateEnd(stream) }

  func decompress(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) -> DecompressionStep {
    var bytes = Array(input)
    return bytes.withUnsafeMutableBufferPointer { input in
      stream.pointee.next_in = input.baseAddress
      stream.pointee.avail_in = UInt32(input.count)
      stream.pointee.next_out = output.bindMemory(to: UInt8.self).baseAddress
      stream.pointee.avail_out = UInt32(output.count)
      let status = inflate(stream, Z_SYNC_FLUSH)
      let isFine = status == Z_OK || status == Z_BUF_ERROR
      return DecompressionStep(
        consumed: input.count - Int(stream.pointee.avail_in),
        produced: output.count - Int(stream.pointee.avail_out),
        fault: isFine ? nil : .malformed("zlib reports \(status)"))
    }
  }

  var isAtBlockEnd: Bool { stream.pointee.data_type & 128 != 0 }

  func reset() { inflateReset(stream) }
}
