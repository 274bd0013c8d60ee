/// The `--name value` pairs of a command line, and the words between them.
package struct Arguments: Sendable {
  /// A mistake in a command line, described for the user.
  package struct Problem: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
      self.description = description
    }
  }

  /// The arguments that are not options, in order.
  package private(set) var words: [String] = []
  private var values: [String: String] = [:]

  /// Parses a command line.
  ///
  /// - Parameters:
  ///   - arguments: The command line without the name of the program.
  ///   - options: The options that take a value.
  ///   - flags: The options without a value; they get the empty string.
  package init(_ arguments: some Sequence<String>, options: Set<String>, flags: Set<String> = []) throws {
    var rest = arguments.makeIterator()
    while let argument = rest.next() {
      if !argument.hasPrefix("--") {
        words.append(argument)
        continue
      }
      let name = String(argument.dropFirst(2))
      if flags.contains(name) {
        values[name] = ""
      } else if options.contains(name) {
        guard let value = rest.next() else { throw Problem("--\(name) needs a value") }
        values[name] = value
      } else {
        throw Problem("there is no option --\(name)")
      }
    }
  }

  /// The value of an option, or `nil` if it is missing.
  package subscript(name: String) -> String? { values[name] }

  /// Returns the value of a required option.
  package func required(_ name: String) throws -> String {
    guard let value = values[name] else { throw Problem("--\(name) is missing") }
    return value
  }

  /// Returns a positive number, or `nil` if the option is missing.
  package func count(_ name: String) throws -> Int? {
    guard let text = values[name] else { return nil }
    guard let number = Int(text), number > 0 else {
      throw Problem("--\(name) must be a positive number, not '\(text)'")
    }
    return number
  }

  /// Returns a value of an enumeration, or `nil` if the option is missing.
  package func choice<Choice: RawRepresentable<String> & CaseIterable>(_ name: String) throws -> Choice? {
    let all: [Choice]? = try choices(name)
    return all?.first
  }

  /// Returns values of an enumeration, separated by commas, or `nil` if the option is missing.
  package func choices<Choice: RawRepresentable<String> & CaseIterable>(_ name: String) throws -> [Choice]? {
    try values[name]?.split(separator: ",").map { text in
      guard let choice = Choice(rawValue: String(text)) else {
        let names = Choice.allCases.map(\.rawValue).joined(separator: ", ")
        throw Problem("--\(name) must be one of \(names), not '\(text)'")
      }
      return choice
    }
  }
}
