extension Reply {
  /// The content of a reply.
  public enum Body: Sendable {
    /// An empty body, with a length of 0.
    case empty
    /// These bytes.
    case bytes([UInt8])
    /// The given number of bytes of ``Reply/patternByte(at:)``, made while they are sent.
    case pattern(Int)
    /// Part after part, each as a chunk of its own, with pauses and gates between them.
    case parts([Part])

    /// Makes a body of text chunks.
    public static func chunks(_ chunks: [String]) -> Body {
      .parts(chunks.map { .bytes(Array($0.utf8)) })
    }

    /// The parts of which it is made.
    var parts: [Part] {
      switch self {
      case .empty: []
      case .bytes(let bytes): [.bytes(bytes)]
      case .pattern(let count): [.pattern(count)]
      case .parts(let parts): parts
      }
    }

    /// The length in bytes.
    var length: Int { parts.reduce(0) { $0 + $1.length } }
  }

  /// A part of a body that is sent bit by bit.
  ///
  /// ```swift
  /// let gate = Gate()
  /// let reply = Reply(body: .parts(["first ", .gate(gate), .text(rest)]))
  /// ```
  public enum Part: Sendable, ExpressibleByStringLiteral {
    /// These bytes, as one chunk; an empty part sends nothing.
    case bytes([UInt8])
    /// The given number of bytes of ``Reply/patternByte(at:)``, which begins anew with every such part.
    case pattern(Int)
    /// A pause of this duration.
    case pause(Duration)
    /// A pause until the gate is opened.
    case gate(Gate)

    /// Makes a part of the UTF-8 of a text.
    public static func text(_ text: some StringProtocol) -> Part {
      .bytes(Array(text.utf8))
    }

    /// Makes a part of the UTF-8 of a literal. For a text that is not a literal, see ``text(_:)``.
    public init(stringLiteral value: String) {
      self = .text(value)
    }

    /// The length in bytes.
    var length: Int {
      switch self {
      case .bytes(let bytes): bytes.count
      case .pattern(let count): max(0, count)
      case .pause, .gate: 0
      }
    }
  }
}

extension Reply {
  /// Returns the byte at an offset of the deterministic content of `/bytes/{n}` and of pattern bodies. The content
  /// has a prime period, so that blocks which were lost, doubled or exchanged are noticed.
  public static func patternByte(at offset: Int) -> UInt8 {
    pattern[offset % patternPeriod]
  }

  /// Returns the first bytes of the deterministic content; none for a negative count.
  public static func patternBytes(_ count: Int) -> [UInt8] {
    patternBytes(0..<max(0, count))
  }

  static func patternBytes(_ range: Range<Int>) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(range.count)
    while bytes.count < range.count {
      let rest = pattern[((range.lowerBound + bytes.count) % patternPeriod)...]
      bytes += rest.prefix(range.count - bytes.count)
    }
    return bytes
  }

  private static let patternPeriod = 65_521

  private static let pattern: [UInt8] = (0..<patternPeriod).map { offset in
    UInt8(truncatingIfNeeded: offset &* 167 &+ (offset >> 7) &* 13)
  }
}
