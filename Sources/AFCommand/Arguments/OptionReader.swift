import Alamofire
import Foundation
import Glibc

/// A reader of options, which can be anywhere among the arguments. Arguments after `--` are not options.
struct OptionReader {
  /// An option that was written, and its value.
  struct Choice: Sendable {
    let option: Option
    var value: String?
    /// Whether it was written as `--no-OPTION`, which undoes the option.
    var isUndone = false
    /// The file and the line of a default option.
    var source: String?
  }

  private var rest: ArraySlice<String>
  private(set) var choices: [Choice] = []
  private(set) var positionals: [String] = []
  /// The numbers of the arguments that are positionals.
  private var positions: [Int] = []
  /// The text that the options request instead of a request.
  private(set) var text: ArgumentParser.Text?
  /// The parts of arguments that are secret.
  private var secrets: [SecretArguments.Part] = []

  init(_ arguments: [String]) { rest = arguments[...] }

  /// Returns the parts of arguments that are secret, also of arguments that make no sense.
  static func secrets(in arguments: [String]) -> [SecretArguments.Part] {
    var reader = OptionReader(arguments)
    // Each error removes an argument.
    while true {
      do throws(UsageError) {
        try reader.readAll()
        return reader.secrets + reader.secretsOfPositionals
      } catch { continue }
    }
  }

  /// Adds the argument that was read last, which is no option.
  private mutating func addPositional(_ argument: String) {
    positionals.append(argument)
    positions.append(rest.startIndex - 1)
  }

  /// The secrets of the arguments that are no options. Only the number of the words before the URL tells it from an
  /// item, so that they are looked for at the end.
  private var secretsOfPositionals: [SecretArguments.Part] {
    let url = ArgumentParser.wordsBeforeURL(positionals[...])
    return zip(positionals, positions).enumerated().flatMap { number, word in
      let (argument, index) = word
      let ranges =
        SecretArguments.ranges(inItem: argument)
        + (number == url ? SecretArguments.ranges(inURL: argument) : [])
      return ranges.map { SecretArguments.Part(index: index, bytes: $0) }
    }
  }

  /// Notes the secret in the value of an option, with which the argument that was read last ends.
  private mutating func noteSecrets(of value: String, _ option: Option, in argument: String) {
    let start = argument.utf8.count - value.utf8.count
    secrets += SecretArguments.ranges(in: value, of: option).map { range in
      SecretArguments.Part(
        index: rest.startIndex - 1, bytes: (range.lowerBound + start)..<(range.upperBound + start))
    }
  }

  mutating func readAll() throws(UsageError) {
    while let argument = rest.popFirst() {
      if argument == "--" {
        while let argument = rest.popFirst() { addPositional(argument) }
        return
      }
      if argument.hasPrefix("--") {
        try readLong(argument)
      } else if argument.hasPrefix("-"), argument.count > 1 {
        try readShort(argument)
      } else {
        addPositional(argument)
      }
    }
  }

  /// Returns the choices that no later one undoes.
  static func remaining(_ choices: [Choice]) -> [Choice] {
    var remaining: [Choice] = []
    for choice in choices {
      if choice.isUndone {
        remaining.removeAll { $0.option.longName == choice.option.longName }
      } else {
        remaining.append(choice)
      }
    }
    return remaining
  }

  private mutating func readLong(_ argument: String) throws(UsageError) {
    let equals = argument.utf8.firstIndex(of: UInt8(ascii: "="))
    let name = String(argument[..<(equals ?? argument.endIndex)])
    let value = equals.map { String(argument[argument.utf8.index(after: $0)...]) }
    if value == nil, let option = Option.undone(by: name) {
      choices.append(Choice(option: option, isUndone: true))
      return
    }
    let option = try Option.named(name)
    if value != nil, option.placeholder == nil { throw UsageError("\(name) does not take a value.") }
    try choose(option, name: name, attached: value, in: argument)
  }

  /// Reads `-v`, `-vf`, `-a user:pass` or `-auser:pass`.
  private mutating func readShort(_ argument: String) throws(UsageError) {
    var letters = argument.dropFirst()
    while let letter = letters.popFirst() {
      let name = "-\(letter)"
      let option = try Option.named(name)
      if option.placeholder != nil {
        return try choose(option, name: name, attached: letters.isEmpty ? nil : String(letters), in: argument)
      }
      try choose(option, name: name, attached: nil, in: argument)
    }
  }

  private mutating func choose(
    _ option: Option, name: String, attached: String?, in argument: String
  ) throws(UsageError) {
    switch option.effect {
    case .flag: choices.append(Choice(option: option))
    case .text(let text): self.text = self.text ?? text
    case .value(let placeholder, _):
      guard let value = attached ?? rest.popFirst() else {
        throw UsageError("\(name) needs a value: \(name) \(placeholder).")
      }
      noteSecrets(of: value, option, in: attached == nil ? value : argument)
      choices.append(Choice(option: option, value: value))
    }
  }
}

/// An option of the file of defaults. Each line of the file has one option, and its value after a space or `=`, without
/// quotes. Empty lines and lines that begin with `#` are ignored.
package struct DefaultOption: Sendable {
  let choice: OptionReader.Choice
  var name: String { choice.option.longName }

  /// Returns the path of the file: the value of `AF_CONFIG`, or `af/config` in the folder for configurations (XDG Base
  /// Directory Specification). Returns `nil` if `AF_CONFIG` is empty, or there is no such folder.
  static func path(_ variables: [String: String]) -> String? {
    if let path = variables["AF_CONFIG"] { return path.isEmpty ? nil : path }
    // A relative path is to be ignored.
    if let folder = variables["XDG_CONFIG_HOME"], folder.hasPrefix("/") { return "\(folder)/af/config" }
    return variables["HOME"].flatMap { $0.isEmpty ? nil : "\($0)/.config/af/config" }
  }

  /// Reads the file; none if there is no file, unless `AF_CONFIG` names it.
  static func read(_ variables: [String: String]) throws(UsageError) -> [DefaultOption] {
    guard let path = path(variables) else { return [] }
    guard variables["AF_CONFIG"] != nil || FileManager.default.fileExists(atPath: path) else { return [] }
    let content = try LocalFile.content(path, limit: LocalFile.largestSettings)
    guard let text = String(validating: content, as: UTF8.self) else {
      throw UsageError("The options in '\(path)' are not text in UTF-8.")
    }
    return try read(text, path: path)
  }

  static func read(_ text: String, path: String) throws(UsageError) -> [DefaultOption] {
    var options: [DefaultOption] = []
    // By scalars, because the line break of Windows is one Character.
    let lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      let line = String(line).trimmingCharacters(in: blanks.union(["\r"]))
      if line.isEmpty || line.utf8.first == UInt8(ascii: "#") { continue }
      let source = "\(path), line \(index + 1)"
      do throws(UsageError) {
        options += try read(line: line).map { choice in
          var choice = choice
          choice.source = source
          return DefaultOption(choice: choice)
        }
      } catch {
        throw UsageError("\(source): \(error.message)")
      }
    }
    return options
  }

  /// The characters around a value. Other kinds of spaces may be a part of it, such as of a password.
  private static let blanks = CharacterSet(charactersIn: " \t")

  private static func read(line: String) throws(UsageError) -> [OptionReader.Choice] {
    let parts = line.unicodeScalars.split(maxSplits: 1, whereSeparator: blanks.contains).map {
      String($0).trimmingCharacters(in: blanks)
    }
    guard let first = parts.first, first.utf8.first == UInt8(ascii: "-") else {
      throw UsageError("'\(line)' is not an option. Header fields for every request belong into a --session.")
    }
    var reader = OptionReader(parts)
    try reader.readAll()
    guard reader.positionals.isEmpty else { throw UsageError("\(parts[0]) does not take a value.") }
    let hasText = reader.choices.contains { ["--completion", "--no-config"].contains($0.option.longName) }
    guard reader.text == nil, !hasText else { throw UsageError("\(parts[0]) is for the command line.") }
    return reader.choices
  }
}

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
      // Bytes that are not text have a different length in a string.
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

  /// Returns the secrets in a URL: its user information, and values of its query.
  static func ranges(inURL argument: String) -> [Range<Int>] {
    [userInformation(of: argument)].compactMap { $0 } + query(of: argument)
  }

  /// Returns the secrets in a URL, or in an item: the values of fields and data that are secret by their names.
  static func ranges(inItem argument: String) -> [Range<Int>] {
    let whole = argument.utf8.count
    // The separator of an item comes before any query.
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
    return ranges(inURL: argument)
  }

  /// Returns the bytes of the user information of a URL; `nil` without any.
  private static func userInformation(of url: String) -> Range<Int>? {
    let bytes = Array(url.utf8)
    let start = position(behind: "//", in: bytes) ?? 0
    let end = bytes[start...].firstIndex { "/?#".utf8.contains($0) } ?? bytes.endIndex
    guard let at = bytes[start..<end].lastIndex(of: UInt8(ascii: "@")), at > start else { return nil }
    return start..<at
  }

  /// Returns the position after the first `text` before any query.
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
