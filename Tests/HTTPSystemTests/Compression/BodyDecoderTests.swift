import FoundationEssentials
import HTTPSystem
import HTTPWire
import Testing

@Suite struct BodyDecoderTests {
  /// A text, and its coded forms.
  struct Sample: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let codings: [ContentCoding]
    let coded: [UInt8]
    var text = "hello hello hello hello\n"

    init(_ name: String, _ codings: ContentCoding..., base64: String) {
      testDescription = name
      self.codings = codings
      coded = Data(base64Encoded: base64).map { Array($0) } ?? []
    }
  }

  static let samples: [Sample] = [
    Sample("br", .brotli, base64: "cAEQaGVsbG8gaGVsbG8gaGVsbG8gaGVsbG8KAw=="),
    Sample("zstd", .zstd, base64: "KLUv/QRYbQAAOGhlbGxvIAoBAJlLEah8Lqg="),
    Sample("raw deflate", .deflate, base64: "y0jNyclXyEAnuQA="),
    Sample("wrapped deflate", .deflate, base64: "eJzLSM3JyVfIQCe5AHC+CLs="),
    Sample("gzip", .gzip, base64: "H4sIAAAAAAACA8tIzcnJV8hAJ7kAAIhZCxgAAAA="),
    Sample("gzip in zstd", .zstd, .gzip, base64: "KLUv/QRY6QAAH4sIAAAAAAACA8tIzcnJV8hAJ7kAAIhZCxgAAACr4DgR"),
  ]

  struct Outcome {
    var bytes: [UInt8] = []
    var isComplete = false
    var detail: String?
  }

  /// Decodes input that comes in parts of a size.
  static func decode(
    _ coded: [UInt8], _ codings: [ContentCoding], partSize: Int = .max, limit: Int = .max
  ) throws -> Outcome {
    let decoder = try #require(BodyDecoder(codings))
    var outcome = Outcome()
    var turn: UInt64 = 0
    try coded.withUnsafeBytes { all in
      var start = 0
      while start < all.count {
        let end = partSize < all.count - start ? start + partSize : all.count
        var input = UnsafeRawBufferPointer(rebasing: all[start..<end])
        start = end
        loop: while true {
          switch decoder.nextPiece(from: &input) {
          case .needsInput: break loop
          case .turnExhausted:
            turn += 1
            decoder.beginTurn(turn)
          case .outOfMemory: Issue.record("no memory")
          case .malformed(let detail):
            outcome.detail = detail
            return
          case .piece(let piece):
            try #require(!piece.isEmpty && piece.count <= 32_768)
            outcome.bytes += Array(piece)
            decoder.dropPiece()
            if outcome.bytes.count > limit { return }
          }
        }
        #expect(input.isEmpty)
      }
      #expect(decoder.consumed == Int64(coded.count))
    }
    outcome.isComplete = decoder.isComplete
    return outcome
  }

  @Test("An encoded text is decoded at any chunk boundaries", arguments: samples, [1, 2, 3, 7, .max])
  func chunkBoundaries(sample: Sample, partSize: Int) throws {
    let outcome = try Self.decode(sample.coded, sample.codings, partSize: partSize)
    #expect(String(decoding: outcome.bytes, as: UTF8.self) == sample.text)
    #expect(outcome.isComplete && outcome.detail == nil)
  }

  @Test("Codings within each other do not decode for longer than a turn before the first piece")
  func turns() throws {
    let size = 12 << 20
    let empty = try #require(Deflater.compress(Data(), .gzip))
    // Zeros after a member are padding, from which the inner coding makes nothing.
    let coded = try #require(Deflater.compress(empty + Data(count: size), .gzip))
    let decoder = try #require(BodyDecoder([.gzip, .gzip]))
    var turns: UInt64 = 0
    coded.withUnsafeBytes { bytes in
      var input = bytes
      loop: while turns < 100 {
        let before = decoder.produced
        switch decoder.nextPiece(from: &input) {
        case .turnExhausted:
          #expect(decoder.produced - before <= 5 << 20)
          turns += 1
          decoder.beginTurn(turns)
        case .needsInput: break loop
        case .piece, .malformed, .outOfMemory: Issue.record("there is no piece")
        }
      }
    }
    #expect(turns == size / (4 << 20))
    #expect(decoder.isComplete && decoder.produced >= size)
  }

  /// Decodes members of gzip, each of which ends with its chunk.
  @Test("All chunks of a turn together do not decode to more than one turn allows") func chunksOfOneTurn()
    throws
  {
    let coded = try #require(Deflater.compress(Data(count: 3_000_000), .gzip))
    let decoder = try #require(BodyDecoder([.gzip]))
    var sizes: [Int] = []
    var input = UnsafeRawBufferPointer(start: nil, count: 0)
    try coded.withUnsafeBytes { bytes in
      for turn in 1...3 as ClosedRange<UInt64> {
        var size = 0
        loop: while true {
          decoder.beginTurn(turn)
          switch decoder.nextPiece(from: &input) {
          case .turnExhausted: break loop
          case .needsInput: input = bytes
          case .piece(let piece):
            size += piece.count
            try #require(size < 16 << 20, "the turn has no end")
            decoder.dropPiece()
          case .malformed, .outOfMemory: Issue.record("the chunk is valid")
          }
        }
        sizes.append(size)
      }
    }
    #expect(sizes.allSatisfy { $0 >= 4 << 20 && $0 < 4 << 20 + 32_768 }, "\(sizes)")
  }

  @Test("A truncated body is incomplete at every length", arguments: samples)
  func truncation(sample: Sample) throws {
    for length in 1..<sample.coded.count {
      let outcome = try Self.decode(Array(sample.coded.prefix(length)), sample.codings)
      #expect(!outcome.isComplete, "cut at \(length)")
      #expect(sample.text.utf8.starts(with: outcome.bytes))
    }
  }

  /// The formats with a checksum notice each bit that changes the text; a few bits are padding.
  @Test(
    "A changed bit is detected",
    arguments: samples.filter { $0.testDescription == "gzip" || $0.testDescription == "wrapped deflate" })
  func changedBit(sample: Sample) throws {
    for index in (sample.testDescription == "gzip" ? 10 : 2)..<sample.coded.count {
      for bit in 0..<8 {
        var coded = sample.coded
        coded[index] ^= 1 << UInt8(bit)
        let outcome = try Self.decode(coded, sample.codings)
        let isNoticed = outcome.detail != nil || !outcome.isComplete
        #expect(isNoticed || sample.text.utf8.elementsEqual(outcome.bytes), "byte \(index), bit \(bit)")
      }
    }
  }

  @Test("Successive members and frames are one body", arguments: [1, 5, .max])
  func members(partSize: Int) throws {
    for name in ["gzip", "zstd"] {
      let sample = try #require(Self.samples.first { $0.testDescription == name })
      let coded = sample.coded + sample.coded + sample.coded
      let outcome = try Self.decode(coded, sample.codings, partSize: partSize)
      #expect(String(decoding: outcome.bytes, as: UTF8.self) == sample.text + sample.text + sample.text)
      #expect(outcome.isComplete)
      #expect(try !Self.decode(coded.dropLast(), sample.codings, partSize: partSize).isComplete)
    }
  }

  @Test("Zeros after gzip are padding and other bytes are an error", arguments: [1, .max])
  func padding(partSize: Int) throws {
    for sample in Self.samples {
      let padded = try Self.decode(sample.coded + [0, 0, 0], sample.codings, partSize: partSize)
      let mayBePadded = ["gzip", "raw deflate"].contains(sample.testDescription)
      #expect((padded.detail == nil && padded.isComplete) == mayBePadded, "\(sample.testDescription)")
      let followed = try Self.decode(sample.coded + Array("more!".utf8), sample.codings, partSize: partSize)
      #expect(followed.detail != nil || !followed.isComplete, "\(sample.testDescription)")
      #expect(sample.text.utf8.elementsEqual(followed.bytes))
    }
  }

  @Test("Up to four bytes may follow deflate without its wrapping", arguments: [1, 2, 3, .max], 0...6)
  func trailer(partSize: Int, count: Int) throws {
    for name in ["raw deflate", "wrapped deflate"] {
      let sample = try #require(Self.samples.first { $0.testDescription == name })
      let trailer = Array([0xBE, 0x08, 0xBB, 0xFF, 0x00, 0x61].prefix(count)) as [UInt8]
      let outcome = try Self.decode(sample.coded + trailer, sample.codings, partSize: partSize)
      let isAccepted = count <= (name == "raw deflate" ? 4 : 0)
      #expect((outcome.detail == nil) == isAccepted, "\(name)")
      #expect(outcome.detail == nil || outcome.detail == "bytes follow its end")
      #expect(sample.text.utf8.elementsEqual(outcome.bytes))
    }
  }

  @Test("Bytes that follow gzip are named at any chunk boundaries", arguments: [1, 2, 3, 36, 37, 38, .max])
  func bytesAfterGzip(partSize: Int) throws {
    let sample = try #require(Self.samples.first { $0.testDescription == "gzip" })
    for junk in ["x", "<html>", "\u{1F}x", "\u{1F}\u{1F}", "\0\0x", "\u{8B}\u{1F}"] {
      let outcome = try Self.decode(sample.coded + Array(junk.utf8), sample.codings, partSize: partSize)
      #expect(
        outcome.detail == "bytes follow its end", "\(junk.debugDescription): \(outcome.detail ?? "none")")
      #expect(sample.text.utf8.elementsEqual(outcome.bytes))
    }
    let cut = try Self.decode(sample.coded + [0x1F], sample.codings, partSize: partSize)
    #expect(cut.detail == nil && !cut.isComplete, "the beginning of another member")
  }

  @Test("Highly compressed bytes are decoded in small chunks") func smallChunks() throws {
    // 64 MiB of zeros.
    let brotli =
      "y///P/gnAOKxQCD3/o///3/wTwDEYRGA7v0f////4J8AiMMCAN37P/7//8E/ARCHBQC693/8//+DfwIgDgsAdO//+P//B/8E"
      + "QBwWAOje//H//w/+CYA4LADQvf/L//8//BMAcVgAoHv/Bw=="
    let coded = Array(try #require(Data(base64Encoded: brotli)))
    let outcome = try Self.decode(coded, [.brotli])
    #expect(outcome.bytes.count == 64 << 20)
    #expect(outcome.isComplete)
  }

  @Test("A zstd window above eight mebibytes is refused") func windowOfZstd() throws {
    // A thousand zeros, with a head that asks for a window of 128 MiB.
    let coded = Array(try #require(Data(base64Encoded: "KLUv/QCITAAAEAAAAQDjK4AFAQAA")))
    let outcome = try Self.decode(coded, [.zstd])
    #expect(outcome.detail != nil && outcome.bytes.isEmpty)
  }

  @Test("Without a coding, no decoder is created") func noCoding() {
    #expect(BodyDecoder([]) == nil)
  }

  @Test("Random bytes do not hang", arguments: ContentCoding.allCases)
  func randomBytes(coding: ContentCoding) throws {
    var state: UInt64 = 42
    for _ in 0..<500 {
      let bytes = (0..<64).map { _ -> UInt8 in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt8(truncatingIfNeeded: state >> 56)
      }
      _ = try Self.decode(bytes, [coding], partSize: 5, limit: 1 << 22)
    }
  }
}
