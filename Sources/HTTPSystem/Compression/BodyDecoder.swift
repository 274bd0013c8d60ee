import Glibc
package import HTTPWire

/// The decoder of the content codings of one body. The body is decoded in small pieces, so that memory does not grow
/// with the ratio of sizes. Belongs to the loop's thread.
package final class BodyDecoder {
  /// The result of asking for the next piece.
  package enum Result {
    /// Decoded bytes, which are valid until ``dropPiece()``.
    case piece(UnsafeRawBufferPointer)
    /// All input is read and all of its output was taken.
    case needsInput
    case malformed(String)
    case outOfMemory
  }

  /// The size of a piece: large enough for a low cost a byte, and small enough for the processor's cache.
  private static let pieceSize = 32_768

  private let last: DecodingStage
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

  /// Whether every coding is complete and every piece was taken.
  package var isComplete: Bool { last.isComplete }

  /// Decodes until there is a piece. Removes the bytes from `input` that were read.
  package func nextPiece(from input: inout UnsafeRawBufferPointer) -> Result {
    let before = input.count
    defer { consumed += Int64(before - input.count) }
    switch last.fill(from: &input) {
    case .filled: return .piece(last.unread)
    case .needsInput: return .needsInput
    case .fault(.malformed(let detail)): return .malformed(detail)
    case .fault(.outOfMemory): return .outOfMemory
    }
  }

  /// Drops the piece, whose memory is used for the next one.
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

/// One coding of a body, and its decoded bytes that were not taken yet.
private final class DecodingStage {
  enum Filling {
    case filled
    case needsInput
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

  init?(_ decoder: any ContentDecoder, source: DecodingStage?, capacity: Int) {
    guard let memory = malloc(capacity) else { return nil }
    self.decoder = decoder
    self.source = source
    room = UnsafeMutableRawBufferPointer(start: memory, count: capacity)
  }

  deinit { free(room.baseAddress) }

  var unread: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: room[start..<end]) }

  var isComplete: Bool { decoder.isAtEnd && start == end && source?.isComplete != false }

  func drop(_ count: Int) { start += count }

  /// Decodes until there are unread bytes.
  func fill(from input: inout UnsafeRawBufferPointer) -> Filling {
    while start == end {
      let step: DecodingStep
      let available: Int
      if let source {
        if !mayHaveMore {
          let filling = source.fill(from: &input)
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
    }
    return .filled
  }
}
