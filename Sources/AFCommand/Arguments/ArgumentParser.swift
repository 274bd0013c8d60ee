/// A parser of command-line arguments. Options can be anywhere; arguments after `--` are not options.
package struct ArgumentParser {
  /// The action that the arguments request.
  package enum Outcome: Equatable, Sendable {
    case send(Invocation)
    case help
    case version
  }

  private enum Special { case help, version }

  private var rest: ArraySlice<String>
  private var invocation = Invocation()
  private var positionals: [String] = []
  private var special: Special?

  /// Reads the arguments, without the name of the program.
  package static func parse(_ arguments: [String]) throws(UsageError) -> Outcome {
    // Alone, `-h` cannot mean the headers of anything.
    if arguments == ["-h"] { return .help }
    var parser = ArgumentParser(rest: arguments[...])
    try parser.readAll()
    switch parser.special {
    case .help: return .help
    case .version: return .version
    case nil: return .send(try parser.finished())
    }
  }

  private init(rest: ArraySlice<String>) {
    self.rest = rest
  }

  // MARK: Options

  private mutating func readAll() throws(UsageError) {
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

  private mutating func readLong(_ argument: String) throws(UsageError) {
    let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(parts[0])
    let option = try Option.named(name)
    if let value = parts.dropFirst().first {
      guard case .value(_, let apply) = option.effect else {
        throw UsageError("\(name) takes no value.")
      }
      try apply(&invocation, String(value))
    } else {
      try apply(option, name: name, attached: nil)
    }
  }

  /// `-v`, `-vf`, `-a user:pass` and `-auser:pass`.
  private mutating func readShort(_ argument: String) throws(UsageError) {
    var letters = argument.dropFirst()
    while let letter = letters.popFirst() {
      let name = "-\(letter)"
      let option = try Option.named(name)
      if case .value = option.effect {
        return try apply(option, name: name, attached: letters.isEmpty ? nil : String(letters))
      }
      try apply(option, name: name, attached: nil)
    }
  }

  private mutating func apply(_ option: Option, name: String, attached: String?) throws(UsageError) {
    switch option.effect {
    case .flag(let change): change(&invocation)
    case .help: special = special ?? .help
    case .version: special = special ?? .version
    case .value(let placeholder, let change):
      guard let value = attached ?? rest.popFirst() else {
        throw UsageError("\(name) needs a value: \(name) \(placeholder).")
      }
      try change(&invocation, value)
    }
  }

  // MARK: Method, URL, items

  private func finished() throws(UsageError) -> Invocation {
    var invocation = invocation
    var positionals = positionals[...]
    if positionals.count > 1, let first = positionals.first, Self.isMethod(first) {
      invocation.method = first.uppercased()
      positionals = positionals.dropFirst()
    }
    guard let url = positionals.popFirst() else { throw UsageError("There is no URL.") }
    if invocation.method == nil, Self.knownMethods.contains(url) {
      throw UsageError("There is no URL behind \(url).")
    }
    invocation.url = try Address.expand(url)
    for argument in positionals { invocation.items.append(try RequestItem(parsing: argument)) }
    try Self.check(invocation)
    return invocation
  }

  private static let knownMethods = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY",
  ]

  /// Whether a word is a method: uppercase letters, or a well-known method. A host can be called `localhost`.
  private static func isMethod(_ word: String) -> Bool {
    guard !word.isEmpty else { return false }
    return word.allSatisfy { ("A"..."Z").contains($0) || $0 == "-" }
      || knownMethods.contains(word.uppercased())
  }

  private static func check(_ invocation: Invocation) throws(UsageError) {
    if invocation.rawBody != nil, invocation.items.contains(where: \.isData) {
      throw UsageError("--raw is the whole body; leave out the data items, or --raw.")
    }
    guard invocation.bodyKind == .form else { return }
    for case .json(let name, let text) in invocation.items {
      throw UsageError("A form has no JSON in it: write \(name)=\(text), or leave out --form.")
    }
  }
}
