import CZlib
import HTTPWire

/// The bytes and pauses that a connection sends for a reply, computed before the first byte is sent.
struct ReplyPlan: Sendable {
  private(set) var steps: [WireStep] = []
  private(set) var ending = ConnectionEnding.keepAlive

  /// The properties of a request that affect the reply.
  struct Question: Sendable {
    var isHead = false
    var minorVersion = 1
    var keepsConnection = true

    init(isHead: Bool = false, minorVersion: Int = 1, keepsConnection: Bool = true) {
      self.isHead = isHead
      self.minorVersion = minorVersion
      self.keepsConnection = keepsConnection
    }

    init(_ head: RequestHead) {
      self.init(
        isHead: head.method == "HEAD", minorVersion: head.minorVersion,
        keepsConnection: head.keepsConnection)
    }
  }

  init(_ reply: Reply, to question: Question) {
    switch reply.effect {
    case .stall: steps = [.stall]
    case .closeBeforeReply: ending = .close
    case .reset: ending = .reset
    case .garbage:
      steps = [.send(Array("\u{7}these bytes are no answer\n\u{0}\u{1}\u{2}\r\n\r\n".utf8))]
      ending = .close
    case .raw(let bytes, let closes):
      steps = [.send(bytes)]
      ending = closes ? .close : .keepAlive
    case .garbageHead(let kind):
      steps = [.send(kind == .endsEarly ? kind.head : kind.head + reply.body.collected())]
      ending = .close
    case .none, .stallAfterHead, .stallAfterBody, .resetAfterBody, .closeAfterBody, .cutAfterBody,
      .wrongLength, .slowDrip, .badChunk, .truncatedChunked, .badGzip, .truncatedGzip:
      planMessage(Self.prepared(reply), question)
    }
  }

  /// Puts the effects that are visible in the message itself into it.
  private static func prepared(_ reply: Reply) -> Reply {
    var reply = reply
    switch reply.effect {
    case .badGzip:
      reply.headers.append(.contentEncoding("gzip"))
    case .truncatedGzip:
      let coded = Compression.gzip(reply.body.collected())
      reply.headers.append(.contentEncoding("gzip"))
      reply.body = .bytes(Array(coded.prefix(coded.count / 2)))
    case .badChunk, .truncatedChunked:
      reply.framing = .chunked
    case .none, .stall, .stallAfterHead, .stallAfterBody, .closeBeforeReply, .reset, .resetAfterBody,
      .closeAfterBody, .cutAfterBody, .wrongLength, .slowDrip, .garbage, .garbageHead, .raw:
      break
    }
    return reply
  }

  private mutating func planMessage(_ reply: Reply, _ question: Question) {
    let head = ReplyHead(reply, to: question)
    ending = head.keepsConnection ? .keepAlive : .close
    steps = [.send(head.bytes)]
    if reply.effect == .stallAfterHead {
      steps.append(.stall)
      return
    }
    planBody(head.sendsBody ? reply.body.parts : [], of: reply, head)
  }

  /// Plans the bytes after the head. A response without a body fails as one with a body, but has no bytes.
  private mutating func planBody(_ parts: [Reply.Part], of reply: Reply, _ head: ReplyHead) {
    let isChunked = head.sendsBody && head.framing == .chunked
    switch reply.effect {
    case .stallAfterBody(let count):
      append(parts.prefix(bytes: count), isChunked)
      steps.append(.stall)
    case .resetAfterBody(let count):
      append(parts.prefix(bytes: count), isChunked)
      ending = .reset
    case .closeAfterBody(let count):
      append(parts.prefix(bytes: count), isChunked)
      ending = .close
    case .cutAfterBody(let count):
      append(parts.prefix(bytes: count), isChunked)
      ending = .cut
    case .wrongLength(let claimed):
      append(parts, isChunked)
      if head.sendsBody, claimed > reply.body.length { ending = .close }
    case .slowDrip(let step, let interval):
      append(parts.split(bytesPerStep: step, interval: interval), isChunked)
      finish(reply, isChunked)
    case .badChunk:
      append(parts, isChunked)
      if head.sendsBody { append(Array("not-a-size\r\nmore\r\n".utf8)) }
      ending = .close
    case .truncatedChunked:
      append(parts, isChunked)
      ending = .close
    case .none, .badGzip, .truncatedGzip:
      append(parts, isChunked)
      finish(reply, isChunked)
    case .stall, .stallAfterHead, .closeBeforeReply, .reset, .garbage, .garbageHead, .raw:
      preconditionFailure("the effect \(reply.effect) has no body")
    }
  }

  private mutating func finish(_ reply: Reply, _ isChunked: Bool) {
    guard isChunked else { return }
    append(Array("0\r\n".utf8) + ReplyHead.lines(reply.trailers) + Array("\r\n".utf8))
  }

  private mutating func append(_ parts: [Reply.Part], _ isChunked: Bool) {
    for part in parts {
      switch part {
      case .pause(let duration): steps.append(.pause(duration))
      case .gate(let gate): steps.append(.gate(gate))
      case .bytes(let bytes) where !bytes.isEmpty:
        append(isChunked ? Self.chunkSize(bytes.count) + bytes + Array("\r\n".utf8) : bytes)
      case .pattern(let count) where count > 0:
        if isChunked { append(Self.chunkSize(count)) }
        steps.append(.sendPattern(0..<count))
        if isChunked { append(Array("\r\n".utf8)) }
      case .bytes, .pattern: break
      }
    }
  }

  /// Appends bytes; small pieces that follow each other are sent in one write.
  private mutating func append(_ bytes: [UInt8]) {
    if case .send(let last)? = steps.last, last.count + bytes.count <= 65_536 {
      steps[steps.count - 1] = .send(last + bytes)
    } else {
      steps.append(.send(bytes))
    }
  }

  private static func chunkSize(_ count: Int) -> [UInt8] {
    Array("\(String(count, radix: 16))\r\n".utf8)
  }
}

/// One thing that a connection does to answer a request.
enum WireStep: Sendable {
  case send([UInt8])
  /// A range of the deterministic content, generated while it is sent.
  case sendPattern(Range<Int>)
  case pause(Duration)
  case gate(Gate)
  /// The end of all sending, until the client closes its side or the server is stopped.
  case stall
}

/// The fate of a connection after the last step.
enum ConnectionEnding: Sendable, Equatable {
  case keepAlive
  /// Gracefully: the closing alert of TLS, then FIN.
  case close
  /// FIN without the closing alert of TLS.
  case cut
  /// RST.
  case reset
}

/// Cutting bodies that come in parts.
extension [Reply.Part] {
  /// Returns the parts up to `limit` bytes; later parts are omitted.
  func prefix(bytes limit: Int) -> [Reply.Part] {
    var result: [Reply.Part] = []
    var left = Swift.max(0, limit)
    for part in self {
      guard left > 0 else { break }
      switch part {
      case .bytes(let bytes): result.append(.bytes([UInt8](bytes.prefix(left))))
      case .pattern(let count): result.append(.pattern(Swift.min(count, left)))
      case .pause, .gate: result.append(part)
      }
      left -= part.length
    }
    return result
  }

  /// Returns the parts as steps of at most `bytesPerStep` bytes, with a pause between steps.
  func split(bytesPerStep: Int, interval: Duration) -> [Reply.Part] {
    let step = Swift.max(1, bytesPerStep)
    var result: [Reply.Part] = []
    var isFirst = true
    for part in self {
      guard part.length > 0 else {
        result.append(part)
        continue
      }
      let bytes = part.collected()
      for start in stride(from: 0, to: bytes.count, by: step) {
        if !isFirst { result.append(.pause(interval)) }
        isFirst = false
        result.append(.bytes([UInt8](bytes[start..<Swift.min(start + step, bytes.count)])))
      }
    }
    return result
  }
}

extension Reply.Part {
  func collected() -> [UInt8] {
    switch self {
    case .bytes(let bytes): bytes
    case .pattern(let count): Reply.patternBytes(count)
    case .pause, .gate: []
    }
  }
}

extension Reply.Body {
  /// Returns all bytes, in memory.
  func collected() -> [UInt8] { parts.flatMap { $0.collected() } }
}

/// Content codings of replies (RFC 1950, RFC 1952).
enum Compression {
  /// Compresses bytes in the gzip format.
  static func gzip(_ bytes: [UInt8]) -> [UInt8] { compress(bytes, windowBits: 15 + 16) }

  /// Compresses bytes in the zlib format, which HTTP calls `deflate` (RFC 9110 §8.4.1.2).
  static func zlib(_ bytes: [UInt8]) -> [UInt8] { compress(bytes, windowBits: 15) }

  private static func compress(_ bytes: [UInt8], windowBits: Int32) -> [UInt8] {
    var stream = z_stream()
    let status = deflateInit2_(
      &stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, windowBits, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
      Int32(MemoryLayout<z_stream>.size))
    precondition(status == Z_OK, "zlib refuses its default settings")
    defer { deflateEnd(&stream) }
    var input = bytes
    return input.withUnsafeMutableBufferPointer { input in
      let capacity = Int(deflateBound(&stream, UInt(input.count)))
      return [UInt8](unsafeUninitializedCapacity: capacity) { output, count in
        stream.next_in = input.baseAddress
        stream.avail_in = UInt32(input.count)
        stream.next_out = output.baseAddress
        stream.avail_out = UInt32(capacity)
        let status = deflate(&stream, Z_FINISH)
        precondition(status == Z_STREAM_END, "zlib needs more room than it asked for")
        count = capacity - Int(stream.avail_out)
      }
    }
  }
}
