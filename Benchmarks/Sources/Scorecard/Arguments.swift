/// The `--name value` pairs of a command line, and the words between them.
package struct Arguments: Sendable {
  /// Why a command line cannot be understood, in words for the one who typed it.
  package struct Problem: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
      self.description = description
    }
  }

  /// The arguments that are no options, in order.
  package private(set) var words: [String] = []
  private var values: [String: String] = [:]

  /// - Parameters:
  ///   - arguments: The command line without the name of the program.
  ///   - options: The options that take a value.
  ///   - flags: Those that take none; their value is the empty string.
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

  /// The value of an option; `nil` when it was not given.
  package subscript(name: String) -> String? { values[name] }

  /// The value of an option that must be there.
  package func required(_ name: String) throws -> String {
    guard let value = values[name] else { throw Problem("--\(name) is missing") }
    return value
  }

  /// A positive number; `nil` when the option was not given.
  package func count(_ name: String) throws -> Int? {
    guard let text = values[name] else { return nil }
    guard let number = Int(text), number > 0 else {
      throw Problem("--\(name) must be a positive number, not '\(text)'")
    }
    return number
  }

  /// One value of an enumeration; `nil` when the option was not given.
  package func choice<Choice: RawRepresentable<String> & CaseIterable>(_ name: String) throws -> Choice? {
    let all: [Choice]? = try choices(name)
    return all?.first
  }

  /// Values of an enumeration, separated by commas; `nil` when the option was not given.
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
