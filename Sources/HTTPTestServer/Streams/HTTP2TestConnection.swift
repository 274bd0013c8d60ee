/// HTTP/2 frames on a connection of a ``StreamTestServer``, for scripts that break the rules (RFC 9113).
///
/// ```swift
/// var options = TLSOptions()
/// options.applicationProtocols = ["h2"]
/// let server = try StreamTestServer(.tls(.localhost, options)) { connection in
///   let http2 = try HTTP2TestConnection(connection)
///   let stream = try http2.request()
///   try http2.respond(200, on: stream, endsStream: false)
///   try http2.send(Array("half".utf8), on: stream, endsStream: false)
///   try http2.reset(stream, .noError)
/// }
/// ```
///
/// It automatically grants window for everything that it reads, acknowledges SETTINGS and answers PING. Request fields
/// are not decoded.
public final class HTTP2TestConnection {
  /// One frame (RFC 9113 §4.1).
  public struct Frame: Sendable {
    /// The type of the frame.
    public let kind: Kind
    /// The flags of the frame: 0x1 is END_STREAM, or ACK.
    public let flags: UInt8
    /// The stream identifier; 0 is the connection.
    public let stream: UInt32
    /// The payload of the frame.
    public let payload: [UInt8]

    /// Whether the client has finished sending on the stream.
    public var endsStream: Bool { (kind == .data || kind == .headers) && flags & 0x1 != 0 }
  }

  /// The types of frames (RFC 9113 §6).
  public enum Kind: UInt8, Sendable {
    /// DATA.
    case data
    /// HEADERS.
    case headers
    /// PRIORITY.
    case priority
    /// RST_STREAM.
    case reset
    /// SETTINGS.
    case settings
    /// PUSH_PROMISE.
    case pushPromise
    /// PING.
    case ping
    /// GOAWAY.
    case goAway
    /// WINDOW_UPDATE.
    case windowUpdate
    /// CONTINUATION.
    case continuation
  }

  /// Error codes (RFC 9113 §7).
  public enum ErrorCode: UInt32, Sendable {
    /// NO_ERROR.
    case noError = 0
    /// PROTOCOL_ERROR.
    case protocolError = 1
    /// INTERNAL_ERROR.
    case internalError = 2
    /// STREAM_CLOSED.
    case streamClosed = 5
    /// REFUSED_STREAM: the request was not processed.
    case refusedStream = 7
    /// CANCEL.
    case cancel = 8
    /// HTTP_1_1_REQUIRED.
    case http11Required = 13
  }

  private let connection: StreamTestConnection
  private let grantsWindow: Bool

  /// Reads the client's connection preface and sends SETTINGS.
  ///
  /// - Parameters:
  ///   - connection: The connection of the client.
  ///   - settings: Identifiers and values (RFC 9113 §6.5.2).
  ///   - grantsWindow: Whether window is granted for the data that is read.
  public init(
    _ connection: StreamTestConnection, settings: [(UInt16, UInt32)] = [], grantsWindow: Bool = true
  ) throws {
    self.connection = connection
    self.grantsWindow = grantsWindow
    let preface = try connection.readExactly(24)
    guard preface.starts(with: "PRI * HTTP/2.0".utf8) else { throw Channel.Failure.clientGone }
    try write(.settings, payload: settings.flatMap { Self.bytes($0.0) + Self.bytes($0.1) })
  }

  /// Reads the next frame. SETTINGS, PING, WINDOW_UPDATE, PRIORITY and unknown frames are skipped. Throws at the end of
  /// the connection.
  public func next() throws -> Frame {
    while true {
      let head = try connection.readExactly(9)
      let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
      let stream = head[5...8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
      let payload = try connection.readExactly(length)
      guard let kind = Kind(rawValue: head[3]) else { continue }
      let frame = Frame(kind: kind, flags: head[4], stream: stream, payload: payload)
      switch kind {
      case .settings:
        if frame.flags & 0x1 == 0 { try write(.settings, flags: 0x1) }
      case .ping:
        if frame.flags & 0x1 == 0 { try write(.ping, flags: 0x1, payload: payload) }
      case .windowUpdate, .priority: break
      case .data:
        if grantsWindow, length > 0 {
          try write(.windowUpdate, payload: Self.bytes(UInt32(length)))
          if !frame.endsStream {
            try write(.windowUpdate, stream: stream, payload: Self.bytes(UInt32(length)))
          }
        }
        return frame
      default: return frame
      }
    }
  }

  /// Reads until a request is complete. Returns its stream.
  ///
  /// - Parameter ignored: Streams with frames to ignore, such as reset ones.
  public func request(except ignored: Set<UInt32> = []) throws -> UInt32 {
    while true {
      let frame = try next()
      if frame.endsStream, !ignored.contains(frame.stream) { return frame.stream }
    }
  }

  /// Sends the head of a response.
  public func respond(
    _ status: Int, _ fields: [(String, String)] = [], on stream: UInt32, endsStream: Bool = true
  ) throws {
    try writeFields([(":status", String(status))] + fields, on: stream, endsStream: endsStream)
  }

  /// Sends bytes of a body.
  public func send(_ bytes: [UInt8], on stream: UInt32, endsStream: Bool) throws {
    var rest = bytes[...]
    repeat {
      let part = rest.prefix(16_384)
      rest = rest.dropFirst(part.count)
      try write(.data, flags: endsStream && rest.isEmpty ? 0x1 : 0, stream: stream, payload: Array(part))
    } while !rest.isEmpty
  }

  /// Sends trailers, which end the stream.
  public func sendTrailers(_ fields: [(String, String)], on stream: UInt32) throws {
    try writeFields(fields, on: stream, endsStream: true)
  }

  /// Sends fields in HEADERS, and what does not fit into it in CONTINUATION (RFC 9113 §6.10).
  private func writeFields(_ fields: [(String, String)], on stream: UInt32, endsStream: Bool) throws {
    var rest = fields.flatMap { Self.literal($0.0, $0.1) }[...]
    var kind = Kind.headers
    var bytes: [UInt8] = []
    repeat {
      let part = rest.prefix(16_384)
      rest = rest.dropFirst(part.count)
      let flags: UInt8 = (kind == .headers && endsStream ? 0x1 : 0) | (rest.isEmpty ? 0x4 : 0)
      bytes += Self.bytes(of: kind, flags: flags, stream: stream, payload: Array(part))
      kind = .continuation
    } while !rest.isEmpty
    try connection.write(bytes)
  }

  /// Ends a stream by RST_STREAM.
  public func reset(_ stream: UInt32, _ code: ErrorCode) throws {
    try write(.reset, stream: stream, payload: Self.bytes(code.rawValue))
  }

  /// Announces the end of the connection; streams above `last` were not processed (RFC 9113 §6.8).
  public func goAway(last: UInt32, _ code: ErrorCode = .noError) throws {
    try write(.goAway, payload: Self.bytes(last) + Self.bytes(code.rawValue))
  }

  /// Sends any frame.
  public func write(_ kind: Kind, flags: UInt8 = 0, stream: UInt32 = 0, payload: [UInt8] = []) throws {
    try connection.write(Self.bytes(of: kind, flags: flags, stream: stream, payload: payload))
  }

  /// Returns the bytes of any frame, so that several frames can be sent in one write.
  public static func bytes(
    of kind: Kind, flags: UInt8 = 0, stream: UInt32 = 0, payload: [UInt8] = []
  ) -> [UInt8] {
    let length = UInt32(payload.count)
    return bytes(length).dropFirst() + [kind.rawValue, flags] + bytes(stream) + payload
  }

  /// Returns a field line as a literal without indexing (RFC 7541 §6.2.2).
  package static func literal(_ name: String, _ value: String) -> [UInt8] {
    [0x00] + text(name) + text(value)
  }

  /// Returns a text with its length before it, as an integer with a prefix of seven bits (RFC 7541 §5.1, §5.2).
  private static func text(_ text: String) -> [UInt8] {
    var length = text.utf8.count
    guard length >= 0x7F else { return [UInt8(length)] + Array(text.utf8) }
    var bytes: [UInt8] = [0x7F]
    length -= 0x7F
    while length >= 0x80 {
      bytes.append(UInt8(length & 0x7F) | 0x80)
      length >>= 7
    }
    return bytes + [UInt8(length)] + Array(text.utf8)
  }

  private static func bytes<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { Array($0) }
  }
}

extension StreamTestConnection {
  /// Reads exactly `count` bytes; throws if the stream ends before.
  public func readExactly(_ count: Int) throws -> [UInt8] {
    var all: [UInt8] = []
    while all.count < count {
      let bytes = try read(atMost: count - all.count)
      guard !bytes.isEmpty else { throw Channel.Failure.clientGone }
      all += bytes
    }
    return all
  }
}
