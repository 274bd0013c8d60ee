package import Foundation

/// The version and the length of the resource of a partial file. A small file beside the partial file has both until
/// the download is complete, so that `--continue` never joins parts of two versions.
package struct PartialFileRecord: Equatable, Sendable {
  /// A strong validator, which is sent as `If-Range` (RFC 9110 §13.1.5).
  package enum Validator: Equatable, Sendable {
    case entityTag(String)
    case modificationDate(String)

    package var value: String {
      switch self {
      case .entityTag(let value), .modificationDate(let value): value
      }
    }
  }

  package let validator: Validator?
  package let length: Int64?

  /// Makes a record; `nil` if nothing is known of the version.
  package init?(_ validator: Validator?, length: Int64?) {
    if validator == nil, length == nil { return nil }
    self.validator = validator
    self.length = length
  }

  private static let names = (tag: "ETag: ", date: "Last-Modified: ", length: "Content-Length: ")
  /// The size of the largest file that can be a record.
  package static let longestText = 65_536

  /// Parses a record. Returns `nil` for any other text, because the file may be one of the user.
  package init?(_ text: Data) {
    guard text.count <= Self.longestText, text.last == 0x0A else { return nil }
    var (tag, date, length) = (String?.none, String?.none, Int64?.none)
    for line in text.dropLast().split(separator: 0x0A, omittingEmptySubsequences: false) {
      guard let line = String(validating: line, as: UTF8.self), Self.isFieldText(line) else { return nil }
      if let value = Self.value(Self.names.tag, in: line) {
        guard Self.isStrongTag(value), tag == nil else { return nil }
        tag = value
      } else if let value = Self.value(Self.names.date, in: line) {
        guard !value.isEmpty, date == nil else { return nil }
        date = value
      } else if let value = Self.value(Self.names.length, in: line) {
        guard length == nil, value.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let count = Int64(value)
        else { return nil }
        length = count
      } else {
        return nil
      }
    }
    self.init(tag.map { .entityTag($0) } ?? date.map { .modificationDate($0) }, length: length)
  }

  /// The content of the file; `nil` for a validator that could not be read back.
  package var text: Data? {
    var lines: [String] = []
    switch validator {
    case .entityTag(let value): lines.append(Self.names.tag + value)
    case .modificationDate(let value): lines.append(Self.names.date + value)
    case nil: break
    }
    if let length { lines.append("\(Self.names.length)\(length)") }
    let text = Data(lines.map { $0 + "\n" }.joined().utf8)
    return PartialFileRecord(text) == self ? text : nil
  }

  private static func value(_ name: String, in line: String) -> String? {
    guard line.utf8.starts(with: name.utf8) else { return nil }
    return String(decoding: line.utf8.dropFirst(name.utf8.count), as: UTF8.self)
  }

  private static func isFieldText(_ line: String) -> Bool {
    line.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
  }

  private static func isStrongTag(_ tag: String) -> Bool {
    let bytes = Array(tag.utf8)
    return bytes.count >= 2 && bytes.first == UInt8(ascii: "\"") && bytes.last == UInt8(ascii: "\"")
  }
}
