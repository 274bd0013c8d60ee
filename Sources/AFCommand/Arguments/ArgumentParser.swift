import Alamofire
import Foundation

/// A parser of command-line arguments. Options can be anywhere; arguments after `--` are not options.
package struct ArgumentParser {
  /// The action that the arguments request.
  package enum ParsingOutcome: Equatable, Sendable {
    case send(Invocation)
    case print(Text)
  }

  /// A text about the command itself.
  package enum Text: Equatable, Sendable {
    case help
    case version
    case manual
    case completions(Completions.Shell)
  }

  private var reader: OptionReader
  private var invocation = Invocation()
  private var positionals: [String] { reader.positionals }

  /// Reads the arguments, without the name of the program.
  ///
  /// - Parameter defaults: Returns the options of the file of defaults, which come before the arguments. It is not
  ///                       called for a text about the command, nor with `--no-config`.
  package static func parse(
    _ arguments: [String],
    defaults: () throws(UsageError) -> [DefaultOption] = { () throws(UsageError) in [] }
  ) throws(UsageError) -> ParsingOutcome {
    // Alone, `-h` cannot mean the headers of anything.
    if arguments == ["-h"] { return .print(.help) }
    var reader = OptionReader(arguments)
    try reader.readAll()
    var parser = ArgumentParser(reader: reader)
    if let text = reader.text { return .print(text) }
    if reader.choices.contains(where: { $0.option.longName == "--completion" }) {
      try parser.apply([])
      if let shell = parser.invocation.completionShell { return .print(.completions(shell)) }
    }
    let isAlone = reader.choices.contains { $0.option.longName == "--no-config" }
    let invocation = try parser.finished(isAlone ? [] : defaults())
    try Self.checkItems(invocation)
    return .send(invocation)
  }

  private init(reader: OptionReader) { self.reader = reader }

  /// Applies options in their order, without those that a later `--no-OPTION` undoes.
  private mutating func apply(_ defaults: [DefaultOption]) throws(UsageError) {
    let choices = OptionReader.remaining(defaults.map(\.choice) + reader.choices)
    let typed = choices.filter { $0.source == nil }.map(\.option.longName)
    invocation.isAuthenticationTyped = typed.contains("--auth-type")
    invocation.isRetryTyped = typed.contains("--retry")
    for choice in choices {
      do throws(UsageError) {
        switch choice.option.effect {
        case .flag(let change): change(&invocation)
        case .value(_, let change): try change(&invocation, choice.value ?? "")
        case .text: continue
        }
      } catch {
        throw choice.source.map { UsageError("\($0): \(error.message)") } ?? error
      }
    }
  }

  /// Returns the invocation of the arguments, with the default options that fit to them. Those are left out that the
  /// arguments exclude, or that are not for the action.
  private func finished(_ defaults: [DefaultOption]) throws(UsageError) -> Invocation {
    let all = Set(defaults.map(\.name))
    // A wrong value stays an error.
    var parser = self
    try parser.apply(defaults)
    do throws(UsageError) {
      return try parser.finished()
    } catch {
      if all.isEmpty { throw error }
    }
    var kept: Set<String> = []
    var best = Result { () throws(UsageError) in try finished([], only: []) }
    // An option may need another one, which comes later.
    var isChanged = true
    while isChanged {
      isChanged = false
      for name in all.subtracting(kept).sorted() {
        let next = Result { () throws(UsageError) in try finished(defaults, only: kept.union([name])) }
        guard case .success = next else { continue }
        best = next
        kept.insert(name)
        isChanged = true
      }
    }
    if case .success = best {
      for name in all.subtracting(kept) where (try? finished(defaults, only: [name])) != nil {
        // It fits to the arguments, but not to another default option, so that the file is wrong.
        return try finished(defaults, only: kept.union([name]))
      }
    }
    return try best.get()
  }

  /// Returns the invocation of the arguments and of the default options with these names.
  private func finished(
    _ defaults: [DefaultOption], only names: Set<String>
  ) throws(UsageError) -> Invocation {
    var parser = self
    try parser.apply(defaults.filter { names.contains($0.name) })
    return try parser.finished()
  }

  // MARK: Method, URL, items

  private func finished() throws(UsageError) -> Invocation {
    var invocation = invocation
    var positionals = positionals[...]
    if let (action, words) = try Self.action(positionals) {
      invocation.action = action
      positionals = positionals.dropFirst(words)
    }
    if let method = Self.method(positionals, invocation.action) {
      invocation.method = method
      positionals = positionals.dropFirst()
    }
    guard let url = positionals.popFirst() else { throw UsageError("There is no URL.") }
    if invocation.method == nil, Self.knownMethods.contains(url) {
      throw UsageError("There is no URL after \(url).")
    }
    invocation.url = try Address.expand(url, isWebSocket: invocation.action == .webSocket)
    for argument in positionals {
      if Self.isURL(argument) {
        throw UsageError(
          "'\(argument)' is a second URL after '\(url)'; af sends one request, with data after its URL. Run it once for each URL."
        )
      }
      let item = try RequestItem(parsing: argument)
      if case .body(let path) = item {
        guard invocation.rawBody == nil else {
          throw UsageError("'\(argument)' is a second body; leave one out.")
        }
        invocation.rawBody = path == "-" ? .standardInput : .file(path: path)
      } else {
        invocation.items.append(item)
      }
    }
    if invocation.authentication == .bearer, let token = invocation.typedCredentials {
      invocation.credentials = Invocation.Credentials(user: token, password: "")
    }
    if invocation.isDownload, invocation.output == nil, !invocation.isOutputPlain {
      invocation.output = .suggestedName
    }
    try Self.check(invocation)
    return invocation
  }

  /// Returns the number of words before the URL: an action, a method. It is also found among arguments with a fault.
  static func wordsBeforeURL(_ words: ArraySlice<String>) -> Int {
    let found = try? action(words)
    // What follows an incomplete action is taken for a URL.
    let count = found?.words ?? (words.count > 1 && words.first == "image" ? 1 : 0)
    return count + (method(words.dropFirst(count), found?.action ?? .request) == nil ? 0 : 1)
  }

  /// Returns the method that the first word names; `nil` if it is the URL.
  private static func method(_ words: ArraySlice<String>, _ action: Invocation.Action) -> String? {
    guard action != .webSocket, words.count > 1, let first = words.first, isMethod(first) else { return nil }
    return first.uppercased()
  }

  /// Returns the action that the first words name, and how many they are. One word alone is a host.
  private static func action(
    _ words: ArraySlice<String>
  ) throws(UsageError) -> (action: Invocation.Action, words: Int)? {
    guard words.count > 1, let first = words.first else { return nil }
    if first == "image" {
      guard let action = Invocation.Action(rawValue: words.prefix(2).joined(separator: " ")) else {
        throw UsageError("'af image' is followed by info or resize, and a URL; for a host, write image/.")
      }
      return (action, 2)
    }
    guard let action = Invocation.Action(rawValue: first), action != .request else { return nil }
    return (action, 1)
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

  /// Whether an argument after the URL is another URL, rather than an item.
  private static func isURL(_ argument: String) -> Bool {
    if argument.hasPrefix("http://") || argument.hasPrefix("https://") || argument.hasPrefix("//") {
      return true
    }
    // `:8080/path` and `:/path`: no item has an empty name.
    if argument.hasPrefix(":"), let next = argument.dropFirst().first, next == "/" || next.isNumber {
      return true
    }
    return false
  }

  private static func check(_ invocation: Invocation) throws(UsageError) {
    if invocation.rawBody != nil, invocation.hasDataItems {
      throw UsageError("The body is given as a whole; leave out the data items, or --raw and @FILE.")
    }
    if invocation.action == .webSocket, invocation.hasBody {
      throw UsageError("'af ws' takes a URL, header fields and query items.")
    }
    if invocation.action.isStream,
      invocation.output != nil || invocation.isOffline || invocation.printsCurl
    {
      throw UsageError(
        "'af \(invocation.action.rawValue)' does not support --output, --download, --offline and --curl.")
    }
    try checkOneResponse(invocation)
    try checkImage(invocation)
    try checkContinuation(invocation)
    try checkSegments(invocation)
    try checkSaving(invocation)
    if invocation.certificateKey ?? invocation.certificatePassphrase != nil, invocation.certificate == nil {
      throw UsageError("--cert-key and --cert-key-pass are of a certificate; add --cert FILE.")
    }
    if invocation.archive != nil, invocation.isOffline || invocation.printsCurl {
      throw UsageError("--har records what is sent; leave out --offline and --curl.")
    }
    if invocation.isQuiet, invocation.isProgressForced || invocation.isOffline || invocation.printsCurl {
      throw UsageError("--quiet writes nothing; leave out --progress, --offline and --curl.")
    }
    if invocation.isHTTP1Only, invocation.usesHTTP2 {
      throw UsageError("--http1.1 and --http2 exclude each other.")
    }
    if invocation.negotiatesProxyLogin, invocation.proxy == nil, invocation.proxiesByScheme.isEmpty {
      throw UsageError("--proxy-anyauth needs a proxy: add --proxy http://USER:PASSWORD@HOST:PORT.")
    }
    if invocation.authentication != .basic, invocation.credentials == nil, invocation.session == nil,
      invocation.netrcFile == nil
    {
      throw UsageError("--auth-type needs credentials: add --auth.")
    }
  }

  /// Options of a response that a stream of messages or a download in segments does not have.
  private static func checkOneResponse(_ invocation: Invocation) throws(UsageError) {
    let isStream = invocation.action.isStream
    if invocation.retryLimit != nil, isStream || invocation.usesSegments {
      throw UsageError("--retry is not for ws, sse, --segments and --checksum; leave it out.")
    }
    if isStream, case .parts = invocation.shown, !invocation.isQuiet {
      throw UsageError("--print is for one response; -v shows the heads of 'af ws' and 'af sse'.")
    }
    if invocation.showsStatus, isStream || invocation.usesSegments {
      throw UsageError("--status is for one response; leave it out with ws, sse, --segments and --checksum.")
    }
    if invocation.action == .webSocket, invocation.bandwidth != nil {
      throw UsageError("--limit-rate does not limit WebSocket connections; leave it out of 'af ws'.")
    }
    if isStream, invocation.showsTiming {
      throw UsageError("--timing is for one response; --har records the times of 'af ws' and 'af sse'.")
    }
  }

  private static func checkImage(_ invocation: Invocation) throws(UsageError) {
    guard invocation.action.isImage else {
      if invocation.imageSize != nil { throw UsageError("--size is for 'af image resize'.") }
      return
    }
    let isPlain = invocation.shown == .automatic || invocation.isQuiet
    guard isPlain, !invocation.showsStatus, !invocation.showsTiming, !invocation.usesSegments,
      !invocation.isContinued, !invocation.isPaged, invocation.retryLimit == nil
    else {
      throw UsageError(
        "'af image' shows facts or writes a file; leave out -h, -b, -p, -v, --status, --timing, --pager, --retry, --continue, --segments and --checksum."
      )
    }
    if invocation.action == .imageInfo {
      guard invocation.output == nil, invocation.imageSize == nil else {
        throw UsageError("'af image info' writes facts; leave out --output, --download and --size.")
      }
      return
    }
    guard invocation.imageSize != nil else {
      throw UsageError("'af image resize' needs --size, such as --size 400 or --size 400x300.")
    }
    guard case .file(let path) = invocation.output else {
      throw UsageError("'af image resize' needs a file: --output FILE.")
    }
    guard ImageExchange.format(ofFile: path) != nil else {
      throw UsageError(
        "The name '\(path)' needs a known ending: .jpeg, .png, .webp, .gif, .tiff, .avif or .heic.")
    }
  }

  /// Checks `--continue`, once for the arguments and again with what a session adds to them.
  static func checkContinuation(_ invocation: Invocation) throws(UsageError) {
    guard invocation.isContinued else { return }
    guard case .file = invocation.output else {
      throw UsageError("--continue needs the partial file: --output FILE.")
    }
    guard !invocation.hasBody, invocation.effectiveMethod == "GET" else {
      throw UsageError("--continue is for a GET without a body.")
    }
    // The bytes of another range need not follow the bytes of the file.
    guard !invocation.hasRange else {
      throw UsageError("--continue requests the range that the file lacks; leave out the field Range.")
    }
  }

  /// Checks that there can be a body for a file. The file would be emptied otherwise.
  private static func checkSaving(_ invocation: Invocation) throws(UsageError) {
    guard invocation.output == nil || invocation.effectiveMethod != "HEAD" else {
      throw UsageError(
        "A HEAD request has no body to save; leave out --output and --download, and redirect the output.")
    }
  }

  /// Checks `--segments` and `--checksum`, once for the arguments and again with what a session adds to them.
  static func checkSegments(_ invocation: Invocation) throws(UsageError) {
    guard invocation.usesSegments else { return }
    guard invocation.output != nil else {
      throw UsageError("--segments and --checksum need a file: --output FILE or --download.")
    }
    guard !invocation.hasBody, invocation.effectiveMethod == "GET" else {
      throw UsageError("--segments and --checksum are for a GET without a body.")
    }
    guard !invocation.isContinued else {
      throw UsageError("--segments and --checksum continue by themselves; leave out --continue.")
    }
    guard !invocation.hasRange else {
      throw UsageError("--segments and --checksum are for the whole file; leave out the field Range.")
    }
    // Without sending it, parts of the request can be shown.
    let isPlain = invocation.shown == .automatic || invocation.isQuiet || invocation.isOffline
    guard isPlain, !invocation.showsTiming else {
      throw UsageError(
        "--segments and --checksum save a file and show nothing else; leave out -h, -b, -p, -v and --timing.")
    }
    // With these options no file is read.
    if !invocation.isOffline, !invocation.printsCurl { try invocation.refuseNetrcPipe() }
  }

  private static func checkItems(_ invocation: Invocation) throws(UsageError) {
    for item in invocation.items {
      switch (item, invocation.effectiveBodyKind) {
      case (.json(let name, let text), .form), (.json(let name, let text), .multipart):
        throw UsageError("A form has no JSON in it: write \(name)=\(text), or leave out --form.")
      case (.jsonFile(let name, let path), .form), (.jsonFile(let name, let path), .multipart):
        throw UsageError("A form has no JSON in it: write \(name)=@\(path), or leave out --form.")
      case (.file(let file), .json):
        throw UsageError(
          "'\(file.name)@\(file.path)' is a file of a form; add --form, or write \(file.name)=@\(file.path) for its text."
        )
      default: continue
      }
    }
  }
}

/// Wrong arguments, and the sentence that says so.
package struct UsageError: Error, Equatable {
  /// The sentence.
  package let message: String

  package init(_ message: String) {
    self.message = message
  }
}

/// The URL of an abbreviated argument.
package enum Address {
  /// Returns the whole URL for `:8080/path`, `example.com`, `localhost:3000/x` and the like.
  ///
  /// - Parameter isWebSocket: Whether `ws` and `wss` are allowed, too.
  package static func expand(_ typed: String, isWebSocket: Bool = false) throws(UsageError) -> String {
    // Foundation would escape the escapes next to a character that is not allowed in a URL.
    let url = URL.wireText(withScheme(typed))
    guard let components = URLComponents(string: url), let scheme = components.scheme?.lowercased() else {
      throw UsageError("'\(typed)' is not a URL; check its host and port.")
    }
    if scheme == "ws" || scheme == "wss", !isWebSocket {
      throw UsageError("'\(typed)' is for WebSocket connections; write 'af ws \(typed)'.")
    }
    guard ["http", "https", "ws", "wss"].contains(scheme) else {
      throw UsageError("'\(typed)' is for \(scheme), but only http and https are supported.")
    }
    guard let host = components.host, !host.isEmpty else {
      throw UsageError("'\(typed)' has no host.")
    }
    return url
  }

  private static func withScheme(_ typed: String) -> String {
    if hasScheme(typed) { return typed }
    if typed.hasPrefix("//") { return "https:" + typed }
    if typed == ":" || typed.hasPrefix(":/") { return "http://localhost" + typed.dropFirst() }
    if typed.first == ":", typed.dropFirst().first?.isNumber == true { return "http://localhost" + typed }
    return (isLocal(typed) ? "http://" : "https://") + typed
  }

  /// Whether the text begins with a scheme. A query can contain a URL.
  private static func hasScheme(_ typed: String) -> Bool {
    guard let end = typed.range(of: "://") else { return false }
    return !typed[..<end.lowerBound].contains { "/?#".contains($0) }
  }

  /// Whether the host is this machine, where servers under development speak without TLS.
  private static func isLocal(_ typed: String) -> Bool {
    let authority = typed.prefix { !"/?#".contains($0) }
    let hostAndPort =
      authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
    if hostAndPort.hasPrefix("[::1]") { return true }
    let host = hostAndPort.prefix { $0 != ":" }.lowercased()
    return host == "localhost" || host.hasSuffix(".localhost") || host == "127.0.0.1"
  }
}
