import CZlib
package import FoundationEssentials
package import HTTPWire

/// The compression of WebSocket messages by zlib.
package struct ZlibMessageCompression: MessageCompression {
  /// The level of compression, from 1 to 9.
  private let level: Int32

  package init(level: Int = 6) { self.level = Int32(max(1, min(9, level))) }

  /// Returns `nil` for a window of 8 bits, because zlib's raw DEFLATE needs 9.
  package func makeCompressor(windowBits: Int) -> (any MessageCompressor)? {
    windowBits >= 9 ? ZlibMessageCompressor(windowBits: windowBits, level: level) : nil
  }

  package func makeDecompressor(windowBits: Int) -> (any MessageDecompressor)? {
    ZlibMessageDecompressor(windowBits: windowBits)
  }
}

/// Owns a stream of zlib at an address that does not change, because zlib refers to it.
private final class ZlibStream {
  let pointer = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
  var end: ((UnsafeMutablePointer<z_stream>) -> Int32)?

  init() { pointer.initialize(to: z_stream()) }

  deinit {
    _ = end?(pointer)
    pointer.deinitialize(count: 1)
    pointer.deallocate()
  }

  /// zlib counts the bytes of a call in 32 bits.
  static let longestInput = 1 << 30

  func setInput(_ input: UnsafeRawBufferPointer) {
    // zlib only reads the input, but its type does not say so.
    pointer.pointee.next_in = UnsafeMutablePointer(mutating: input.bindMemory(to: UInt8.self).baseAddress)
    pointer.pointee.avail_in = UInt32(input.count)
  }

  func setOutput(_ output: UnsafeMutableRawBufferPointer) {
    pointer.pointee.next_out = output.bindMemory(to: UInt8.self).baseAddress
    pointer.pointee.avail_out = UInt32(output.count)
  }
}

private final class ZlibMessageCompressor: MessageCompressor {
  private static let bufferSize = 16_384

  private let stream = ZlibStream()
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bufferSize, alignment: 16)

  init?(windowBits: Int, level: Int32) {
    let status = deflateInit2_(
      stream.pointer, level, Z_DEFLATED, -Int32(windowBits), 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
      Int32(MemoryLayout<z_stream>.size))
    guard status == Z_OK else { return nil }
    stream.end = deflateEnd
  }

  deinit { buffer.deallocate() }

  func compress(_ message: UnsafeRawBufferPointer, into output: inout [UInt8]) -> Bool {
    var start = 0
    repeat {
      let portion = UnsafeRawBufferPointer(rebasing: message[start...].prefix(ZlibStream.longestInput))
      start += portion.count
      stream.setInput(portion)
      guard drain(start == message.count ? Z_SYNC_FLUSH : Z_NO_FLUSH, into: &output) else { return false }
    } while start < message.count
    return true
  }

  func reset() { deflateReset(stream.pointer) }

  private func drain(_ flush: Int32, into output: inout [UInt8]) -> Bool {
    while true {
      stream.setOutput(buffer)
      let status = deflate(stream.pointer, flush)
      // Without input or output zlib reports this error, which is harmless.
      guard status == Z_OK || status == Z_BUF_ERROR else { return false }
      let count = buffer.count - Int(stream.pointer.pointee.avail_out)
      output.append(contentsOf: buffer[..<count])
      if count < buffer.count { return true }
    }
  }
}

private final class ZlibMessageDecompressor: MessageDecompressor {
  private let stream = ZlibStream()

  init?(windowBits: Int) {
    let status = inflateInit2_(
      stream.pointer, -Int32(windowBits), ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    guard status == Z_OK else { return nil }
    stream.end = inflateEnd
  }

  func decompress(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) -> DecompressionStep {
    let input = UnsafeRawBufferPointer(rebasing: input.prefix(ZlibStream.longestInput))
    stream.setInput(input)
    stream.setOutput(output)
    var fault: DecompressionStep.Fault?
    while fault == nil {
      let status = inflate(stream.pointer, Z_SYNC_FLUSH)
      // A final block does not end the message (RFC 7692 §7.2.3.4). The window is retained for the next block.
      if status == Z_STREAM_END, inflateResetKeep(stream.pointer) == Z_OK, hasInputAndRoom { continue }
      fault = self.fault(of: status)
      break
    }
    return DecompressionStep(
      consumed: input.count - Int(stream.pointer.pointee.avail_in),
      produced: output.count - Int(stream.pointer.pointee.avail_out), fault: fault)
  }

  /// zlib sets this bit of `data_type` if it expects the header of a block next.
  var isAtBlockEnd: Bool { stream.pointer.pointee.data_type & 128 != 0 }

  func reset() { inflateReset(stream.pointer) }

  private var hasInputAndRoom: Bool {
    stream.pointer.pointee.avail_in > 0 && stream.pointer.pointee.avail_out > 0
  }

  private func fault(of status: Int32) -> DecompressionStep.Fault? {
    switch status {
    case Z_OK, Z_BUF_ERROR, Z_STREAM_END: nil
    case Z_MEM_ERROR: .outOfMemory
    case Z_NEED_DICT: .malformed("a preset dictionary is needed")
    default: .malformed(stream.pointer.pointee.msg.map { String(cString: $0) } ?? "invalid data")
    }
  }
}

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

  /// Returns the compressed bytes; `nil` if memory is short.
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
      // zlib reports this error if it has neither input nor output left, which is harmless.
      guard status == Z_OK || status == Z_BUF_ERROR else { return status }
      if made < output.count { return Z_OK }
    }
  }
}
