import HTTPWire

/// One part of a response, as a reader has found it.
enum ResponsePart: Equatable, CustomStringConvertible {
  case informational(Int, [HTTPHeader])
  case head(Int, [HTTPHeader])
  /// The end, with the trailers and the number of bytes that follow.
  case end(content: [UInt8], trailers: [HTTPHeader], excess: Int)
  /// The bytes ended before the response; `mayEnd` if the end of the connection completes it.
  case open(content: [UInt8], mayEnd: Bool)
  case tooLarge
  case violation(HeadViolation)

  var description: String {
    switch self {
    case .informational(let status, let fields): "\(status) \(fields)"
    case .head(let status, let fields): "head \(status) \(fields)"
    case .end(let content, let trailers, let excess):
      "end after \(String(decoding: content, as: UTF8.self)), \(trailers), \(excess) bytes follow"
    case .open(let content, let mayEnd):
      "open after \(String(decoding: content, as: UTF8.self))\(mayEnd ? ", may end" : "")"
    case .tooLarge: "too large"
    case .violation(let violation): "\(violation)"
    }
  }
}

/// A slow and obvious reader of a whole response: it cuts the bytes into lines, and knows nothing of segments.
enum ReferenceReader {
  static func read(_ bytes: [UInt8], method: String, limit: Int) -> [ResponsePart] {
    var assembly = ResponseAssembly()
    assembly.restart(headerSizeLimit: limit, isOfTunnel: method == "CONNECT")
    var rest = bytes[...]
    var parts: [ResponsePart] = []
    while true {
      let end = rest.firstIndex(of: 0x0A)
      let line = Array(end.map { rest[...$0] } ?? rest)
      if assembly.awaitsStatusLine, !zip(line, "HTTP/".utf8).allSatisfy({ $0 == $1 }) {
        return parts + [.violation(.statusLine)]
      }
      // The line break of the empty line does not count.
      let longest =
        assembly.awaitsStatusLine ? max(1_024, assembly.headSizeLeft + 2) : assembly.headSizeLeft + 2
      if line.count > longest { return parts + [.tooLarge] }
      guard end != nil else { return parts + [.open(content: [], mayEnd: false)] }
      rest = rest.dropFirst(line.count)
      switch line.withUnsafeBytes({ assembly.lineReceived($0) }) {
      case .keep: continue
      case .verify(let version): return parts + [.violation(.version(version.text))]
      case .inform(let head): parts.append(.informational(head.status, head.block.fields))
      case .refuseHead: return parts + [.tooLarge]
      case .refuse(let violation): return parts + [.violation(violation)]
      case .deliver(let head):
        parts.append(.head(head.status, head.block.fields))
        return parts + [body(Array(rest), head.status, method, assembly)]
      }
    }
  }

  private static func body(_ rest: [UInt8], _ status: Int, _ method: String, _ assembly: ResponseAssembly)
    -> ResponsePart
  {
    let isBodiless =
      method == "HEAD" || status < 200 || status == 204 || status == 304
      || method == "CONNECT" && (200..<300).contains(status)
    if isBodiless { return .end(content: [], trailers: [], excess: rest.count) }
    if assembly.framing.isChunked { return chunks(rest, assembly.headSizeLeft) }
    if let length = assembly.framing.contentLength {
      guard Int64(rest.count) >= length else { return .open(content: rest, mayEnd: false) }
      return .end(content: Array(rest.prefix(Int(length))), trailers: [], excess: rest.count - Int(length))
    }
    return .open(content: rest, mayEnd: true)
  }

  private static func chunks(_ bytes: [UInt8], _ trailerLimit: Int) -> ResponsePart {
    var content: [UInt8] = []
    var rest = bytes[...]
    while true {
      // The grammar of a size line is held by the tests of ChunkedReader.
      var reader = ChunkedReader(trailerSizeLimit: trailerLimit)
      let result = Array(rest).withUnsafeBytes { raw -> (ChunkedReader.ChunkStep, Int) in
        var position = 0
        let step = reader.read(raw, from: &position)
        return (step, position)
      }
      switch result {
      case (.content(let range), _):
        let digits = String(decoding: rest.prefix { isxdigit($0) }, as: UTF8.self)
        let available = rest.count - range.lowerBound
        guard let size = Int(digits, radix: 16), range.count == min(size, available) else {
          return .violation(.chunkSize)
        }
        content += rest.dropFirst(range.lowerBound).prefix(size)
        guard size < available else { return .open(content: content, mayEnd: false) }
        rest = rest.dropFirst(range.lowerBound + size)
        if rest.first == 0x0D { rest = rest.dropFirst() }
        guard let lineFeed = rest.popFirst() else { return .open(content: content, mayEnd: false) }
        if lineFeed != 0x0A { return .violation(.chunkEnd) }
      case (.needsMore, _): return .open(content: content, mayEnd: false)
      case (.end, let position):
        return .end(
          content: content, trailers: trailers(Array(rest.prefix(position))), excess: rest.count - position)
      case (.refuseTrailers, _): return .tooLarge
      case (.refuse(let violation), _): return .violation(violation)
      }
    }
  }

  /// Returns the fields of a trailer section after the line of the last chunk.
  private static func trailers(_ bytes: [UInt8]) -> [HTTPHeader] {
    var lines: [[UInt8]] = []
    for line in bytes.split(separator: 0x0A).dropFirst() {
      let text = line.last == 0x0D ? line.dropLast() : line
      guard let first = text.first else { continue }
      if first == 0x20 || first == 0x09, !lines.isEmpty {
        lines[lines.count - 1] += text
      } else {
        lines.append(Array(text))
      }
    }
    return FieldBlock(bytes: lines.flatMap { $0 + [0x0D, 0x0A] }).fields
  }

  private static func isxdigit(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x46).contains(byte) || (0x61...0x66).contains(byte)
  }
}

/// The parts that ``HTTP1Reader`` finds in segments.
struct SegmentedReading {
  private var reader: HTTP1Reader
  private var content: [UInt8] = []
  private(set) var parts: [ResponsePart] = []
  private(set) var isOver = false
  private var excess = 0
  /// The largest number of bytes of a piece of content that are consumed at once.
  var mostTaken = Int.max

  init(method: String, limit: Int) { reader = HTTP1Reader(method: method, headerSizeLimit: limit) }

  static func read(_ bytes: [UInt8], method: String, limit: Int, segments: [Int], mostTaken: Int = .max)
    -> [ResponsePart]
  {
    var reading = SegmentedReading(method: method, limit: limit)
    reading.mostTaken = mostTaken
    var rest = bytes[...]
    for size in segments where !rest.isEmpty {
      reading.feed(Array(rest.prefix(size)))
      rest = rest.dropFirst(size)
    }
    while !rest.isEmpty {
      let size = segments.last.map { max(1, $0) } ?? rest.count
      reading.feed(Array(rest.prefix(size)))
      rest = rest.dropFirst(size)
    }
    return reading.finished()
  }

  mutating func feed(_ segment: [UInt8]) {
    guard !isOver else {
      excess += segment.count
      return
    }
    segment.withUnsafeBytes { raw in
      var position = 0
      while true {
        switch reader.read(raw, from: &position) {
        case .needsMore:
          if position != raw.count { parts.append(.violation(.statusCode(-1))) }
          return
        case .informational(let head): parts.append(.informational(head.status, head.block.fields))
        case .head(let head): parts.append(.head(head.status, head.block.fields))
        case .content(let range):
          let taken = min(range.count, mostTaken)
          content += raw[range].prefix(taken)
          reader.contentTaken(taken, from: &position)
        case .end:
          isOver = true
          excess = raw.count - position
          return
        case .refuseHead:
          isOver = true
          parts.append(.tooLarge)
          return
        case .refuse(let violation):
          isOver = true
          parts.append(.violation(violation))
          return
        }
      }
    }
  }

  /// Returns the parts with the one that says how the response ended.
  private func finished() -> [ResponsePart] {
    switch parts.last {
    case .tooLarge, .violation: return parts
    default:
      guard isOver else { return parts + [.open(content: content, mayEnd: reader.endsWithConnection)] }
      return parts + [.end(content: content, trailers: reader.trailers?.fields ?? [], excess: excess)]
    }
  }
}
