import HTTPTestServer
import HTTPWire

/// The server's side of one connection of HTTP/2 (RFC 9113), as far as tests of its faults need it: frames go out as they
/// are told, and of those that come only requests are looked at.
struct H2Script {
  /// The end of a script that closes the connection without another byte, so that nothing of TLS is sent either.
  struct Cut: Error {}

  enum Kind: UInt8 {
    case data = 0
    case headers = 1
    case reset = 3
    case settings = 4
    case goAway = 7
  }

  let connection: StreamTestConnection

  init(_ connection: StreamTestConnection) throws {
    self.connection = connection
    _ = try read(24)
    try send(.settings)
  }

  /// Waits for the next request, whose body is not looked at. Returns its stream.
  func nextRequest() throws -> UInt32 {
    while true {
      let head = try read(9)
      let stream = head[5...].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
      _ = try read(Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2]))
      if head[3] == Kind.settings.rawValue, head[4] & 1 == 0 { try send(.settings, flags: 1) }
      if head[3] == Kind.headers.rawValue { return stream }
    }
  }

  func send(_ kind: Kind, flags: UInt8 = 0, on stream: UInt32 = 0, _ payload: [UInt8] = []) throws {
    let length = payload.count
    let head: [UInt8] = [
      UInt8(truncatingIfNeeded: length >> 16), UInt8(truncatingIfNeeded: length >> 8),
      UInt8(truncatingIfNeeded: length), kind.rawValue, flags,
    ]
    try connection.write(head + Self.number(stream) + payload)
  }

  /// Sends a head with status 200 and fields, whose names are in lower case.
  func sendHead(on stream: UInt32, _ fields: [HTTPHeader] = [], ends: Bool = false) throws {
    // 0x88 is `:status: 200` of the static table, 0x00 a literal that is not indexed (RFC 7541 §6).
    let block = fields.reduce(into: [0x88] as [UInt8]) { block, field in
      block += [0, UInt8(field.name.utf8.count)] + field.name.utf8
      block += [UInt8(field.value.utf8.count)] + field.value.utf8
    }
    try send(.headers, flags: ends ? 5 : 4, on: stream, block)
  }

  /// Sends a part of a body in frames of at most 16 KiB.
  func sendBody(_ bytes: [UInt8], on stream: UInt32, ends: Bool = false) throws {
    var start = 0
    repeat {
      let end = min(start + 16_384, bytes.count)
      try send(.data, flags: ends && end == bytes.count ? 1 : 0, on: stream, Array(bytes[start..<end]))
      start = end
    } while start < bytes.count
  }

  func reset(_ stream: UInt32, code: UInt32) throws { try send(.reset, on: stream, Self.number(code)) }

  /// Says that no stream above `last` is served (RFC 9113 §6.8).
  func goAway(last: UInt32) throws { try send(.goAway, Self.number(last) + Self.number(0)) }

  /// Ends the socket without the alert of TLS, as someone on the way could.
  func cut() throws -> Never {
    connection.cutOff()
    _ = try? connection.readToEnd()
    throw Cut()
  }

  /// Reads what the client still sends, until it closes the connection.
  func waitForEnd() { _ = try? connection.readToEnd() }

  private func read(_ count: Int) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count {
      let more = try connection.read(atMost: count - bytes.count)
      if more.isEmpty { throw Cut() }
      bytes += more
    }
    return bytes
  }

  private static func number(_ value: UInt32) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
  }
}
