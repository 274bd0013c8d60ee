import Foundation
import HTTPWire
import Randomness
import Testing

@Suite("Chunks of WebSocket frames") struct WebSocketChunkTests {
  private static let maximumSize = 600

  /// Frames of a server: mostly valid, in any order.
  private static func frames(_ random: inout SeededGenerator) -> [UInt8] {
    var bytes: [UInt8] = []
    var isOpen = false
    for _ in 0..<random.next() % 12 {
      // Most of them are whole repetitions of the text.
      let sizes = [0, 1, 3, 63, 119, 126, 301]
      let text = Array(String(repeating: "aé😀", count: 50).utf8)
      let payload = Array(text.prefix(sizes[Int(random.next() % 7)]))
      switch random.next() % 20 {
      case 0...12:
        let first: UInt8 = isOpen ? 0 : UInt8(random.next() % 2) + 1
        isOpen = random.next() % 3 == 0
        bytes += RawFrame.of(isOpen ? first : first | RawFrame.fin, payload)
      case 13: bytes += RawFrame.of(0x80, payload)
      case 14: bytes += RawFrame.of(0x01, payload)
      case 15...17: bytes += RawFrame.of(random.next() % 2 == 0 ? 0x89 : 0x8A, Array(payload.prefix(125)))
      case 18: bytes += RawFrame.close(1000 + Int(random.next() % 20), Array(payload.prefix(123)))
      default: bytes += RawFrame.of(UInt8(truncatingIfNeeded: random.next()), payload)
      }
    }
    if !bytes.isEmpty, random.next() % 3 == 0 {
      bytes[Int(random.next() % UInt64(bytes.count))] ^= UInt8(truncatingIfNeeded: random.next())
    }
    return bytes
  }

  @Test(
    "Random frames give the same events and output in chunks of any size", arguments: 0..<20 as Range<UInt64>)
  func chunks(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var messageCount = 0
    var failureCount = 0
    for _ in 0..<100 {
      let bytes = Self.frames(&random)
      let whole = WebSocketPeer(.client) { $0.maximumMessageSize = Self.maximumSize }
      whole.receive(bytes)
      let output = whole.output()
      for size in [1, 2, 3, 64, Int(random.next() % 200) + 1] {
        let peer = WebSocketPeer(.client) { $0.maximumMessageSize = Self.maximumSize }
        peer.receive(bytes, chunkSize: size)
        #expect(peer.events == whole.events && peer.phase == whole.phase)
        #expect(peer.output() == output)
      }
      for event in whole.events {
        if case .message = event { messageCount += 1 }
        if case .failed = event { failureCount += 1 }
      }
    }
    #expect(messageCount > 50 && failureCount > 20)
  }

  @Test("At no byte is more stored than the maximum message", arguments: 0..<4 as Range<UInt64>)
  func storage(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<100 {
      let peer = WebSocketPeer(.client) { $0.maximumMessageSize = Self.maximumSize }
      for byte in Self.frames(&random) {
        peer.receive([byte])
        #expect(peer.assembledByteCount <= Self.maximumSize + 125)
      }
      if peer.phase == .closed { #expect(peer.assembledByteCount <= 125) }
    }
  }
}
