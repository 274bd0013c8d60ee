import Foundation
import HTTPWire

/// A side of a WebSocket connection that is fed by a test, and its events.
final class WebSocketPeer {
  var connection: WebSocketConnection
  var events: [WebSocketEvent] = []

  init(
    _ role: WebSocketRole, compression: (any MessageCompression)? = nil,
    configure: (inout WebSocketOptions) -> Void = { _ in }
  ) {
    var options = WebSocketOptions(role: role)
    configure(&options)
    connection = WebSocketConnection(options, compression: compression) { 0xA1B2_C3D4 }
  }

  /// Feeds bytes in chunks of a size, and collects the events.
  func receive(_ bytes: [UInt8], chunkSize: Int = .max) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let chunk = Array(rest.prefix(chunkSize))
      rest = rest.dropFirst(chunk.count)
      chunk.withUnsafeBytes { chunk in
        var position = 0
        while let event = connection.receive(chunk, from: &position) { events.append(event) }
        precondition(position == chunk.count)
      }
    }
  }

  var phase: WebSocketConnection.WebSocketPhase { connection.phase }
  var endsTransport: Bool { connection.endsTransport }
  var hasOutput: Bool { connection.hasOutput }
  var outputByteCount: Int { connection.outputByteCount }
  var assembledByteCount: Int { connection.assembledByteCount }

  func output() -> [UInt8] { connection.takeOutput().map { Array($0) } ?? [] }
}

/// Frames as bytes, valid or not.
enum RawFrame {
  static let fin: UInt8 = 0x80
  static let rsv1: UInt8 = 0x40

  /// Returns a frame of a server with a length in the fewest bytes.
  static func of(_ first: UInt8, _ payload: [UInt8] = []) -> [UInt8] {
    [first] + length(payload.count) + payload
  }

  static func text(_ text: String) -> [UInt8] { of(fin | 1, Array(text.utf8)) }

  static func close(_ code: Int, _ reason: [UInt8] = []) -> [UInt8] {
    of(fin | 8, [UInt8(truncatingIfNeeded: code >> 8), UInt8(truncatingIfNeeded: code)] + reason)
  }

  /// Returns a frame of a client, masked by an independent loop.
  static func masked(
    _ first: UInt8, _ payload: [UInt8] = [], key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
  ) -> [UInt8] {
    var length = length(payload.count)
    length[0] |= 0x80
    return [first] + length + key + payload.indices.map { payload[$0] ^ key[$0 % 4] }
  }

  private static func length(_ count: Int) -> [UInt8] {
    switch count {
    case 0...125: [UInt8(count)]
    case 126...65_535: [126, UInt8(count >> 8), UInt8(count & 0xFF)]
    default: [127] + (0..<8).map { UInt8(truncatingIfNeeded: count >> (56 - 8 * $0)) }
    }
  }
}
