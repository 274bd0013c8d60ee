package import Alamofire
import Foundation

/// The equivalent command of curl. Every word is quoted for the shell, so that it cannot interpret a value.
package struct CurlCommand {
  private let invocation: Invocation
  private let request: URLRequest
  private let headers: HTTPHeaders
  private let cookies: [HTTPCookie]

  /// Makes the command that sends the request of an invocation.
  ///
  /// - Parameters:
  ///   - request: The request that is sent.
  ///   - headers: The fields that the session adds.
  ///   - cookies: The cookies of a named session.
  package init(
    _ invocation: Invocation, request: URLRequest, headers: HTTPHeaders, cookies: [HTTPCookie] = []
  ) {
    self.invocation = invocation
    self.cookies = cookies
    self.request = request
    self.headers = headers
  }

  /// The command, a part a line.
  package var text: String {
    let parts = [["curl"] + method] + options + fields + body + [form(of: request.url?.absoluteString ?? "")]
    return parts.filter { !$0.isEmpty }.map { $0.joined(separator: " ") }.joined(separator: " \\\n  ") + "\n"
  }

  /// The differences between the two requests, each as a sentence.
  package var notes: [String] {
    var notes: [String] = []
    if invocation.cookieJar != nil, request.isTrace {
      notes.append("curl would send stored cookies with TRACE; --cookie-jar is left out.")
    } else if let file = invocation.cookieJar, file.utf8.contains(UInt8(ascii: "=")) {
      notes.append("curl takes '\(file)' for a cookie, because of the '='; rename the file.")
    }
    if invocation.action.isImage {
      notes.append("curl does not read images; the command gets the file as the server sends it.")
    }
    if invocation.segments != nil {
      notes.append("curl uses one connection for a file; --segments is left out.")
    }
    if invocation.checksum != nil { notes.append("curl does not verify files; --checksum is left out.") }
    let others = invocation.proxiesByScheme.keys.filter { $0 != proxyScheme }.sorted()
    if !others.isEmpty {
      notes.append("curl has one proxy for all redirects; the one for \(others.joined()) URLs is left out.")
    }
    if isStreamed, case .follow = invocation.redirects {
      notes.append("curl may repeat the method after a redirect, and cannot send the input again.")
    }
    return notes + fileNotes + formNotes
  }

  /// The differences in what is received.
  private var fileNotes: [String] {
    var notes: [String] = []
    if request.httpMethod == "HEAD", hasBody {
      notes.append("curl waits for a body in the response to a HEAD that has one, and may fail.")
    }
    if invocation.output != nil, case .show = invocation.redirects {
      notes.append("curl also saves the body of a redirect.")
    }
    if invocation.isContinued {
      notes.append("curl reads no journal: it keeps all bytes of the file, and may join two versions of it.")
    }
    return notes
  }

  /// The differences between the two forms.
  private var formNotes: [String] {
    guard hasForm else { return [] }
    var notes: [String] = []
    if let type = formType {
      if !type.lowercased().hasPrefix("multipart/form-data") {
        notes.append("curl writes other heads of parts into a body that is no multipart/form-data.")
      }
    } else if invocation.typedFields.single["Content-Type"] != nil
      || invocation.omittedFields.contains("content-type")
    {
      notes.append("curl writes the Content-Type of a form, with a boundary, on its own; yours is left out.")
    }
    for case .some(let name) in invocation.items.map(Self.partName)
    where name.utf8.contains(UInt8(ascii: "=")) {
      notes.append("curl ends the name '\(name)' at its first '='.")
    }
    return notes
  }

  private static func partName(_ item: RequestItem) -> String? {
    switch item {
    case .string(let name, _), .stringFile(let name, _): name
    case .file(let file): file.name
    default: nil
    }
  }

  /// Returns the URL, after options without which curl would change it.
  private func form(of url: String) -> [String] {
    var words: [String] = []
    let path = url.prefix { $0 != "?" && $0 != "#" }.lowercased().replacingOccurrences(of: "%2e", with: ".")
    let segments = path.split(separator: "/", omittingEmptySubsequences: false)
    if segments.contains(".") || segments.contains("..") { words.append("--path-as-is") }
    if url.utf8.contains(where: { "[]{}".utf8.contains($0) }) { words.append("--globoff") }
    return words + [Self.quoted(url)]
  }

  /// Redirects may change the method unless `-X` forces one, so it is left out where curl knows it. That is PUT for an
  /// upload, and POST for other bodies.
  private var method: [String] {
    switch (request.httpMethod ?? "GET", hasBody) {
    case ("PUT", _) where isStreamed: []
    case (let method, _) where isStreamed: ["-X", Self.quoted(method)]
    case ("GET", false), ("POST", _): []
    case ("HEAD", false): ["--head"]
    case (let method, _): ["-X", Self.quoted(method)]
    }
  }

  /// Whether a body is sent. A form without items has one, too.
  private var hasBody: Bool { invocation.hasBody || request.httpBody != nil }

  /// Whether there are parts of a form. Without any, the request has the body of the form.
  private var hasForm: Bool { invocation.hasMultipartForm && invocation.hasDataItems }

  /// Whether the standard input is sent as it comes. curl reads all of it first, unless it uploads it.
  private var isStreamed: Bool { invocation.isChunked && invocation.rawBody == .standardInput }

  private var options: [[String]] {
    var options: [[String]] = []
    switch invocation.redirects {
    case .follow(let limit): options.append(["--location", "--max-redirs", "\(limit ?? 20)"])
    case .show: break
    }
    if let credentials = invocation.credentials, !hasTypedAuthorization {
      switch invocation.authentication {
      // curl would answer the challenge.
      case .digest where request.isTrace: break
      case .basic, .digest:
        if invocation.authentication == .digest { options.append(["--digest"]) }
        options.append(["--user", Self.quoted("\(credentials.user):\(credentials.password ?? "")")])
      case .bearer: options.append(["--oauth2-bearer", Self.quoted(credentials.user)])
      }
    }
    if let timeout = invocation.timeout {
      options.append(["--speed-limit", "1", "--speed-time", "\(max(1, Int(timeout.rounded(.up))))"])
    }
    if let seconds = invocation.totalTimeout { options.append(["--max-time", "\(seconds)"]) }
    if let rate = invocation.bandwidth { options.append(["--limit-rate", "\(rate)"]) }
    if let limit = invocation.retryLimit, isRepeatable { options.append(["--retry", "\(limit)"]) }
    if let seconds = invocation.connectTimeout { options.append(["--connect-timeout", "\(seconds)"]) }
    switch invocation.addressFamily {
    case .any: break
    case .ipv4: options.append(["--ipv4"])
    case .ipv6: options.append(["--ipv6"])
    }
    if invocation.showsStatus { options.append(["--write-out", "'%{http_code}\\n'"]) }
    if let file = invocation.trustFile { options.append(["--cacert", Self.quoted(file)]) }
    return options + connection + files
  }

  /// Whether a typed field is sent in place of the credentials.
  private var hasTypedAuthorization: Bool { invocation.typedFields.single["Authorization"] != nil }

  /// Whether `af` sends the request again. curl would repeat every method.
  private var isRepeatable: Bool {
    guard let method = request.method, invocation.rawBody != .standardInput else { return false }
    return RetryPolicy.defaultRetryableHTTPMethods.contains(method)
  }

  /// The scheme of the URL, as `--proxy` names it.
  private var proxyScheme: String { request.url?.scheme?.lowercased() == "https" ? "https" : "http" }

  private var connection: [[String]] {
    var options: [[String]] = []
    if !invocation.verifiesServer { options.append(["--insecure"]) }
    if let file = invocation.certificate {
      let isArchive = ["p12", "pfx"].contains(URL(fileURLWithPath: file).pathExtension.lowercased())
      // A colon ends the path, and a backslash escapes it.
      let path = ShellWord.escaping(["\\", ":"], in: file)
      options.append((isArchive ? ["--cert-type", "P12"] : []) + ["--cert", Self.quoted(path)])
    }
    if let file = invocation.certificateKey { options.append(["--key", Self.quoted(file)]) }
    if let text = invocation.certificatePassphrase { options.append(["--pass", Self.quoted(text)]) }
    // curl has one proxy for all schemes.
    if let proxy = invocation.proxiesByScheme[proxyScheme] ?? invocation.proxy {
      options.append(proxy == "none" ? ["--noproxy", "'*'"] : ["--proxy", Self.quoted(proxy)])
      if invocation.negotiatesProxyLogin, proxy != "none" { options.append(["--proxy-anyauth"]) }
    }
    for address in invocation.addresses {
      options.append(["--resolve", Self.quoted("\(address.host):\(address.port):\(address.target)")])
    }
    if let path = invocation.unixSocket { options.append(["--unix-socket", Self.quoted(path)]) }
    if let file = invocation.netrcFile, !request.isTrace {
      options.append(["--netrc-file", Self.quoted(LocalFile.expanded(file))])
    }
    if let file = invocation.cookieJar, !request.isTrace {
      options.append(["--cookie", Self.quoted(file), "--cookie-jar", Self.quoted(file)])
    }
    return options
  }

  private var files: [[String]] {
    var options: [[String]] = []
    switch invocation.output {
    // Without `--fail`, the page of an error would replace the file.
    case .file(let path): options += [["--fail"], ["--output", Self.quoted(path)]]
    case .suggestedName:
      options += [["--fail"], ["--remote-name", "--remote-header-name", "--no-clobber"]]
    case nil where invocation.showsStatus && invocation.shown == .automatic:
      options.append(["--output", "/dev/null"])
    case nil: break
    }
    if invocation.isContinued { options.append(["--continue-at", "-"]) }
    if invocation.isHTTP1Only { options.append(["--http1.1"]) }
    if invocation.usesHTTP2 { options.append(["--http2-prior-knowledge"]) }
    return options
  }

  private var fields: [[String]] {
    var all = headers
    for header in request.headers.sorted() { all.update(header) }
    // curl leaves out a field that it would add if only its name is given. Without a field, both programs send the same
    // `Accept` (RFC 9110 §12.5.1).
    let omitted = invocation.omittedFields
      .filter { $0 != "accept" && !(hasForm && $0 == "content-type") }
      .map { ["-H", Self.quoted("\($0):")] }
    let pairs = cookies.map { "\($0.name)=\($0.value)" }.joined(separator: "; ")
    return omitted + (pairs.isEmpty ? [] : [["--cookie", Self.quoted(pairs)]])
      + (Array(all) + invocation.typedFields.repeated).compactMap { header in
        switch header.name.lowercased() {
        case "accept-encoding": Self.coding(header)
        case "content-type" where hasForm:
          formType.map { ["-H", Self.quoted("Content-Type: \($0)")] }
        case "authorization" where invocation.credentials != nil && !hasTypedAuthorization: nil
        // curl leaves out a field without a value unless it ends in a semicolon.
        default:
          ["-H", Self.quoted(header.value.isEmpty ? "\(header.name);" : "\(header.name): \(header.value)")]
        }
      }
  }

  /// Returns the options for codings that curl decodes as `af` does.
  private static func coding(_ header: HTTPHeader) -> [String] {
    if header == .defaultAcceptEncoding { return ["--compressed"] }
    let field = ["-H", quoted(header.description)]
    return header.value.lowercased() == "identity" ? field : ["--compressed"] + field
  }

  private var body: [[String]] {
    switch invocation.rawBody {
    case .standardInput where isStreamed:
      // For an upload of unknown length, curl waits for a status of 100.
      let omitted = request.headers["Expect"] == nil ? [["-H", "Expect:"]] : []
      return omitted + [["--upload-file", "-"]]
    case .standardInput: return [["--data-binary", "@-"]]
    case .file(let path):
      let path = LocalFile.expanded(path)
      // curl reads the standard input for `-`.
      return [["--data-binary", Self.quoted("@\(path == "-" ? "./-" : path)")]]
    case .text, nil: break
    }
    if hasForm { return form }
    guard let body = request.httpBody else {
      // `af` sends the length of an empty body, too (RFC 9110 §8.6).
      guard ["POST", "PUT", "PATCH"].contains(request.httpMethod) else { return [] }
      return [["--data-raw", "''"]]
        + (request.headers["Content-Type"] == nil ? [["-H", "Content-Type:"]] : [])
    }
    return [["--data-raw", Self.quoted(String(decoding: body, as: UTF8.self))]]
  }

  /// The typed type of a form, to which curl adds its own boundary; `nil` if curl cannot send the typed one.
  private var formType: String? {
    invocation.typedFields.single["Content-Type"].flatMap { type in
      type.isEmpty || (try? MultipartType.boundary(of: type)) != nil ? nil : type
    }
  }

  /// The parts of a multipart form. curl writes its own content type, with its own boundary.
  private var form: [[String]] {
    invocation.items.compactMap { item in
      switch item {
      case .string(let name, let value): return ["--form-string", Self.quoted("\(name)=\(value)")]
      case .stringFile(let name, let path):
        return ["--form", Self.quoted("\(name)=<\(Self.formWord(LocalFile.expanded(path)))")]
      case .file(let file):
        let path = LocalFile.expanded(file.path)
        let name = file.fileName ?? URL(fileURLWithPath: path).lastPathComponent
        var text = "\(file.name)=@\(Self.formWord(path));type=\(file.type ?? LocalFile.mediaType(name))"
        if file.fileName != nil { text += ";filename=\(Self.formWord(name))" }
        return ["--form", Self.quoted(text)]
      default: return nil
      }
    }
  }

  /// Returns a word of `--form` in quotes, so that a semicolon or a comma does not end it.
  private static func formWord(_ text: String) -> String {
    "\"" + ShellWord.escaping(["\\", "\""], in: text) + "\""
  }

  /// Returns a word that POSIX shells read back unchanged.
  package static func quoted(_ word: String) -> String {
    let plain = word.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
      default: "-._/:@%+=,".utf8.contains(byte)
      }
    }
    // zsh replaces `=name` by a path, and a shell `~` by the home folder.
    if plain, let first = word.first, first != "=", first != "~" { return word }
    return ShellWord.literal(word)
  }
}

extension URLRequest {
  /// Whether its response repeats it. The library then sends neither stored cookies nor known credentials, but only
  /// typed fields (RFC 9110 §9.3.8).
  var isTrace: Bool { httpMethod == "TRACE" }
}
