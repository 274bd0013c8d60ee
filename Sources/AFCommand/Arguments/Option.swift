import Alamofire
import Foundation

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

/// Options of curl, HTTPie and xh that this command does not have, and what to write instead. A letter with two
/// meanings has the advice for both.
enum ForeignOption {
  static func advice(_ name: String) -> String? {
    request[name] ?? output[name] ?? access[name] ?? connection[name]
  }

  private static let method = "write the method before the URL: af PUT URL"
  private static let field = "write the field after the URL: Name:text"
  private static let data = "write data after the URL: name=text; --raw TEXT or @FILE is a whole body"
  private static let query = "write the query after the URL: name==text"
  private static let brackets = "brackets of the URL have no meaning, and are sent as %5B and %5D"

  private static let config = "default options are read from ~/.config/af/config"
  private static let status = "write --status for %{http_code}, --timing for the times, -h for the fields"

  private static let request: [String: String] = [
    "-X": method, "--request": method, "-H": field, "--header": field,
    "--data": data, "--data-raw": data, "--data-binary": data, "--data-urlencode": data, "--data-ascii": data,
    "-G": query, "--get": query, "--url-query": query,
    "-e": "write Referer:URL", "--referer": "write Referer:URL",
    "--user-agent": "write User-Agent:text", "--cookie": "write Cookie:name=value, or --cookie-jar FILE",
    "--head": "write af HEAD URL", "-T": "write @FILE", "--upload-file": "write @FILE",
    "-r": "write Range:bytes=0-99", "--range": "write Range:bytes=0-99",
    "-z": "write If-Modified-Since:date", "--time-cond": "write If-Modified-Since:date",
    "--form-string": "write -f URL name=text",
    "--boundary": "write Content-Type:multipart/form-data;boundary=text",
    "--url": "write the URL without an option", "--next": "run af again",
    "--default-scheme": "write the scheme before the host",
    "--proto-default": "write the scheme before the host",
    "--path-as-is": "the path is sent as it is written", "-g": brackets, "--globoff": brackets,
    "-K": config, "--config": config, "--expect100-timeout": "write Expect: to leave it out",
  ]

  private static let output: [String: String] = [
    "-i": "write -p hb", "--include": "write -p hb", "-D": "write -h", "--dump-header": "write -h",
    "-s": "write -q; for the -s of HTTPie, the colours are those of the terminal",
    "--silent": "write -q", "--show-error": "errors are always shown",
    "-O": "write -d", "--remote-name": "write -d", "-J": "write -d", "--remote-header-name": "write -d",
    "-C": "write -c -o FILE", "--continue-at": "write -c -o FILE",
    "-R": "the time of a file is that of its download",
    "--remote-time": "the time of a file is that of its download", "--output-dir": "write -o FOLDER/FILE",
    "--create-dirs": "make the folder first", "--no-clobber": "write -d, which never replaces a file",
    "--max-filesize": "pipe the body through head -c N",
    "--compressed": "responses are decoded", "--fail": "4xx and 5xx have an exit status of their own",
    "--fail-with-body": "4xx and 5xx have an exit status of their own",
    "-w": status, "--write-out": status, "--meta": "write --timing",
    "-S": "bodies are written as they come, and errors are always shown",
    "--stream": "bodies are written as they come", "-N": "bodies are written as they come",
    "--no-buffer": "bodies are written as they come", "-#": "write --progress",
    "--progress-bar": "write --progress", "--no-progress-meter": "write -q",
    "--trace": "write -v", "--trace-ascii": "write -v", "--debug": "write -v", "--traceback": "write -v",
    "--all": "write -v, which shows every hop", "-P": "write -v, which shows every hop",
    "--history-print": "write -v, which shows every hop",
    "--style": "the colours are those of the terminal", "--unsorted": "fields keep their order",
    "--sorted": "fields keep their order", "--format-options": "write --pretty HOW",
    "--response-charset": "pipe the body through iconv -f CHARSET",
    "--response-mime": "write --pretty HOW", "--libcurl": "write --curl", "--manual": "write --man",
  ]

  private static let access: [String: String] = [
    "-u": "write -a USER:PASS", "--user": "write -a USER:PASS", "--basic": "write -a USER:PASS",
    "--digest": "write -A digest -a USER:PASS", "--oauth2-bearer": "write --bearer TOKEN",
    "--anyauth": "write -A digest or -A basic", "--ntlm": "write -A digest or -A basic",
    "--negotiate": "write -A digest or -A basic", "--ignore-netrc": "it is read with -n alone",
    "--netrc-optional": "write -n if there is a ~/.netrc",
    "--junk-session-cookies": "remove their lines from the file of --cookie-jar",
    "--location-trusted": "credentials are for the first host alone",
  ]

  private static let connection: [String: String] = [
    "-L": "redirects are followed", "--location": "redirects are followed",
    "--max-redirs": "write --max-redirects N", "--post301": "write --no-follow, then the method again",
    "--post302": "write --no-follow, then the method again",
    "--cacert": "write --ca FILE", "--capath": "write --ca FILE", "-E": "write --cert FILE",
    "--cert-type": "PEM and .p12 files are recognised by their names",
    "--key": "write --cert-key FILE", "--pass": "write --cert-key-pass PASS",
    "--pinnedpubkey": "write --ca FILE with the certificate of the server",
    "--ssl": "TLS 1.2 and 1.3 are used", "--tlsv1.2": "TLS 1.2 and 1.3 are used",
    "--tlsv1.3": "TLS 1.2 and 1.3 are used", "--tls-max": "TLS 1.2 and 1.3 are used",
    "--ciphers": "the ciphers are those of the system's OpenSSL",
    "--tls13-ciphers": "the ciphers are those of the system's OpenSSL",
    "-x": "write --proxy URL; for the -x of HTTPie, --compress",
    "-U": "write --proxy http://USER:PASS@HOST:PORT",
    "--proxy-user": "write --proxy http://USER:PASS@HOST:PORT",
    "--proxy-digest": "write --proxy-anyauth", "--proxy-ntlm": "write --proxy-anyauth",
    "--proxy-negotiate": "write --proxy-anyauth", "--proxy-basic": "--proxy uses Basic by default",
    "--noproxy": "write --proxy none, or set the variable no_proxy",
    "--socks4": "write --proxy socks4://HOST:PORT", "--socks4a": "write --proxy socks4a://HOST:PORT",
    "--socks5": "write --proxy socks5://HOST:PORT", "--socks5-hostname": "write --proxy socks5h://HOST:PORT",
    "--proxytunnel": "https URLs use CONNECT", "--connect-to": "write --resolve HOST:PORT:ADDRESS",
    "--abstract-unix-socket": "write --unix-socket PATH",
    "-m": "write --max-time SECONDS; for the -m of HTTPie, --timing",
    "-Y": "write --timeout SECONDS", "--speed-limit": "write --timeout SECONDS",
    "-y": "write --timeout SECONDS", "--speed-time": "write --timeout SECONDS",
    "--interface": "the routes of the system select the interface",
    "--rate": "one request is sent; write --limit-rate RATE to limit its bytes in a second",
    "--retry-max-time": "write --retry N, under timeout(1)",
    "--retry-delay": "write --retry N; the delays double", "--retry-all-errors": "write --retry N",
    "--retry-connrefused": "write --retry N", "--http-version": "write --http1.1 or --http2",
    "-0": "write --http1.1", "--http1.0": "write --http1.1",
    "--http2-prior-knowledge": "write --http2", "--http3": "write --http2",
    "--max-headers": "heads have a limit of 256 KiB", "-Z": "run af once for each URL",
    "--parallel": "run af once for each URL",
  ]
}

/// The Levenshtein distance of two words: the smallest number of characters to add, remove or replace.
enum EditDistance {
  static func between(_ first: String, _ second: String) -> Int {
    let second = Array(second)
    var row = Array(0...second.count)
    for (i, letter) in first.enumerated() {
      var diagonal = row[0]
      row[0] = i + 1
      for (j, other) in second.enumerated() {
        let change = diagonal + (letter == other ? 0 : 1)
        diagonal = row[j + 1]
        row[j + 1] = min(change, row[j] + 1, row[j + 1] + 1)
      }
    }
    return row[second.count]
  }
}

/// Readers of the values of options.
enum OptionValue {
  static func setCredentials(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    // Also before a combining mark, with which the colon is one Character.
    let colon = text.utf8.firstIndex(of: UInt8(ascii: ":"))
    invocation.credentials = Invocation.Credentials(
      user: String(text[..<(colon ?? text.endIndex)]),
      password: colon.map { String(text[text.utf8.index(after: $0)...]) })
    // A token can have colons.
    invocation.typedCredentials = text
    if let type = invocation.authenticationBeforeToken.take() { invocation.authentication = type }
  }

  static func setAuthentication(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    guard let type = Invocation.Authentication(rawValue: text.lowercased()) else {
      throw UsageError("--auth-type needs basic, digest or bearer, not '\(text)'.")
    }
    invocation.authentication = type
    invocation.authenticationBeforeToken = nil
  }

  static func setToken(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    try setCredentials(&invocation, text)
    invocation.authenticationBeforeToken = invocation.authentication
    invocation.authentication = .bearer
  }

  static func setParts(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    var parts: Set<Invocation.Part> = []
    for letter in text {
      guard let part = Invocation.Part(rawValue: letter) else {
        throw UsageError("--print needs letters of HBhb, not '\(letter)'.")
      }
      parts.insert(part)
    }
    invocation.shown = .parts(parts)
  }

  static func setPrettiness(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    guard let prettiness = Invocation.Prettiness(rawValue: text) else {
      throw UsageError("--pretty needs all, colors, format or none, not '\(text)'.")
    }
    invocation.prettiness = prettiness
  }

  static func setSession(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    guard let first = text.utf8.first, first != UInt8(ascii: ".") || text.utf8.contains(UInt8(ascii: "/"))
    else {
      throw UsageError("--session needs a name, or a path with a '/', not '\(text)'.")
    }
    invocation.session = text
    invocation.isSessionReadOnly = false
  }

  static func setReadOnlySession(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    try setSession(&invocation, text)
    invocation.isSessionReadOnly = true
  }

  static func addAddress(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    let parts = text.split(separator: ":", maxSplits: 2).map(String.init)
    guard parts.count == 3, let port = UInt16(parts[1]), !parts[2].isEmpty else {
      throw UsageError("--resolve needs HOST:PORT:ADDRESS, such as example.com:443:127.0.0.1, not '\(text)'.")
    }
    let target = parts[2].trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
    invocation.addresses.append(Invocation.Address(host: parts[0], port: Int(port), target: target))
  }

  static func seconds(_ text: String, of name: String) throws(UsageError) -> Double {
    guard let seconds = Double(text), seconds > 0, seconds < 1e9 else {
      throw UsageError("\(name) needs a number of seconds above zero, such as 2.5, not '\(text)'.")
    }
    return seconds
  }

  /// Reads a number of bytes, with curl's suffixes for powers of 1024.
  static func setBandwidth(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    let power = text.last.flatMap { "kmg".firstIndex(of: Character($0.lowercased())) }
      .map { "kmg".distance(from: "kmg".startIndex, to: $0) + 1 }
    guard let number = Double(power == nil ? text : String(text.dropLast())),
      case let rate = number * pow(1024, Double(power ?? 0)), rate >= 1, rate < 1e15
    else {
      throw UsageError("--limit-rate needs bytes in a second, such as 50000, 200k or 1.5M, not '\(text)'.")
    }
    invocation.bandwidth = Int(rate)
  }

  static func setRetryLimit(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    guard let limit = Int(text), (0...1000).contains(limit) else {
      throw UsageError("--retry needs a number from 0 to 1000, not '\(text)'.")
    }
    invocation.retryLimit = limit
  }

  /// Reads a URL, or a scheme and the URL of its proxy as in HTTPie: `http:http://127.0.0.1:3128`. A URL alone, and
  /// `none`, replace earlier proxies of schemes.
  static func setProxy(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
    if parts.count == 2, ["http", "https"].contains(parts[0]), !parts[1].hasPrefix("//") {
      invocation.proxiesByScheme[parts[0]] = parts[1]
    } else if parts.count == 2, parts[0] == "all" {
      invocation.proxy = parts[1]
    } else {
      invocation.proxy = text
      invocation.proxiesByScheme = [:]
    }
  }

  static func setVerification(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    switch text.lowercased() {
    case "yes", "true": invocation.verifiesServer = true
    case "no", "false": invocation.verifiesServer = false
    default: setTrust(&invocation, text)
    }
  }

  /// Trusts the authorities in a file. Certificates are verified even if an earlier option has said the opposite.
  static func setTrust(_ invocation: inout Invocation, _ path: String) {
    invocation.trustFile = LocalFile.expanded(path)
    invocation.verifiesServer = true
  }

  static func setRedirectLimit(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    guard let limit = Int(text), (0...1000).contains(limit) else {
      throw UsageError("--max-redirects needs a number from 0 to 1000, not '\(text)'.")
    }
    invocation.redirects = .follow(limit: limit)
  }

  static func setRawBody(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    if text == "-" || text == "@-" {
      invocation.rawBody = .standardInput
    } else if text.first == "@" {
      guard text.count > 1 else { throw UsageError("--raw @ needs the path of a file: --raw @FILE.") }
      invocation.rawBody = .file(path: String(text.dropFirst()))
    } else {
      invocation.rawBody = .text(text)
    }
  }

  static func setSegments(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    guard let count = Int(text), (1...64).contains(count) else {
      throw UsageError("--segments needs a number from 1 to 64, not '\(text)'.")
    }
    invocation.segments = count
  }

  static func setImageSize(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    let sides = text.lowercased().split(separator: "x", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
    guard sides.allSatisfy({ (1...100_000).contains($0) }), sides.count <= 2 else {
      throw UsageError("--size needs a number of pixels, or two as in 400x300, not '\(text)'.")
    }
    invocation.imageSize =
      sides.count == 2 ? .filling(width: sides[0], height: sides[1]) : .longestSide(sides[0])
  }

  static func setChecksum(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    let parts = text.split(separator: ":", maxSplits: 1).map { $0.lowercased() }
    let digits = parts.last ?? ""
    guard parts.count == 2, digits.allSatisfy(\.isHexDigit) else {
      throw UsageError("--checksum needs sha256:HEX or sha512:HEX, not '\(text)'.")
    }
    switch (parts[0], digits.count) {
    case ("sha256", 64): invocation.checksum = .sha256(digits)
    case ("sha512", 128): invocation.checksum = .sha512(digits)
    default: throw UsageError("--checksum needs 64 digits after sha256:, or 128 after sha512:.")
    }
  }

  static func setShell(_ invocation: inout Invocation, _ text: String) throws(UsageError) {
    guard let shell = Completions.Shell(rawValue: text) else {
      throw UsageError("--completion needs bash, zsh or fish, not '\(text)'.")
    }
    invocation.completionShell = shell
  }
}
