/// Finds the frames in one direction of a connection of HTTP/2 (RFC 9113 §4.1). Payloads are passed over, but for the
/// numbers of RST_STREAM and GOAWAY, so that their bytes need not be decrypted.
package struct FrameScanner: Sendable {
  /// A completely received frame.
  package struct Frame: Sendable, Equatable {
    /// The type of the frame (RFC 9113 §6).
    package let kind: UInt8
    package let flags: UInt8
    /// The stream identifier; 0 is the connection.
    package let stream: UInt32
    /// The last stream of GOAWAY.
    package var lastStream: UInt32 = 0
    /// The error code of RST_STREAM or GOAWAY.
    package var code: UInt32 = 0
    /// SETTINGS_MAX_CONCURRENT_STREAMS of SETTINGS.
    package var streamLimit: UInt32?

    package init(kind: UInt8, flags: UInt8 = 0, stream: UInt32 = 0, lastStream: UInt32 = 0, code: UInt32 = 0)
    {
      self.kind = kind
      self.flags = flags
      self.stream = stream
      self.lastStream = lastStream
      self.code = code
    }

    package static let data: UInt8 = 0
    package static let headers: UInt8 = 1
    package static let reset: UInt8 = 3
    package static let settings: UInt8 = 4
    package static let goAway: UInt8 = 7
    package static let continuation: UInt8 = 9
  }

  private enum Part { case preface, header, numbers }

  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
  private static let headerSize = 9
  /// SETTINGS with more bytes are passed over.
  private static let longestSettings = 60

  private var part: Part
  /// The bytes of the preface, or of the header of a frame and the numbers behind it.
  private var bytes = [UInt8](repeating: 0, count: Self.headerSize + Self.longestSettings)
  private var count = 0
  private var wanted: Int
  /// The rest of the payload to pass over.
  private var rest = 0
  private var frame: Frame?
  private var hasBegun = false
  private let longest: Int
  /// Whether the bytes are not those of HTTP/2; nothing is found from there on.
  package private(set) var isLost = false

  /// Makes a scanner for one direction of a connection, from its first byte on.
  ///
  /// - Parameter isClient: Whether the bytes are those of a client, which begin with the connection preface.
  package init(ofClient isClient: Bool) {
    part = isClient ? .preface : .header
    wanted = isClient ? Self.preface.count : Self.headerSize
    // This client keeps the initial SETTINGS_MAX_FRAME_SIZE; a server can set another one.
    longest = isClient ? 1 << 24 : 1 << 14
  }

  /// Scans the next bytes.
  ///
  /// - Parameters:
  ///   - length: The number of bytes.
  ///   - read: Copies some of them, from a position on. Returns false if that fails.
  ///   - found: Called with each frame whose last byte is among them.
  package mutating func scan(
    _ length: Int, read: (_ position: Int, _ target: UnsafeMutableRawBufferPointer) -> Bool,
    found: (Frame) -> Void
  ) {
    var position = 0
    while !isLost {
      if let frame, rest == 0 {
        self.frame = nil
        found(frame)
      }
      guard position < length else { return }
      if rest > 0 {
        let passed = min(rest, length - position)
        rest -= passed
        position += passed
        continue
      }
      let size = min(wanted - count, length - position)
      let isRead = bytes.withUnsafeMutableBytes {
        read(position, UnsafeMutableRawBufferPointer(rebasing: $0[count..<count + size]))
      }
      position += size
      count += size
      if !isRead { isLost = true } else if count == wanted { partEnded() }
    }
  }

  private mutating func partEnded() {
    switch part {
    case .preface:
      isLost = !bytes.starts(with: Self.preface)
      expectHeader()
    case .header: headerEnded()
    case .numbers: numbersEnded()
    }
  }

  private mutating func expectHeader() {
    part = .header
    count = 0
    wanted = Self.headerSize
  }

  private mutating func headerEnded() {
    let length = Int(bytes[0]) << 16 | Int(bytes[1]) << 8 | Int(bytes[2])
    let kind = bytes[3]
    // The first frame is SETTINGS (RFC 9113 §3.4).
    guard length <= longest, hasBegun || kind == Frame.settings else {
      isLost = true
      return
    }
    hasBegun = true
    let numbers = numberSize(kind, length)
    rest = length
    guard numbers > 0, length >= numbers else {
      frame = Frame(kind: kind, flags: bytes[4], stream: number(at: 5) & 0x7FFF_FFFF)
      expectHeader()
      return
    }
    // Their bytes are read before the rest is passed over.
    rest = 0
    part = .numbers
    wanted = Self.headerSize + numbers
  }

  /// Returns the number of bytes of the payload that are read.
  private func numberSize(_ kind: UInt8, _ length: Int) -> Int {
    switch kind {
    case Frame.reset: 4
    case Frame.goAway: 8
    case Frame.settings: length <= Self.longestSettings ? length : 0
    default: 0
    }
  }

  private mutating func numbersEnded() {
    let length = Int(bytes[0]) << 16 | Int(bytes[1]) << 8 | Int(bytes[2])
    var frame = Frame(kind: bytes[3], flags: bytes[4], stream: number(at: 5) & 0x7FFF_FFFF)
    switch frame.kind {
    case Frame.goAway:
      frame.lastStream = number(at: 9) & 0x7FFF_FFFF
      frame.code = number(at: 13)
    case Frame.settings:
      // Identifiers of two bytes and values of four (RFC 9113 §6.5.1).
      for offset in stride(from: 9, through: wanted - 6, by: 6)
      where bytes[offset] == 0 && bytes[offset + 1] == 3 {
        frame.streamLimit = number(at: offset + 2)
      }
    default: frame.code = number(at: 9)
    }
    rest = length - (wanted - Self.headerSize)
    self.frame = frame
    expectHeader()
  }

  private func number(at position: Int) -> UInt32 {
    bytes[position..<position + 4].reduce(0) { $0 << 8 | UInt32($1) }
  }
}
