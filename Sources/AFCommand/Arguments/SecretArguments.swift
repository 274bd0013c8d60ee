import Alamofire
import Glibc

/// The secrets among the arguments of the process, which other users can read in the list of processes. As curl does,
/// the command overwrites them as soon as it has read them. Until then, and in the history of the shell, they can be
/// read.
package enum SecretArguments {
  /// A part of an argument.
  package struct Part: Equatable, Sendable {
    /// The number of the argument, without the name of the program.
    package let index: Int
    /// The positions in its bytes.
    package let bytes: Range<Int>

    package init(index: Int, bytes: Range<Int>) {
      self.index = index
      self.bytes = bytes
    }
  }

  /// Overwrites the secrets of the process.
  ///
  /// - Parameter arguments: The arguments of the process without the name of the program.
  static func hide(_ arguments: [String]) {
    let count = Int(CommandLine.argc)
    for part in OptionReader.secrets(in: arguments) where part.index + 1 < count {
      guard let bytes = CommandLine.unsafeArgv[part.index + 1] else { continue }
      let length = strlen(bytes)
      // Bytes that are no text have another length in a string.
      let isText = length == arguments[part.index].utf8.count
      let range = isText ? part.bytes.clamped(to: 0..<length) : 0..<length
      memset(bytes + range.lowerBound, Int32(UInt8(ascii: "*")), range.count)
    }
  }

  /// Returns the secrets in the value of an option.
  static func ranges(in value: String, of option: Option) -> [Range<Int>] {
    switch option.secret {
    case .none: []
    case .whole: value.isEmpty ? [] : [0..<value.utf8.count]
    case .userInformation: [userInformation(of: value)].compactMap { $0 }
    }
  }

  /// Returns the secrets in a URL, or in an item: the values of fields and data that are secret by their names.
  static func ranges(inItem argument: String) -> [Range<Int>] {
    let whole = argument.utf8.count
    // The separator of an item stands in front of any query.
    if let item = RequestItem.parts(of: argument), !item.value.isEmpty, !item.name.contains("?") {
      let value = (whole - item.value.utf8.count)..<whole
      switch item.separator {
      case ":" where !item.value.hasPrefix("//"):
        if Redaction.standard.isSecret(headerField: item.name) { return [value] }
      case "=", ":=", "==": if Redaction.standard.isSecret(queryItem: item.name) { return [value] }
      // The value is the path of a file.
      case "@", "=@", ":=@", "==@", ":@": return []
      default: break
      }
    }
    return [userInformation(of: argument)].compactMap { $0 } + query(of: argument)
  }

  /// Returns the bytes of the user information of a URL; `nil` without any.
  private static func userInformation(of url: String) -> Range<Int>? {
    let bytes = Array(url.utf8)
    let start = position(behind: "//", in: bytes) ?? 0
    let end = bytes[start...].firstIndex { "/?#".utf8.contains($0) } ?? bytes.endIndex
    guard let at = bytes[start..<end].lastIndex(of: UInt8(ascii: "@")), at > start else { return nil }
    return start..<at
  }

  /// Returns the position behind the first `text` in front of any query.
  private static func position(behind text: String, in bytes: [UInt8]) -> Int? {
    let text = Array(text.utf8)
    let end = bytes.firstIndex { "?#".utf8.contains($0) } ?? bytes.endIndex
    return bytes[..<end].indices.first { bytes[$0..<end].starts(with: text) }.map { $0 + text.count }
  }

  /// Returns the secrets in the query of a URL.
  private static func query(of url: String) -> [Range<Int>] {
    let bytes = Array(url.utf8)
    guard let start = bytes.firstIndex(of: UInt8(ascii: "?")) else { return [] }
    return bytes[(start + 1)...].split { "&;#".utf8.contains($0) }.compactMap { pair in
      guard let equals = pair.firstIndex(of: UInt8(ascii: "=")), equals + 1 < pair.endIndex,
        Redaction.standard.isSecret(queryItem: String(decoding: pair[..<equals], as: UTF8.self))
      else { return nil }
      return (equals + 1)..<pair.endIndex
    }
  }
}
