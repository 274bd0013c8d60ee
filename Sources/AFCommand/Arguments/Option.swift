/// An option of the command line: its names and its effect.
struct Option: Sendable {
  enum Effect: Sendable {
    case flag(@Sendable (inout Invocation) -> Void)
    /// `value` is the name of the value in the help.
    case value(String, @Sendable (inout Invocation, String) throws(UsageError) -> Void)
    case help
    case version
  }

  let names: [String]
  let effect: Effect

  init(_ names: String..., effect: Effect) {
    self.names = names
    self.effect = effect
  }

  static let all: [Option] = [
    Option("--json", "-j", effect: .flag { $0.bodyKind = .json }),
    Option("--form", "-f", effect: .flag { $0.bodyKind = .form }),
    Option("--raw", effect: .value("TEXT") { $0.rawBody = $1 == "-" ? .standardInput : .text($1) }),
    Option("--headers", "-h", effect: .flag { $0.shown = .headers }),
    Option("--body", "-b", effect: .flag { $0.shown = .body }),
    Option("--verbose", "-v", effect: .flag { $0.shown = .everything }),
    Option("--timing", effect: .flag { $0.showsTiming = true }),
    Option("--curl", effect: .flag { $0.isCurlWanted = true }),
    Option("--auth", "-a", effect: .value("USER:PASS", setCredentials)),
    Option("--timeout", effect: .value("SECONDS", setTimeout)),
    Option("--max-redirects", effect: .value("N", setRedirectLimit)),
    Option("--no-follow", effect: .flag { $0.redirects = .show }),
    Option("--ca", effect: .value("FILE") { $0.trustFile = $1 }),
    Option("--http1.1", effect: .flag { $0.isHTTP1Only = true }),
    Option("--check-status", effect: .flag { $0.checksStatus = true }),
    Option("--no-check-status", effect: .flag { $0.checksStatus = false }),
    Option("--help", effect: .help),
    Option("--version", effect: .version),
  ]

  static func named(_ name: String) throws(UsageError) -> Option {
    if let option = all.first(where: { $0.names.contains(name) }) { return option }
    let nearest = all.flatMap(\.names).filter { $0.hasPrefix("--") }
      .map { (name: $0, distance: EditDistance.between($0, name)) }
      .min { $0.distance < $1.distance }
    guard let nearest, nearest.distance <= 2 else { throw UsageError("There is no option \(name).") }
    throw UsageError("There is no option \(name); did you mean \(nearest.name)?")
  }

  // MARK: Values

  private static func setCredentials(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    guard let colon = text.firstIndex(of: ":") else {
      throw UsageError("--auth needs a name and a password, USER:PASS; the password may be empty.")
    }
    invocation.credentials = Invocation.Credentials(
      user: String(text[..<colon]), password: String(text[text.index(after: colon)...]))
  }

  private static func setTimeout(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    guard let seconds = Double(text), seconds > 0, seconds < 1e9 else {
      throw UsageError("--timeout needs a number of seconds above zero, such as 2.5, not '\(text)'.")
    }
    invocation.timeout = seconds
  }

  private static func setRedirectLimit(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    guard let limit = Int(text), (0...1000).contains(limit) else {
      throw UsageError("--max-redirects needs a number from 0 to 1000, not '\(text)'.")
    }
    invocation.redirects = .follow(limit: limit)
  }
}
