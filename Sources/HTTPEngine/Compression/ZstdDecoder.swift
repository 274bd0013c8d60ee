import CZstd

/// A decoder of `zstd` (RFC 8878) with any number of frames.
final class ZstdDecoder: ContentDecoder {
  /// 8 MiB, the largest window that a sender may use for HTTP (RFC 9659 §3). The format itself allows terabytes.
  private static let largestWindowLog: Int32 = 23

  private let decoder: OpaquePointer
  private(set) var isAtEnd = false

  init?() {
    guard let decoder = ZSTD_createDCtx() else { return nil }
    self.decoder = decoder
    ZSTD_DCtx_setParameter(decoder, ZSTD_d_windowLogMax, Self.largestWindowLog)
  }

  deinit { ZSTD_freeDCtx(decoder) }

  func decode(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> DecodingStep {
    var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
    var target = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
    let result = ZSTD_decompressStream(decoder, &target, &source)
    var step = DecodingStep(consumed: source.pos, produced: target.pos)
    if ZSTD_isError(result) != 0 {
      step.fault = .malformed(ZSTD_getErrorName(result).map { String(cString: $0) } ?? "invalid data")
    } else if step.consumed > 0 || step.produced > 0 {
      // Without input the result is that of the next frame, which need not come.
      isAtEnd = result == 0
    }
    return step
  }
}
