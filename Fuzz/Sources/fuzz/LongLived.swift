import FoundationEssentials
import HTTPEngine
import HTTPSystem
import HTTPWire

/// Frames of WebSocket: the chunks in which they come change nothing, and what is delivered is within the limits.
enum WebSocketReading {
  private static let limit = 4096

  private struct Reading: Equatable {
    var events: [WebSocketEvent] = []
    var output = Data()
    var phase = WebSocketConnection.WebSocketPhase.open
  }

  /// Reads the bytes as frames, whole and in chunks, and compares the results. The first byte chooses the role and the
  /// parameters.
  static func check(_ bytes: UnsafeRawBufferPointer) {
    guard let first = bytes.first else { return }
    let bits = Int(first >> 1) % 8 + 8
    let deflate = WebSocketDeflate(
      client: .init(windowBits: bits, resetsContext: first & 0x10 != 0),
      server: .init(windowBits: bits, resetsContext: first & 0x20 != 0))
    var options = WebSocketOptions(role: first & 1 == 0 ? .client : .server)
    options.deflate = first & 0x80 == 0 ? deflate : nil
    options.maximumMessageSize = limit
    let frames = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
    let whole = read(frames, chunkSize: max(1, frames.count), options)
    for size in [1, 2, 7, 125] {
      precondition(read(frames, chunkSize: size, options) == whole, "the chunks decide what is received")
    }
    for event in whole.events { check(event) }
    precondition(whole.events.filter(\.isLast).count <= 1, "two events are the last one")
  }

  private static func check(_ event: WebSocketEvent) {
    switch event {
    case .message(.text(let text)): precondition(text.utf8.count <= limit)
    case .message(.binary(let data)): precondition(data.count <= limit)
    case .ping(let payload), .pong(let payload): precondition(payload.count <= 125)
    case .closed(let closure): precondition(closure.code == .noStatusReceived || closure.code.canBeSent)
    case .failed(let violation): precondition(violation.closeCode.canBeSent && !violation.message.isEmpty)
    }
  }

  private static func read(
    _ bytes: UnsafeRawBufferPointer, chunkSize: Int, _ options: WebSocketOptions
  ) -> Reading {
    var connection = WebSocketConnection(options, compression: WholeWindows()) { 0x0102_0304 }
    var reading = Reading()
    var start = 0
    while start < bytes.count {
      let chunk = UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + chunkSize, bytes.count)])
      start += chunk.count
      var position = 0
      while let event = connection.receive(chunk, from: &position) { reading.events.append(event) }
      precondition(position == chunk.count, "bytes are left")
      precondition(connection.assembledByteCount <= limit + 125, "the limit is exceeded")
    }
    reading.phase = connection.phase
    reading.output = connection.takeOutput() ?? Data()
    return reading
  }
}

/// Decompresses with the largest window, whatever was agreed. With a smaller one the chunks decide whether a reference
/// to bytes before the window finds them.
private struct WholeWindows: MessageCompression {
  private let zlib = ZlibMessageCompression()

  func makeCompressor(windowBits: Int) -> (any MessageCompressor)? {
    zlib.makeCompressor(windowBits: windowBits)
  }

  func makeDecompressor(windowBits: Int) -> (any MessageDecompressor)? {
    zlib.makeDecompressor(windowBits: 15)
  }
}

extension WebSocketEvent {
  fileprivate var isLast: Bool {
    switch self {
    case .closed, .failed: true
    case .message, .ping, .pong: false
    }
  }
}

/// Opening handshakes: the fields of either side, and both of them together.
enum WebSocketOpening {
  /// Reads the bytes as the extension field and as the head of a handshake. The first byte holds the parameters of both
  /// sides. The rest is a field block.
  static func check(_ bytes: UnsafeRawBufferPointer) {
    guard let first = bytes.first else { return }
    var options = WebSocketDeflateOptions()
    options.client = .init(windowBits: Int(first & 7) + 8, resetsContext: first & 8 != 0)
    options.server = .init(windowBits: Int(first >> 4 & 7) + 8, resetsContext: first & 0x80 != 0)
    let block = FieldBlock(bytes: Array(bytes.dropFirst()))
    let text = String(decoding: bytes.dropFirst(), as: UTF8.self)
    if let list = WebSocketExtension.list(text) {
      let written = list.map(\.text).joined(separator: ", ")
      precondition(WebSocketExtension.list(written) == list, "\(written) is another list the second time")
    }
    let server = WebSocketServerHandshake(subprotocols: ["chat"], deflate: options)
    if let answer = try? server.answer(method: "GET", block, sha1: OpenSSLHashes.sha1) { check(answer) }
    guard let client = try? WebSocketClientHandshake(nonce: (1, 2), subprotocols: ["chat"], deflate: options)
    else { fatalError("the client has no handshake") }
    do throws(WebSocketHandshakeError) {
      let head = ResponseHead(status: 101, version: .http1_1, block: block)
      let agreement = try client.verify(head, sha1: { _ in [] })
      if let deflate = agreement.deflate { check(deflate) }
    } catch {
      precondition(!error.message.isEmpty)
    }
  }

  private static func check(_ answer: (fields: [HTTPHeader], agreement: WebSocketAgreement)) {
    if let deflate = answer.agreement.deflate { check(deflate) }
    for field in answer.fields {
      precondition(HeaderFieldRules.isToken(field.name) && HeaderFieldRules.isFieldValue(field.value))
    }
  }

  private static func check(_ deflate: WebSocketDeflate) {
    precondition((8...15).contains(deflate.client.windowBits) && (8...15).contains(deflate.server.windowBits))
  }
}

/// Streams of events: the chunks in which they come change nothing, and the limits hold.
enum EventStreamReading {
  private struct Reading: Equatable {
    var events: [ServerSentEvent] = []
    var error: EventStreamError?
    var lastEventID = ""
    var retry: Int64?
  }

  static func check(_ bytes: UnsafeRawBufferPointer) {
    let whole = read(bytes, chunkSize: max(1, bytes.count))
    for size in [1, 2, 7] {
      precondition(read(bytes, chunkSize: size) == whole, "the chunks decide what is read")
    }
    for event in whole.events { precondition(!event.type.isEmpty && !event.id.utf8.contains(0)) }
    precondition(whole.retry ?? 0 >= 0)
  }

  private static func read(_ bytes: UnsafeRawBufferPointer, chunkSize: Int) -> Reading {
    var limits = EventStreamReader.Limits()
    limits.line = 256
    limits.event = 512
    var reader = EventStreamReader(limits: limits)
    var reading = Reading()
    var start = 0
    do throws(EventStreamError) {
      while start < bytes.count {
        let chunk = UnsafeRawBufferPointer(rebasing: bytes[start..<min(start + chunkSize, bytes.count)])
        start += chunk.count
        var position = 0
        while let event = try reader.read(chunk, from: &position) { reading.events.append(event) }
      }
    } catch {
      reading.error = error
    }
    reading.lastEventID = reader.lastEventID
    reading.retry = reader.retry
    return reading
  }
}
