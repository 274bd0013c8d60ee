import HTTPTestServer
import HTTPWire

/// Decodes the header blocks of one connection of HTTP/2 (RFC 7541), for servers that check what a client sent.
struct HeaderDecoder {
  enum Failure: Error {
    case blockEndsEarly, unknownIndex(Int), invalidCode
  }

  /// The entries of the dynamic table, the newest one first.
  private var dynamic: [HTTPHeader] = []
  private var capacity = 4096

  /// Decodes the fields of a HEADERS frame that has all of its block.
  mutating func fields(of frame: HTTP2TestConnection.Frame) throws -> [HTTPHeader] {
    var block = frame.payload[...]
    if frame.flags & 0x8 != 0 { block = block.dropFirst().dropLast(Int(block.first ?? 0)) }
    if frame.flags & 0x20 != 0 { block = block.dropFirst(5) }
    return try decode(block)
  }

  mutating func decode(_ block: ArraySlice<UInt8>) throws -> [HTTPHeader] {
    var rest = block
    var fields: [HTTPHeader] = []
    while let first = rest.first {
      if first & 0x80 != 0 {
        fields.append(try entry(Self.integer(7, &rest)))
      } else if first & 0xE0 == 0x20 {
        capacity = try Self.integer(5, &rest)
        evict()
      } else {
        let isStored = first & 0x40 != 0
        let index = try Self.integer(isStored ? 6 : 4, &rest)
        let name = try index == 0 ? Self.text(&rest) : entry(index).name
        let field = HTTPHeader(name: name, value: try Self.text(&rest))
        fields.append(field)
        if isStored {
          dynamic.insert(field, at: 0)
          evict()
        }
      }
    }
    return fields
  }

  private func entry(_ index: Int) throws -> HTTPHeader {
    if index > 0, index <= Self.fixed.count { return Self.fixed[index - 1] }
    let position = index - Self.fixed.count - 1
    guard dynamic.indices.contains(position) else { throw Failure.unknownIndex(index) }
    return dynamic[position]
  }

  private mutating func evict() {
    while dynamic.reduce(0, { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 }) > capacity {
      dynamic.removeLast()
    }
  }

  /// Reads an integer that starts with a prefix of `prefix` bits (RFC 7541 §5.1).
  private static func integer(_ prefix: Int, _ rest: inout ArraySlice<UInt8>) throws -> Int {
    guard let first = rest.popFirst() else { throw Failure.blockEndsEarly }
    let most = (1 << prefix) - 1
    var value = Int(first) & most
    guard value == most else { return value }
    for shift in stride(from: 0, to: 28, by: 7) {
      guard let byte = rest.popFirst() else { throw Failure.blockEndsEarly }
      value += Int(byte & 0x7F) << shift
      if byte & 0x80 == 0 { return value }
    }
    throw Failure.blockEndsEarly
  }

  private static func text(_ rest: inout ArraySlice<UInt8>) throws -> String {
    let isCoded = (rest.first ?? 0) & 0x80 != 0
    let length = try integer(7, &rest)
    guard rest.count >= length else { throw Failure.blockEndsEarly }
    let bytes = rest.prefix(length)
    rest = rest.dropFirst(length)
    return String(decoding: isCoded ? try decoded(bytes) : Array(bytes), as: UTF8.self)
  }

  private static func decoded(_ bytes: ArraySlice<UInt8>) throws -> [UInt8] {
    var result: [UInt8] = []
    var code = Code(bits: 0, length: 0)
    for byte in bytes {
      for shift in (0..<8).reversed() {
        code = Code(bits: code.bits << 1 | UInt32(byte >> shift & 1), length: code.length + 1)
        if let symbol = symbols[code] {
          result.append(symbol)
          code = Code(bits: 0, length: 0)
        } else if code.length > 30 {
          throw Failure.invalidCode
        }
      }
    }
    return result
  }

  private struct Code: Hashable {
    var bits: UInt32
    var length: Int
  }

  /// The lengths of the codes of the symbols from 32 to 126 (RFC 7541 Appendix B).
  private static let lengths: [Int] = [
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13,
  ]

  /// The codes of the symbols from 32 to 126. The code is canonical: codes of one length follow each other in the order
  /// of their symbols, and NUL is the only other symbol with a code of less than 19 bits.
  private static let symbols: [Code: UInt8] = {
    let all = [(UInt8(0), 13)] + zip(UInt8(32)..., lengths)
    var result: [Code: UInt8] = [:]
    var (bits, length) = (UInt32(0), 0)
    for (symbol, next) in all.sorted(by: { ($0.1, $0.0) < ($1.1, $1.0) }) {
      bits <<= UInt32(next - length)
      length = next
      result[Code(bits: bits, length: length)] = symbol
      bits += 1
    }
    return result
  }()

  /// The static table (RFC 7541 Appendix A).
  private static let fixed = entries.map { HTTPHeader(name: $0.0, value: $0.1) }

  private static let entries: [(String, String)] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""),
    ("cache-control", ""), ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""),
    ("content-length", ""), ("content-location", ""), ("content-range", ""), ("content-type", ""),
    ("cookie", ""), ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""),
    ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""), ("max-forwards", ""),
    ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""), ("referer", ""), ("refresh", ""),
    ("retry-after", ""), ("server", ""), ("set-cookie", ""), ("strict-transport-security", ""),
    ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""), ("via", ""), ("www-authenticate", ""),
  ]
}
