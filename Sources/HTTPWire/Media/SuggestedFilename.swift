/// The file name that a response suggests (RFC 6266): a single path component, whatever the server sends. It is
/// visible, is not hidden, and cannot be mistaken for an option of a command.
package enum SuggestedFilename {
  /// The name of a response that suggests none.
  package static let unknown = "Unknown"
  /// The longest name that file systems take, in bytes (NAME_MAX).
  package static let longest = 255

  /// Returns the name from `Content-Disposition`, else the last part of the path, else the host.
  ///
  /// - Parameters:
  ///   - contentDisposition: The field's value. `filename*` comes before `filename` (RFC 6266 §4.3).
  ///   - path: The path of the URL, percent-encoded.
  ///   - host: The host of the URL.
  package static func name(contentDisposition: String?, path: String, host: String?) -> String {
    if let contentDisposition, let name = name(inDisposition: contentDisposition) { return name }
    let last = path.utf8.split(separator: UInt8(ascii: "/")).last
    return last.flatMap { decoded(Substring($0)) }.flatMap { component($0) } ?? host.flatMap { component($0) }
      ?? unknown
  }

  private static func name(inDisposition value: String) -> String? {
    // Some servers send a path of Windows without escaping its backslashes, and browsers show its last component.
    let parameters = MediaType.parameters(value[...], escapesOnlyQuotes: true)
    let extended = parameters.lazy.filter { $0.name == "filename*" }.compactMap { extendedValue($0.value) }
    let plain = parameters.lazy.filter { $0.name == "filename" }.map(\.value)
    return extended.compactMap { component($0) }.first ?? plain.compactMap { component($0) }.first
  }

  /// Returns the text of a value with a character set and a language (RFC 8187 §3.2); `nil` for another character
  /// set.
  private static func extendedValue(_ value: String) -> String? {
    let parts = value.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3 else { return nil }
    switch parts[0].lowercased() {
    case "utf-8": return decoded(parts[2])
    case "iso-8859-1":
      guard let bytes = bytes(of: parts[2]) else { return nil }
      var text = ""
      text.unicodeScalars.append(contentsOf: bytes.lazy.map { Unicode.Scalar($0) })
      return text
    default: return nil
    }
  }

  /// Returns the last component of a server's file name, which may be a path. Removes characters that are not visible
  /// or change the direction of text. Also removes dots, dashes and combining marks at the beginning. `nil` if the rest
  /// is empty. A name that a later download would read as a file of its own gets another ending.
  ///
  /// - Parameter longest: The largest number of bytes.
  package static func component(_ text: String, longest: Int = longest) -> String? {
    let isSeparator = { (scalar: Unicode.Scalar) in scalar == "/" || scalar == "\\" }
    let scalars = text.unicodeScalars
    let start = scalars.lastIndex(where: isSeparator).map { scalars.index(after: $0) } ?? scalars.startIndex
    var visible = scalars[start...].filter(isVisible)[...]
    while let first = visible.first, isLeading(first) { visible.removeFirst() }
    while visible.last?.properties.isWhitespace == true { visible.removeLast() }
    var name = shortened(Substring(visible), to: longest)
    if CompanionName.isReserved(name) { name = shortened(Substring(visible), to: longest - 2) + "-1" }
    // An empty name would be the folder itself.
    guard let first = name.unicodeScalars.first, !isLeading(first) else { return nil }
    return name
  }

  /// Whether a scalar is removed from the beginning of a name. A mark would join with the slash before the name.
  private static func isLeading(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .spacingMark, .enclosingMark: true
    default: scalar.properties.isWhitespace || scalar == "." || scalar == "-"
    }
  }

  private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: false
    default: true
    }
  }

  /// Returns the name without the end of its stem, when it is longer than a file system takes.
  private static func shortened(_ name: Substring, to longest: Int) -> String {
    guard name.utf8.count > longest else { return String(name) }
    let dot = name.unicodeScalars.lastIndex(of: ".") ?? name.endIndex
    let suffix = name[dot...].utf8.count <= longest / 4 ? name[dot...] : ""
    let stem = name[..<(suffix.isEmpty ? name.endIndex : dot)]
    return String(ScalarText.beginning(of: stem, bytes: longest - suffix.utf8.count) + suffix)
  }

  private static func decoded(_ text: Substring) -> String? {
    bytes(of: text).flatMap { String(validating: $0, as: UTF8.self) }
  }

  /// Returns the bytes of a percent-encoded text; `nil` when a `%` has no two hexadecimal digits.
  private static func bytes(of text: Substring) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = text.utf8
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit) else {
        return nil
      }
      bytes.append(high << 4 | low)
    }
    return bytes
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt8($0) }
  }
}

/// The name of a file beside another one, such as the record of a partial file. It fits into a file system however long
/// the name of the other file is.
package enum CompanionName {
  /// The endings of all names that a download writes beside other files, and that a later download reads. No server may
  /// choose such a name.
  package enum Ending: String, CaseIterable, Sendable {
    /// The received bytes of a download in segments.
    case partial = ".alamofire-partial"
    /// The ranges that are among them, and a list of ranges that is not complete yet.
    case ranges = ".alamofire-ranges"
    case newRanges = ".alamofire-ranges.new"
    /// The journal of a file that `af` continues.
    case journal = ".af-continue"
    /// A download of `af` until the server's name is known.
    case unnamed = ".af-download"
  }

  private static let reserved = Ending.allCases.map { Array($0.rawValue.utf8.reversed()) }

  /// Whether a name has one of the endings. Case does not count, as on some file systems.
  static func isReserved(_ name: String) -> Bool {
    let bytes = name.utf8.reversed().lazy.map { 0x41...0x5A ~= $0 ? $0 | 0x20 : $0 }
    return reserved.contains { bytes.starts(with: $0) }
  }

  /// Returns the path of a file beside `path`, with `suffix` at the end of its name. A name that would be too long is
  /// shortened, and has a hash of the whole name before the suffix.
  ///
  /// - Parameter count: The number of bytes by which the caller makes the name longer.
  package static func path(beside path: String, suffix: String, reserving count: Int = 0) -> String {
    let name =
      path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path[path.utf8.index(after: $0)...] } ?? path[...]
    let room = SuggestedFilename.longest - suffix.utf8.count - count
    guard name.utf8.count > room else { return path + suffix }
    let hash = FNVHash(name).text
    let stem = ScalarText.beginning(of: name, bytes: room - hash.utf8.count - 1)
    return "\(path[..<name.startIndex])\(stem)~\(hash)\(suffix)"
  }
}

/// The FNV-1a hash of bytes, 64 bits. Collisions can be produced on purpose, so it proves nothing to a peer.
package struct FNVHash: Sendable {
  package private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

  package init(_ text: some StringProtocol) {
    for byte in text.utf8 { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }
  }

  /// The hash as hexadecimal digits.
  package var text: String { String(value, radix: 16) }
}
