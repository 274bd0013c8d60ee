import CBrotli

/// A decoder of `br` (RFC 7932). Its window is at most 16 MiB, because the format allows no larger one.
final class BrotliDecoder: ContentDecoder {
  private let decoder: OpaquePointer
  private(set) var isAtEnd = false

  init?() {
    guard let decoder = BrotliDecoderCreateInstance(nil, nil, nil) else { return nil }
    self.decoder = decoder
  }

  deinit { BrotliDecoderDestroyInstance(decoder) }

  func decode(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> DecodingStep {
    guard !isAtEnd else {
      return DecodingStep(fault: input.isEmpty ? nil : .malformed("bytes follow its end"))
    }
    var unread = input.count
    var unwritten = output.count
    var source = input.bindMemory(to: UInt8.self).baseAddress
    var target = output.bindMemory(to: UInt8.self).baseAddress
    let result = BrotliDecoderDecompressStream(decoder, &unread, &source, &unwritten, &target, nil)
    var step = DecodingStep(consumed: input.count - unread, produced: output.count - unwritten)
    switch result {
    case BROTLI_DECODER_RESULT_SUCCESS: isAtEnd = true
    case BROTLI_DECODER_RESULT_ERROR: step.fault = fault
    default: break
    }
    return step
  }

  private var fault: DecodingFault {
    let code = BrotliDecoderGetErrorCode(decoder)
    // The codes of failed allocations are those from -30 to -21 (decode.h).
    if (-30...(-21)).contains(code.rawValue) { return .outOfMemory }
    return .malformed(BrotliDecoderErrorString(code).map { String(cString: $0) } ?? "invalid data")
  }
}
