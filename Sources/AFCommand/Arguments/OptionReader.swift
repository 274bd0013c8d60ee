/// A reader of options, which can be anywhere among the arguments. Arguments after `--` are not options.
struct OptionReader {
  /// An option that was written, and its value.
  struct Choice: Sendable {
    let option: Option
    var value: String?
    /// Whether it was written as `--no-OPTION`, which undoes the option.
    var isUndone = false
    /// The file and the line of a default option.
    var place: String?
  }

  private var rest: ArraySlice<String>
  private(set) var choices: [Choice] = []
  private(set) var positionals: [String] = []
  /// The text that the options request instead of a request.
  private(set) var text: ArgumentParser.Text?
  /// The parts of arguments that are secret.
  private var secrets: [SecretArguments.Part] = []

  init(_ arguments: [String]) { rest = arguments[...] }

  /// Returns the parts of arguments that are secret, also of arguments that make no sense.
  static func secrets(in arguments: [String]) -> [SecretArguments.Part] {
    var reader = OptionReader(arguments)
    // Each error takes an argument away.
    while true {
      do throws(UsageError) {
        try reader.readAll()
        return reader.secrets
      } catch { continue }
    }
  }

  /// Notes the secrets of the argument that was read last.
  private mutating func noteSecrets(of argument: String) {
    secrets += SecretArguments.ranges(inItem: argument)
      .map { SecretArguments.Part(index: rest.startIndex - 1, bytes: $0) }
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
        while let argument = rest.popFirst() {
          noteSecrets(of: argument)
          positionals.append(argument)
        }
        return
      }
      if argument.hasPrefix("--") {
        try readLong(argument)
      } else if argument.hasPrefix("-"), argument.count > 1 {
        try readShort(argument)
      } else {
        noteSecrets(of: argument)
        positionals.append(argument)
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
    let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(parts[0])
    let value = parts.dropFirst().first.map(String.init)
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
