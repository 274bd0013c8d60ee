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

  init(_ arguments: [String]) { rest = arguments[...] }

  mutating func readAll() throws(UsageError) {
    while let argument = rest.popFirst() {
      if argument == "--" {
        positionals += rest
        return
      }
      if argument.hasPrefix("--") {
        try readLong(argument)
      } else if argument.hasPrefix("-"), argument.count > 1 {
        try readShort(argument)
      } else {
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
    try choose(option, name: name, attached: value)
  }

  /// Reads `-v`, `-vf`, `-a user:pass` or `-auser:pass`.
  private mutating func readShort(_ argument: String) throws(UsageError) {
    var letters = argument.dropFirst()
    while let letter = letters.popFirst() {
      let name = "-\(letter)"
      let option = try Option.named(name)
      if option.placeholder != nil {
        return try choose(option, name: name, attached: letters.isEmpty ? nil : String(letters))
      }
      try choose(option, name: name, attached: nil)
    }
  }

  private mutating func choose(_ option: Option, name: String, attached: String?) throws(UsageError) {
    switch option.effect {
    case .flag: choices.append(Choice(option: option))
    case .text(let text): self.text = self.text ?? text
    case .value(let placeholder, _):
      guard let value = attached ?? rest.popFirst() else {
        throw UsageError("\(name) needs a value: \(name) \(placeholder).")
      }
      choices.append(Choice(option: option, value: value))
    }
  }
}
