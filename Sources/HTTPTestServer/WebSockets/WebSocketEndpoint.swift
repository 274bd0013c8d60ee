import COpenSSL
import CZlib
import FoundationEssentials
public import HTTPWire

/// An endpoint that upgrades a connection to the WebSocket protocol (RFC 6455), for ``Reply/webSocket(_:)``.
///
/// ```swift
/// let endpoint = WebSocketEndpoint(subprotocols: ["chat"]) { connection in
///   try connection.send("welcome")
///   try connection.echo()
/// }
/// server.enqueue(.webSocket(endpoint))
/// ```
///
/// A request that is not a handshake is refused with status 400 or 426, and the connection is closed.
public struct WebSocketEndpoint: Sendable {
  /// The code that serves a connection after its handshake. An error that it throws ends the connection.
  public typealias Script = @Sendable (WebSocketTestConnection) throws -> Void

  /// The subprotocols that the endpoint accepts.
  public var subprotocols: [String]
  /// Whether permessage-deflate (RFC 7692) is accepted if the client offers it.
  public var compresses: Bool
  /// Fields that replace the response's fields with the same name.
  public var fields: [HTTPHeader]
  /// The largest message that the endpoint receives.
  public var maximumMessageSize: Int
  let script: Script

  /// Makes an endpoint.
  ///
  /// - Parameters:
  ///   - subprotocols: The subprotocols that the endpoint accepts. Default: none.
  ///   - compresses: Whether permessage-deflate is accepted. Default: `false`.
  ///   - fields: Fields that replace the response's fields with the same name. Default: none.
  ///   - maximumMessageSize: The largest message that the endpoint receives. Default: 256 MiB.
  ///   - script: Default: sends received messages back until the connection is closed.
  public init(
    subprotocols: [String] = [], compresses: Bool = false, fields: [HTTPHeader] = [],
    maximumMessageSize: Int = 268_435_456, script: @escaping Script = { try $0.echo() }
  ) {
    self.subprotocols = subprotocols
    self.compresses = compresses
    self.fields = fields
    self.maximumMessageSize = maximumMessageSize
    self.script = script
  }
}

extension Reply {
  /// Makes an upgrade to the WebSocket protocol.
  public static func webSocket(_ endpoint: WebSocketEndpoint = WebSocketEndpoint()) -> Reply {
    var reply = Reply(status: 101)
    reply.webSocket = endpoint
    return reply
  }
}

extension Conversation {
  /// Performs the opening handshake and the script of the endpoint. Returns how the connection ends.
  func serve(
    _ endpoint: WebSocketEndpoint, _ head: RequestHead, over channel: Channel, input: [UInt8]
  ) throws(Channel.Failure) -> ConnectionEnding {
    let handshake = WebSocketServerHandshake(
      subprotocols: endpoint.subprotocols, deflate: endpoint.compresses ? WebSocketDeflateOptions() : nil)
    let agreement: WebSocketAgreement
    do throws(WebSocketServerHandshake.Refusal) {
      let answer = try handshake.answer(method: head.method, FieldBlock(head.headers), sha1: Self.sha1)
      agreement = answer.agreement
      let kept = answer.fields.filter { field in
        !endpoint.fields.contains { FieldName.equal($0.name, field.name) }
      }
      try? channel.write(ReplyHead.head(status: 101, reason: nil, headers: kept + endpoint.fields))
    } catch {
      try channel.write(Self.head(of: error))
      return .close
    }
    let connection = WebSocketTestConnection(
      channel, agreement, input: input, maximumMessageSize: endpoint.maximumMessageSize)
    do {
      try endpoint.script(connection)
    } catch let failure as Channel.Failure {
      throw failure
    } catch {
      // The error only ends the connection; a script reports its failures itself.
    }
    return connection.ending
  }

  /// Returns the response to a request that is not a handshake.
  private static func head(of refusal: WebSocketServerHandshake.Refusal) -> [UInt8] {
    let options = refusal.fields.filter { FieldName.equal($0.name, "Connection") }.map(\.value) + ["close"]
    let fields =
      refusal.fields.filter { !FieldName.equal($0.name, "Connection") } + [
        HTTPHeader(name: "Connection", value: options.joined(separator: ", ")),
        HTTPHeader(name: "Content-Length", value: "0"),
      ]
    return ReplyHead.head(status: refusal.status, reason: nil, headers: fields)
  }

  private static func sha1(_ bytes: [UInt8]) -> [UInt8]? {
    var hash = [UInt8](repeating: 0, count: 20)
    var length: UInt32 = 0
    guard EVP_Digest(bytes, bytes.count, &hash, &length, EVP_sha1(), nil) == 1 else { return nil }
    return hash
  }
}

/// A connection of a ``WebSocketEndpoint`` after its handshake; used by its script only. Every wait throws if the
/// client is gone or the server is stopped.
public final class WebSocketTestConnection {
  /// An event of the connection.
  public enum Event: Sendable, Equatable {
    /// A text message.
    case text(String)
    /// A binary message.
    case binary([UInt8])
    /// A Ping frame with its payload.
    case ping([UInt8])
    /// A Pong frame with its payload.
    case pong([UInt8])
    /// The client has sent a Close frame; 1005 stands for a frame without a code.
    case closed(code: Int, reason: String)
    /// The client has violated the protocol.
    case failed(String)
  }

  /// The subprotocol of the connection.
  public let subprotocol: String?
  /// Whether permessage-deflate is used.
  public let isCompressed: Bool
  /// Whether Ping and Close frames are answered. Default: `true`.
  public var answersControlFrames = true
  private let channel: Channel
  private var connection: WebSocketConnection
  private var input: [UInt8]
  private var position = 0
  /// Whether the client's Close frame has not been answered.
  private var owesClose = false
  private(set) var ending = ConnectionEnding.close

  init(_ channel: Channel, _ agreement: WebSocketAgreement, input: [UInt8], maximumMessageSize: Int) {
    self.channel = channel
    self.input = input
    subprotocol = agreement.subprotocol
    isCompressed = agreement.deflate != nil
    var options = WebSocketOptions(role: .server, deflate: agreement.deflate)
    options.maximumMessageSize = maximumMessageSize
    connection = WebSocketConnection(options, compression: ServerMessageCompression()) { 0 }
  }

  /// Waits for the next event. Returns `nil` if the client has closed its side of TCP.
  public func next() throws -> Event? {
    while true {
      let wasOpen = connection.phase == .open
      let event = input.withUnsafeBytes { connection.receive($0, from: &position) }
      if answersControlFrames {
        try flush()
      } else {
        // An answer that is left there would be sent with the next message.
        _ = connection.takeOutput()
        if wasOpen, connection.phase == .closed { owesClose = true }
      }
      if let event { return Event(event) }
      input = try channel.read(atMost: 65_536)
      position = 0
      if input.isEmpty { return nil }
    }
  }

  /// Waits for the next message, and skips other events. Returns `nil` after the last one.
  public func nextMessage() throws -> Event? {
    while let event = try next() {
      switch event {
      case .text, .binary: return event
      case .ping, .pong: continue
      case .closed, .failed: return nil
      }
    }
    return nil
  }

  /// Sends a text message.
  public func send(_ text: String) throws {
    try connection.send(.text(text))
    try flush()
  }

  /// Sends a binary message.
  public func send(_ bytes: [UInt8]) throws {
    try connection.send(.binary(Data(bytes)))
    try flush()
  }

  /// Sends a Ping frame.
  public func ping(_ payload: [UInt8] = []) throws {
    try connection.sendPing(Data(payload))
    try flush()
  }

  /// Sends a Close frame, without a code if it is `nil`. Only the first one is sent. It may answer the client's, if
  /// control frames are not answered.
  public func close(_ code: Int? = 1000, reason: String = "") throws {
    try connection.close(code.map { WebSocketCloseCode(rawValue: $0) }, reason: reason)
    guard owesClose else { return try flush() }
    owesClose = false
    // The connection has accepted code and reason, but counts the answer that was dropped as sent.
    let number = code.map { [UInt8(truncatingIfNeeded: $0 >> 8), UInt8(truncatingIfNeeded: $0)] } ?? []
    let payload = number + Array(reason.utf8)
    try channel.write([0x88, UInt8(truncatingIfNeeded: payload.count)] + payload)
  }

  /// Sends bytes without framing, for example a malformed frame.
  public func write(_ bytes: [UInt8]) throws { try channel.write(bytes) }

  /// Sends messages back until the connection is closed.
  public func echo() throws {
    while let message = try nextMessage() {
      switch message {
      case .text(let text): try send(text)
      case .binary(let bytes): try send(bytes)
      case .ping, .pong, .closed, .failed: break
      }
    }
  }

  /// Skips all events until the client has closed its side of TCP.
  public func drain() throws { while try next() != nil {} }

  /// Waits until the gate is open.
  public func pass(_ gate: Gate) throws { try channel.pass(gate) }

  /// Does nothing until the client closes its side or the server is stopped; then throws.
  public func stall() throws { try channel.stall() }

  /// Resets the connection when the script ends.
  public func reset() { ending = .reset }

  /// Ends the connection without the closing alert of TLS when the script ends.
  public func cutOff() { ending = .cut }

  private func flush() throws {
    if let bytes = connection.takeOutput() { try channel.write(Array(bytes)) }
  }
}

extension WebSocketTestConnection.Event {
  fileprivate init(_ event: WebSocketEvent) {
    switch event {
    case .message(.text(let text)): self = .text(text)
    case .message(.binary(let data)): self = .binary(Array(data))
    case .ping(let payload): self = .ping(Array(payload))
    case .pong(let payload): self = .pong(Array(payload))
    case .closed(let closure): self = .closed(code: closure.code.rawValue, reason: closure.reason)
    case .failed(let violation): self = .failed(violation.message)
    }
  }
}

/// The compression of the messages of a ``WebSocketEndpoint``. The client has its own compression, because shared
/// code could have the same fault on both sides.
struct ServerMessageCompression: MessageCompression {
  func makeCompressor(windowBits: Int) -> (any MessageCompressor)? {
    windowBits >= 9 ? ServerCompressor(windowBits: Int32(windowBits)) : nil
  }

  func makeDecompressor(windowBits: Int) -> (any MessageDecompressor)? {
    ServerDecompressor(windowBits: Int32(windowBits))
  }
}

/// Keeps the state of zlib at one address, to which zlib refers.
private class ServerStream {
  let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)

  init() { stream.initialize(to: z_stream()) }

  deinit { stream.deallocate() }
}

private final class ServerCompressor: ServerStream, MessageCompressor {
  init(windowBits: Int32) {
    super.init()
    let status = deflateInit2_(
      stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -windowBits, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
      Int32(MemoryLayout<z_stream>.size))
    precondition(status == Z_OK, "zlib refuses its default settings")
  }

  deinit { deflateEnd(stream) }

  func compress(_ message: UnsafeRawBufferPointer, into output: inout [UInt8]) -> Bool {
    var input = Array(message)
    var room = [UInt8](repeating: 0, count: 65_536)
    return input.withUnsafeMutableBufferPointer { input in
      stream.pointee.next_in = input.baseAddress
      stream.pointee.avail_in = UInt32(input.count)
      repeat {
        let count = room.withUnsafeMutableBufferPointer { room in
          stream.pointee.next_out = room.baseAddress
          stream.pointee.avail_out = UInt32(room.count)
          _ = deflate(stream, Z_SYNC_FLUSH)
          return room.count - Int(stream.pointee.avail_out)
        }
        output += room.prefix(count)
      } while stream.pointee.avail_out == 0
      return true
    }
  }

  func reset() { deflateReset(stream) }
}

private final class ServerDecompressor: ServerStream, MessageDecompressor {
  init(windowBits: Int32) {
    super.init()
    let status = inflateInit2_(stream, -windowBits, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    precondition(status == Z_OK, "zlib refuses its default settings")
  }

  deinit { inflateEnd(stream) }

  func decompress(
    _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) -> DecompressionStep {
    var bytes = Array(input)
    return bytes.withUnsafeMutableBufferPointer { input in
      stream.pointee.next_in = input.baseAddress
      stream.pointee.avail_in = UInt32(input.count)
      stream.pointee.next_out = output.bindMemory(to: UInt8.self).baseAddress
      stream.pointee.avail_out = UInt32(output.count)
      var status = inflate(stream, Z_SYNC_FLUSH)
      // A final block does not end the message (RFC 7692 §7.2.3.4). The next one can refer to the bytes before it.
      while status == Z_STREAM_END {
        status = inflateResetKeep(stream)
        guard status == Z_OK, stream.pointee.avail_in > 0, stream.pointee.avail_out > 0 else { break }
        status = inflate(stream, Z_SYNC_FLUSH)
      }
      let isFine = status == Z_OK || status == Z_BUF_ERROR
      return DecompressionStep(
        consumed: input.count - Int(stream.pointee.avail_in),
        produced: output.count - Int(stream.pointee.avail_out),
        fault: isFine ? nil : .malformed("zlib reports \(status)"))
    }
  }

  var isAtBlockEnd: Bool { stream.pointee.data_type & 128 != 0 }

  func reset() { inflateReset(stream) }
}
