import Foundation

/// The top level of JSON that arrives in pieces, as far as it tells one value from several: JSON lines have the type of
/// JSON in some services. What is not JSON may be either.
struct JSONValues: Sendable {
  private enum Place { case before, word, string, container, after }

  /// Whether a second value has begun.
  private(set) var areSeveral = false
  private var place = Place.before
  private var depth = 0
  private var isInString = false
  private var isEscaped = false
  /// Whether the text has wide units, whose bytes mean something else.
  private var isWide = false

  mutating func add(_ bytes: Data) {
    for byte in bytes where !areSeveral && !isWide { add(byte) }
  }

  private mutating func add(_ byte: UInt8) {
    if byte == 0 {
      isWide = true
    } else if isInString {
      addToString(byte)
    } else if place == .container {
      addToContainer(byte)
    } else if [0x20, 0x09, 0x0A, 0x0D].contains(byte) {
      if place == .word { place = .after }
    } else if byte < 0x80 {
      begin(byte)
    }
  }

  private mutating func addToString(_ byte: UInt8) {
    if isEscaped {
      isEscaped = false
    } else if byte == UInt8(ascii: "\\") {
      isEscaped = true
    } else if byte == UInt8(ascii: "\"") {
      isInString = false
      if place == .string { place = .after }
    }
  }

  private mutating func addToContainer(_ byte: UInt8) {
    switch byte {
    case UInt8(ascii: "\""): isInString = true
    case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
    case UInt8(ascii: "}"), UInt8(ascii: "]"):
      depth -= 1
      if depth == 0 { place = .after }
    default: break
    }
  }

  /// Reads a byte of the top level that is neither white space nor a part of a byte order mark.
  private mutating func begin(_ byte: UInt8) {
    switch (place, byte) {
    case (.after, _): areSeveral = true
    case (.word, UInt8(ascii: "{")), (.word, UInt8(ascii: "[")), (.word, UInt8(ascii: "\"")):
      areSeveral = true
    case (_, UInt8(ascii: "{")), (_, UInt8(ascii: "[")): (place, depth) = (.container, 1)
    case (_, UInt8(ascii: "\"")): (place, isInString) = (.string, true)
    default: place = .word
    }
  }
}
