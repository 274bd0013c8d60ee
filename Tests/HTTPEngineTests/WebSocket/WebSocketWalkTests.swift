import Foundation
import HTTPEngine
import HTTPSystem
import HTTPWire
import Randomness
import Testing

/// Two sides of a connection that exchange bytes in random portions.
@Suite("A WebSocket client and server, step by step") struct WebSocketWalkTests {
  /// One side, and the bytes on their way to it.
  private final class Side {
    static let maximumMessageSize = 40_000

    /// Whether messages are compressed, large ones only when they are taken. Then their uncompressed bytes count.
    let compresses: Bool
    var connection: WebSocketConnection
    var incoming: [UInt8] = []
    var sent: [WebSocketMessage] = []
    var received: [WebSocketMessage] = []
    var pingsSent = 0
    var pongsReceived = 0
    var closure: WebSocketClosure?
    var largestStorage = 0
    /// The number of bytes of answers to Ping frames that were not consumed yet.
    var answerByteCount: Int {
      connection.outputByteCount - Int(connection.outputEnd - connection.takenByteCount)
    }

    init(_ role: WebSocketRole, deflate: WebSocketDeflate?, frameSize: Int, keptSize: Int) {
      var options = WebSocketOptions(role: role, deflate: deflate)
      options.maximumFrameSize = frameSize
      options.maximumMessageSize = Self.maximumMessageSize
      options.compressionThreshold = 1
      options.keptPayloadSize = keptSize
      compresses = deflate != nil
      var key: UInt32 = 0x9E37_79B9
      connection = WebSocketConnection(options, compression: deflate.map { _ in ZlibMessageCompression() }) {
        key = key &* 1_664_525 &+ 1_013_904_223
        return key
      }
    }

    func receive(_ count: Int) {
      let chunk = Array(incoming.prefix(count))
      incoming.removeFirst(chunk.count)
      chunk.withUnsafeBytes { chunk in
        var position = 0
        while let event = connection.receive(chunk, from: &position) { note(event) }
        #expect(position == chunk.count)
      }
      largestStorage = max(largestStorage, connection.assembledByteCount)
    }

    private func note(_ event: WebSocketEvent) {
      #expect(closure == nil, "an event follows the last one")
      switch event {
      case .message(let message): received.append(message)
      case .ping: break
      case .pong: pongsReceived += 1
      case .closed(let closure): self.closure = closure
      case .failed(let violation): Issue.record("\(violation)")
      }
    }
  }

  private static let agreements: [WebSocketDeflate?] =
    [nil]
    + [8, 9, 12, 15].flatMap { bits in
      [(false, false), (true, false), (false, true), (true, true)].map { resets in
        WebSocketDeflate(
          client: .init(windowBits: bits, resetsContext: resets.0),
          server: .init(windowBits: 23 - bits, resetsContext: resets.1))
      }
    }

  @Test("Random walks deliver every message in order", arguments: 0..<17)
  func walks(index: Int) throws {
    var numbers = SeededGenerator(seed: UInt64(index))
    for (frameSize, keptSize) in [(1, 1), (100, 50), (5000, 300), (.max, 1), (.max, 1000), (.max, .max)] {
      let deflate = Self.agreements[index]
      let client = Side(.client, deflate: deflate, frameSize: frameSize, keptSize: keptSize)
      let server = Side(.server, deflate: deflate, frameSize: frameSize, keptSize: keptSize)
      for _ in 0..<120 {
        let isClient = numbers.below(2) == 0
        try step(isClient ? client : server, to: isClient ? server : client, &numbers)
      }
      try finish(client, server)
      #expect(server.received == client.sent && client.received == server.sent)
      #expect(client.sent.count > 5 && server.sent.count > 5)
      #expect(client.pongsReceived <= client.pingsSent && server.pongsReceived <= server.pingsSent)
      #expect(client.closure == WebSocketClosure(code: .goingAway))
      #expect(server.closure == WebSocketClosure(code: .goingAway))
      #expect(max(client.largestStorage, server.largestStorage) <= Side.maximumMessageSize)
    }
  }

  private func step(_ side: Side, to other: Side, _ numbers: inout SeededGenerator) throws {
    switch numbers.below(6) {
    case 0, 1:
      let message = Self.message(&numbers)
      try side.connection.send(message)
      side.sent.append(message)
    case 2:
      side.pingsSent += 1
      try side.connection.sendPing(Data(count: numbers.below(126)))
    case 3: write(side, to: other, [1, 20, 4000, .max][numbers.below(4)])
    default: side.receive([1, 7, 1000, 100_000][numbers.below(4)])
    }
  }

  /// Moves bytes to the other side, and checks the numbers of bytes.
  private func write(_ side: Side, to other: Side, _ limit: Int) {
    let (taken, hadOutput) = (side.connection.takenByteCount, side.connection.hasOutput)
    let answers = side.answerByteCount
    let output = side.connection.takeOutput(limit)
    #expect((output != nil) == hadOutput && output?.isEmpty != true)
    // Answers to Ping frames are not counted, and overtake the rest.
    let answered = answers - side.answerByteCount
    let count = Int(side.connection.takenByteCount - taken)
    #expect(side.compresses ? output != nil || count == 0 : count + answered == output?.count ?? 0)
    if limit == .max { #expect(side.connection.takenByteCount == side.connection.outputEnd) }
    other.incoming += output.map { Array($0) } ?? []
  }

  private func finish(_ client: Side, _ server: Side) throws {
    let exchange = {
      while client.connection.hasOutput || server.connection.hasOutput {
        server.incoming += client.connection.takeOutput().map { Array($0) } ?? []
        client.incoming += server.connection.takeOutput().map { Array($0) } ?? []
        server.receive(.max)
        client.receive(.max)
      }
      server.receive(.max)
      client.receive(.max)
    }
    exchange()
    try client.connection.close(.goingAway, reason: "")
    exchange()
  }

  private static func message(_ numbers: inout SeededGenerator) -> WebSocketMessage {
    let count = [0, 1, 30, 300, 3000, 20_000][numbers.below(6)]
    switch numbers.below(3) {
    case 0:
      let words = ["aé", "κόσμε ", "😀", "{\"id\": 17}"]
      var text = ""
      for _ in 0..<count / 10 { text += words[numbers.below(4)] }
      return .text(text)
    case 1: return .binary(Data((0..<count).map { _ in UInt8(truncatingIfNeeded: numbers.next()) }))
    default: return .binary(Data(repeating: 0x2A, count: count))
    }
  }
}

extension SeededGenerator {
  fileprivate mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(limit)) }
}
