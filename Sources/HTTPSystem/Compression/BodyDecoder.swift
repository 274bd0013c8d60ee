import CBrotli
import CZlib
import CZstd
import Glibc
package import HTTPWire

/// The decoder of the content codings of one body. The body is decoded in small pieces, so that memory does not grow
/// with the ratio of sizes. Belongs to the loop's thread.
package final class BodyDecoder {
  /// The result of asking for the next piece.
  package enum Result {
    /// Decoded bytes, which are valid until ``dropPiece()``.
    case piece(UnsafeRawBufferPointer)
    /// All input was read and all of its output was consumed.
    case needsInput
    /// The work of this turn is done; more follows in the next one.
    case turnExhausted
    case malformed(String)
    case outOfMemory
  }

  /// The size of a piece: large enough for a low cost a byte, and small enough for the processor's cache.
  private static let pieceSize = 32_768

  /// The largest number of bytes that all codings together produce in one turn. After that, others have their turn.
  /// Codings within each other may produce gigabytes from a few bytes, before there is a piece.
  private static let turnSize = 4 << 20

  private let last: DecodingStage
  /// The number of bytes that may be produced in this turn.
  private var budget = BodyDecoder.turnSize
  /// The turn of the loop that the budget is for.
  private var turn: UInt64?
  /// The bytes that were read, before decoding.
  package private(set) var consumed: Int64 = 0

  /// Makes a decoder for codings in the order of decoding; `nil` if there are none or no memory.
  package init?(_ codings: [ContentCoding]) {
    var stage: DecodingStage?
    for coding in codings {
      guard let decoder = Self.decoder(of: coding),
        let next = DecodingStage(decoder, source: stage, capacity: Self.pieceSize)
      else { return nil }
      stage = next
    }
    guard let stage else { return nil }
    last = stage
  }

  /// Whether every coding is complete and every piece was consumed.
  package var isComplete: Bool { last.isComplete }

  /// The largest number of bytes that a coding has produced.
  package var produced: Int64 { last.largestOutput }

  /// Begins a turn, which may decode some megabytes. A turn that has begun goes on with what it has left, however many
  /// parts of the body it reads.
  ///
  /// - Parameter turn: The number of the turn.
  package func beginTurn(_ turn: UInt64) {
    guard turn != self.turn else { return }
    self.turn = turn
    budget = Self.turnSize
  }

  /// Decodes until there is a piece, or the turn is over. Removes the bytes from `input` that were read.
  package func nextPiece(from input: inout UnsafeRawBufferPointer) -> Result {
    let before = input.count
    defer { consumed += Int64(before - input.count) }
    switch last.fill(from: &input, &budget) {
    case .filled: return .piece(last.unread)
    case .needsInput: return .needsInput
    case .turnExhausted: return .turnExhausted
    case .fault(.malformed(let detail)): return .malformed(detail)
    case .fault(.outOfMemory): return .outOfMemory
    }
  }

  /// Drops the piece. Its memory is reused for the next one.
  package func dropPiece() { last.drop(last.unread.count) }

  private static func decoder(of coding: ContentCoding) -> (any ContentDecoder)? {
    switch coding {
    case .gzip: InflateDecoder(.gzip)
    case .deflate: InflateDecoder(.deflate)
    case .brotli: BrotliDecoder()
    case .zstd: ZstdDecoder()
    }
  }
}

/// One coding of a body, and its decoded bytes that were not consumed yet.
private final class DecodingStage {
  enum Filling {
    case filled
    case needsInput
    case turnExhausted
    case fault(DecodingFault)
  }

  private let decoder: any ContentDecoder
  /// The outer coding, which is decoded first.
  private let source: DecodingStage?
  private let room: UnsafeMutableRawBufferPointer
  private var start = 0
  private var end = 0
  /// Whether the last call filled the buffer, so that the decoder may have more output without further input.
  private var mayHaveMore = false
  /// The number of bytes that were produced.
  private var total: Int64 = 0

  init?(_ decoder: any ContentDecoder, source: DecodingStage?, capacity: Int) {
    guard let memory = malloc(capacity) else { return nil }
    self.decoder = decoder
    self.source = source
    room = UnsafeMutableRawBufferPointer(start: memory, count: capacity)
  }

  deinit { free(room.baseAddress) }

  var unread: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: room[start..<end]) }

  var isComplete: Bool { decoder.isAtEnd && start == end && source?.isComplete != false }

  /// The largest number of bytes that this coding or one outside of it has produced.
  var largestOutput: Int64 { max(total, source?.largestOutput ?? 0) }

  func drop(_ count: Int) { start += count }

  /// Decodes until there are unread bytes, or `budget` bytes were produced.
  func fill(from input: inout UnsafeRawBufferPointer, _ budget: inout Int) -> Filling {
    while start == end {
      guard budget > 0 else { return .turnExhausted }
      let step: DecodingStep
      let available: Int
      if let source {
        if !mayHaveMore {
          let filling = source.fill(from: &input, &budget)
          guard case .filled = filling else { return filling }
        }
        available = source.unread.count
        step = decoder.decode(source.unread, into: room)
        source.drop(step.consumed)
      } else {
        available = input.count
        guard mayHaveMore || available > 0 else { return .needsInput }
        step = decoder.decode(input, into: room)
        input = UnsafeRawBufferPointer(rebasing: input[step.consumed...])
      }
      if let fault = step.fault { return .fault(fault) }
      // A decoder that neither reads nor writes would be called forever.
      guard step.consumed + step.produced > 0 || available == 0 else {
        return .fault(.malformed("the decoder makes no progress"))
      }
      mayHaveMore = step.produced == room.count
      start = 0
      end = step.produced
      budget -= end
      total += Int64(end)
    }
    return .filled
  }
}

/// A decoder of one content coding. Belongs to one thread at a time.
protocol ContentDecoder: AnyObject {
  /// Whether the input so far ends where the coding ends.
  var isAtEnd: Bool { get }

  /// Reads from `input` and writes to `output`, as much of both as possible.
  ///
  /// If `output` is full afterwards, there may be more to write without further input.
  func decode(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> DecodingStep
}

/// The progress of one call of a ``ContentDecoder``.
struct DecodingStep {
  var consumed = 0
  var produced = 0
  var fault: DecodingFault?
}

/// The reason why a body cannot be decoded.
enum DecodingFault: Error, Equatable {
  /// The bytes are not in the coding; in the words of the library, if it has any.
  case malformed(String)
  case outOfMemory
}

/// A decoder of gzip (RFC 1952) with any number of members, and of `deflate`. Like browsers, it accepts `deflate` with
/// its wrapping (RFC 1950) and without (RFC 1951).
final class InflateDecoder: ContentDecoder {
  enum Format {
    case gzip
    case deflate
  }

  private enum State {
    /// The state before the first bytes. The first two bytes of `deflate` show whether it is wrapped.
    case unopened(first: UInt8?)
    case inflating
    /// The state after the end of the stream, or of a member of gzip. The first byte that follows may have been read.
    case ended(first: UInt8?)
  }

  private let format: Format
  /// At an address that does not change, because zlib refers to it.
  private let stream: UnsafeMutablePointer<z_stream>
  private var isOpen = false
  private var state = State.unopened(first: nil)
  /// The number of bytes that may follow `deflate` without its wrapping. As in curl, they are a checksum, which some
  /// servers send even without a header.
  private var trailerLeft = 0

  init(_ format: Format) {
    self.format = format
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
  }

  deinit {
    if isOpen { inflateEnd(stream) }
    stream.deinitialize(count: 1)
    stream.deallocate()
  }

  var isAtEnd: Bool {
    if case .ended(first: nil) = state { true } else { false }
  }

  func decode(_ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> DecodingStep {
    switch state {
    case .inflating: inflate(input, output)
    case .ended(let first): readOn(input, output, after: first)
    case .unopened(let first):
      switch format {
      case .gzip: open(windowBits: MAX_WBITS + 16) ?? inflate(input, output)
      case .deflate: begin(input, output, after: first)
      }
    }
  }

  // MARK: The beginning

  private func begin(
    _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer, after first: UInt8?
  ) -> DecodingStep {
    guard let next = input.first else { return DecodingStep() }
    guard let first else {
      guard input.count == 1 else {
        return open(windowBits: Self.windowBits(next, input[1])) ?? inflate(input, output)
      }
      state = .unopened(first: next)
      return DecodingStep(consumed: 1)
    }
    if let failure = open(windowBits: Self.windowBits(first, next)) { return failure }
    // One byte of either form is too short to produce anything.
    let opening = withUnsafeBytes(of: first) { inflate($0, output) }
    return opening.fault == nil ? inflate(input, output) : opening
  }

  /// Returns the window bits by the first two bytes: with the header of zlib (RFC 1950 §2.2), or negative without.
  private static func windowBits(_ first: UInt8, _ second: UInt8) -> Int32 {
    let isWrapped = first & 0x0F == 8 && first >> 4 <= 7 && (Int(first) << 8 | Int(second)) % 31 == 0
    return isWrapped ? MAX_WBITS : -MAX_WBITS
  }

  /// Returns a failed step if memory is short.
  private func open(windowBits: Int32) -> DecodingStep? {
    let status = inflateInit2_(stream, windowBits, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    guard status == Z_OK else { return DecodingStep(fault: .outOfMemory) }
    trailerLeft = windowBits < 0 ? 4 : 0
    isOpen = true
    state = .inflating
    return nil
  }

  // MARK: The middle and the end

  private func inflate(
    _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer
  ) -> DecodingStep {
    // zlib only reads the input, but its type does not say so.
    stream.pointee.next_in = UnsafeMutablePointer(mutating: input.bindMemory(to: UInt8.self).baseAddress)
    stream.pointee.avail_in = UInt32(input.count)
    stream.pointee.next_out = output.bindMemory(to: UInt8.self).baseAddress
    stream.pointee.avail_out = UInt32(output.count)
    let status = CZlib.inflate(stream, Z_NO_FLUSH)
    var step = DecodingStep(
      consumed: input.count - Int(stream.pointee.avail_in),
      produced: output.count - Int(stream.pointee.avail_out))
    switch status {
    case Z_OK, Z_BUF_ERROR: break
    case Z_STREAM_END: state = .ended(first: nil)
    case Z_MEM_ERROR: step.fault = .outOfMemory
    case Z_NEED_DICT: step.fault = .malformed("a preset dictionary is needed")
    default: step.fault = .malformed(stream.pointee.msg.map { String(cString: $0) } ?? "invalid data")
    }
    return step
  }

  /// Begins the next member of gzip. Zeros between members and after the last one are padding, as gzip(1) takes them.
  /// Other bytes are recognised by the first two, which may come one by one.
  private func readOn(
    _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer, after first: UInt8?
  ) -> DecodingStep {
    guard let next = input.first else { return DecodingStep() }
    guard format == .gzip else { return readTrailer(input) }
    if first == nil, next == 0 { return DecodingStep(consumed: input.prefix { $0 == 0 }.count) }
    if first == nil, next == Self.magic.0 {
      state = .ended(first: next)
      return DecodingStep(consumed: 1)
    }
    guard let first, next == Self.magic.1, inflateReset(stream) == Z_OK else {
      return DecodingStep(fault: .malformed("bytes follow its end"))
    }
    state = .inflating
    // One byte is too short to produce anything.
    let opening = withUnsafeBytes(of: first) { inflate($0, output) }
    return opening.fault == nil ? inflate(input, output) : opening
  }

  /// The first two bytes of a member of gzip (RFC 1952 §2.3.1).
  private static let magic: (UInt8, UInt8) = (0x1F, 0x8B)

  private func readTrailer(_ input: UnsafeRawBufferPointer) -> DecodingStep {
    guard input.count <= trailerLeft else { return DecodingStep(fault: .malformed("bytes follow its end")) }
    trailerLeft -= input.count
    return DecodingStep(consumed: input.count)
  }
}

/// A decoder of `br` (RFC 7932). The window is at most 16 MiB, because the format allows no larger one.
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
      // Without input the result describes the next frame, which need not come.
      isAtEnd = result == 0
    }
    return step
  }
}
