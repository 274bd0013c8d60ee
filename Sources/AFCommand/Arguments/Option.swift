/// An option of the command line: its names, its effect, and its description in the help.
struct Option: Sendable {
  enum Effect: Sendable {
    case flag(@Sendable (inout Invocation) -> Void)
    /// `value` is the name of the value in the help.
    case value(String, @Sendable (inout Invocation, String) throws(UsageError) -> Void)
    /// An option that prints a text instead of sending a request.
    case text(ArgumentParser.Text)
  }

  /// The kind of words that complete the value of an option.
  enum Completion: Sendable, Equatable {
    case none
    case files
    /// Names of sessions, and files.
    case sessions
    case words([String])
  }

  /// A section of the help.
  enum Group: String, CaseIterable, Sendable {
    case body = "Body"
    case output = "Output"
    case files = "Files"
    case access = "Credentials and cookies"
    case connection = "Connection"
    case command = "Command"
  }

  let names: [String]
  let group: Group
  let summary: String
  let completion: Completion
  let effect: Effect
  /// The secret in its value.
  let secret: Secret

  /// The part of a value that other users must not read in the list of processes.
  enum Secret: Sendable, Equatable {
    case none
    case whole
    /// The user information of a URL.
    case userInformation
  }

  /// Makes an option.
  ///
  /// - Parameter names: The long name, then the short one if there is one, separated by a space.
  init(
    _ names: String, _ group: Group, _ summary: String, completion: Completion = .none,
    secret: Secret = .none,
    effect: Effect
  ) {
    self.secret = secret
    self.names = names.split(separator: " ").map(String.init)
    self.group = group
    self.summary = summary
    self.completion = completion
    self.effect = effect
  }

  /// The name of the value; `nil` for an option without one.
  var placeholder: String? {
    if case .value(let placeholder, _) = effect { placeholder } else { nil }
  }

  var longName: String { names.first { $0.hasPrefix("--") } ?? names[0] }
  var shortName: String? { names.first { !$0.hasPrefix("--") } }

  /// Returns the option that a name of the form `--no-OPTION` undoes; `nil` for another name, and for the name of an
  /// option.
  static func undone(by name: String) -> Option? {
    guard name.hasPrefix("--no-"), !all.contains(where: { $0.names.contains(name) }) else { return nil }
    let base = "--" + name.dropFirst("--no-".count)
    return all.first { $0.longName == base }
  }

  static func named(_ name: String) throws(UsageError) -> Option {
    if let option = all.first(where: { $0.names.contains(name) }) { return option }
    if let advice = ForeignOption.advice(name) { throw UsageError("There is no option \(name); \(advice).") }
    let nearest = all.flatMap(\.names).filter { $0.hasPrefix("--") }
      .map { (name: $0, distance: EditDistance.between($0, name)) }
      .min { $0.distance < $1.distance }
    guard let nearest, nearest.distance <= 2 else { throw UsageError("There is no option \(name).") }
    throw UsageError("There is no option \(name); did you mean \(nearest.name)?")
  }
}
