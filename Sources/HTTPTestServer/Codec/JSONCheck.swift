/// Reads a JSON document (RFC 8259) to its end, to see whether it is one.
///
/// It does not recurse: the depth of a request is limited only by memory, and the stack of a connection is small.
struct JSONCheck {
  /// The tokens that are valid next.
  private enum Expectation { case value, valueOrEnd, key, keyOrEnd, colon, commaOrEnd, nothing }

  private let bytes: [UInt8]
  private var position = 0
  /// Whether each open container is an object.
  private var containers: [Bool] = []
  private var expectation = Expectation.value

  /// Whether the bytes are one JSON value in UTF-8.
  static func isValid(_ bytes: [UInt8]) -> Bool {
    guard String(validating: bytes, as: UTF8.self) != nil else { return false }
    var check = JSONCheck(bytes: bytes)
    return check.readAll()
  }

  private init(bytes: [UInt8]) { self.bytes = bytes }

  private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func readAll() -> Bool {
    while true {
      while let byte = next, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { position += 1 }
      guard let byte = next else { return expectation == .nothing }
      guard readToken(byte) else { return false }
    }
  }

  private mutating func readToken(_ byte: UInt8) -> Bool {
    switch (byte, expectation) {
    case (UInt8(ascii: "{"), .value), (UInt8(ascii: "{"), .valueOrEnd): open(isObject: true)
    case (UInt8(ascii: "["), .value), (UInt8(ascii: "["), .valueOrEnd): open(isObject: false)
    case (UInt8(ascii: "}"), .keyOrEnd), (UInt8(ascii: "}"), .commaOrEnd): return close(isObject: true)
    case (UInt8(ascii: "]"), .valueOrEnd), (UInt8(ascii: "]"), .commaOrEnd): return close(isObject: false)
    case (UInt8(ascii: ","), .commaOrEnd): pass(expecting: containers.last == true ? .key : .value)
    case (UInt8(ascii: ":"), .colon): pass(expecting: .value)
    case (UInt8(ascii: "\""), .key), (UInt8(ascii: "\""), .keyOrEnd):
      guard readString() else { return false }
      expectation = .colon
    case (_, .value), (_, .valueOrEnd):
      guard byte == UInt8(ascii: "\"") ? readString() : readWord() || readNumber() else { return false }
      valueEnded()
    default: return false
    }
    return true
  }

  private mutating func pass(expecting next: Expectation) {
    position += 1
    expectation = next
  }

  private mutating func open(isObject: Bool) {
    containers.append(isObject)
    pass(expecting: isObject ? .keyOrEnd : .valueOrEnd)
  }

  private mutating func close(isObject: Bool) -> Bool {
    guard containers.popLast() == isObject else { return false }
    position += 1
    valueEnded()
    return true
  }

  private mutating func valueEnded() { expectation = containers.isEmpty ? .nothing : .commaOrEnd }

  private mutating func readWord() -> Bool {
    guard let word = ["true", "false", "null"].first(where: { bytes[position...].starts(with: $0.utf8) })
    else { return false }
    position += word.utf8.count
    return true
  }

  private mutating func readNumber() -> Bool {
    if next == UInt8(ascii: "-") { position += 1 }
    let isZero = next == UInt8(ascii: "0")
    let count = skipDigits()
    guard count == 1 || (count > 1 && !isZero) else { return false }
    if next == UInt8(ascii: ".") {
      position += 1
      guard skipDigits() > 0 else { return false }
    }
    if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
      position += 1
      if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { position += 1 }
      guard skipDigits() > 0 else { return false }
    }
    return true
  }

  /// Returns the number of digits.
  private mutating func skipDigits() -> Int {
    let start = position
    while let byte = next, (0x30...0x39).contains(byte) { position += 1 }
    return position - start
  }

  private mutating func readString() -> Bool {
    position += 1
    while let byte = next {
      position += 1
      switch byte {
      case UInt8(ascii: "\""): return true
      case UInt8(ascii: "\\"): guard readEscape() else { return false }
      case 0..<0x20: return false
      default: continue
      }
    }
    return false
  }

  private mutating func readEscape() -> Bool {
    guard let byte = next else { return false }
    position += 1
    guard byte == UInt8(ascii: "u") else { return "\"\\/bfnrt".utf8.contains(byte) }
    let digits = bytes[position...].prefix(4)
    guard digits.count == 4, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else {
      return false
    }
    position += 4
    return true
  }
}
