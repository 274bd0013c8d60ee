import HTTPWire
import Testing

@Suite("Frame scanner") struct FrameScannerTests {
  typealias Frame = FrameScanner.Frame

  static func frame(_ kind: UInt8, _ flags: UInt8, _ stream: UInt8, _ payload: [UInt8] = []) -> [UInt8] {
    [0, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF), kind, flags, 0, 0, 0, stream] + payload
  }

  static func scan(_ bytes: [UInt8], ofClient isClient: Bool = false, by size: Int = .max) -> (
    frames: [Frame], read: Int, isLost: Bool
  ) {
    var scanner = FrameScanner(ofClient: isClient)
    var frames: [Frame] = []
    var read = 0
    var rest = bytes[...]
    while !rest.isEmpty {
      let part = Array(rest.prefix(size))
      rest = rest.dropFirst(part.count)
      scanner.scan(
        part.count,
        read: { position, target in
          target.copyBytes(from: part[position..<position + target.count])
          read += target.count
          return true
        }, found: { frames.append($0) })
    }
    return (frames, read, scanner.isLost)
  }

  @Test("Frames are found in pieces of any size", arguments: [1, 2, 5, 9, 10, 100, .max])
  func pieces(size: Int) {
    let bytes =
      Self.frame(4, 0, 0, [0, 3, 0, 0, 0, 100]) + Self.frame(1, 4, 1, [0x88])
      + Self.frame(0, 0, 1, [UInt8](repeating: 7, count: 300)) + Self.frame(0, 1, 1)
      + Self.frame(3, 0, 3, [0, 0, 0, 8]) + Self.frame(7, 0, 0, [0, 0, 0, 5, 0, 0, 0, 2, 1, 1, 1])
      + Self.frame(9, 4, 5)
    let result = Self.scan(bytes, by: size)
    var settings = Frame(kind: 4)
    settings.streamLimit = 100
    #expect(
      result.frames == [
        settings, Frame(kind: 1, flags: 4, stream: 1), Frame(kind: 0, stream: 1),
        Frame(kind: 0, flags: 1, stream: 1), Frame(kind: 3, stream: 3, code: 8),
        Frame(kind: 7, lastStream: 5, code: 2), Frame(kind: 9, flags: 4, stream: 5),
      ])
    #expect(!result.isLost)
    // The headers of seven frames, and the payloads of three.
    #expect(result.read == 7 * 9 + 6 + 4 + 8)
  }

  @Test("A frame is found at its last byte")
  func lastByte() {
    let bytes = Self.frame(4, 0, 0) + Self.frame(0, 1, 1, [1, 2, 3])
    #expect(Self.scan(bytes.dropLast()).frames.count == 1)
    #expect(Self.scan(bytes).frames.count == 2)
  }

  @Test("The preface of a client comes first")
  func preface() {
    let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
    let result = Self.scan(preface + Self.frame(4, 0, 0), ofClient: true, by: 5)
    #expect(result.frames == [Frame(kind: 4)] && !result.isLost)
    #expect(Self.scan(Self.frame(4, 0, 0) + [UInt8](repeating: 0, count: 30), ofClient: true).isLost)
  }

  @Test("Bytes other than HTTP/2 are not scanned further")
  func garbage() {
    #expect(Self.scan(Array("HTTP/1.1 200 OK\r\n\r\n".utf8)).isLost)
    #expect(Self.scan(Self.frame(0, 0, 1)).isLost)
    #expect(Self.scan(Self.frame(4, 0, 0) + [0, 0x40, 1, 0, 0, 0, 0, 0, 1]).isLost)
  }

  @Test("RST_STREAM and GOAWAY that are too short have no payload")
  func shortFrames() {
    let result = Self.scan(
      Self.frame(4, 0, 0) + Self.frame(3, 0, 1, [1]) + Self.frame(7, 0, 0, [1, 2, 3, 4]))
    #expect(result.frames.map(\.kind) == [4, 3, 7])
    #expect(result.frames.allSatisfy { $0.code == 0 })
  }
}
