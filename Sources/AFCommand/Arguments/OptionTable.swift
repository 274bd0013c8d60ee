import Alamofire

extension Option {
  /// All options, in the order of the help. Help, manual page and completions are generated from this table.
  static let all: [Option] =
    bodyOptions + outputOptions + fileOptions + accessOptions + connectionOptions
    + commandOptions

  private static let bodyOptions: [Option] = [
    Option(
      "--json -j", .body, "send data items as a JSON object (default)", effect: .flag { $0.bodyKind = .json }),
    Option(
      "--form -f", .body, "send data items as a form, with files as multipart",
      effect: .flag { $0.bodyKind = .form }),
    Option(
      "--multipart", .body, "send data items as multipart/form-data",
      effect: .flag { $0.bodyKind = .multipart }),
    Option(
      "--raw", .body, "send TEXT; @FILE sends a file, - standard input",
      effect: .value("TEXT", OptionValue.setRawBody)),
    Option(
      "--compress", .body, "compress the body (deflate), if it becomes smaller",
      effect: .flag { $0.isCompressed = true }),
    Option(
      "--chunked", .body, "send standard input as it comes, in chunks", effect: .flag { $0.isChunked = true }),
    Option(
      "--ignore-stdin -I", .body, "do not read a body from standard input",
      effect: .flag { $0.ignoresInput = true }),
  ]

  private static let outputOptions: [Option] = [
    Option(
      "--headers -h", .output, "show only the headers of the response", effect: .flag { $0.shown = .headers }),
    Option(
      "--body -b", .output, "show only its body; the default in a pipe", effect: .flag { $0.shown = .body }),
    Option(
      "--print -p", .output, "H, B: head and body of request; h, b: of response",
      effect: .value("HBhb", OptionValue.setParts)),
    Option(
      "--verbose -v", .output, "show requests and redirects too, secrets masked",
      effect: .flag { $0.shown = .everything }),
    Option(
      "--status", .output, "write the status code alone, or after -b, -h or -v",
      effect: .flag { $0.showsStatus = true }),
    Option(
      "--quiet -q", .output, "write nothing but errors, and files of -o and -d",
      effect: .flag {
        $0.isQuiet = true
        $0.shown = .parts([])
      }),
    Option(
      "--progress", .output, "show progress without a terminal, too",
      effect: .flag { $0.isProgressForced = true }),
    Option(
      "--offline", .output, "show the request, its secrets masked; send nothing",
      effect: .flag { $0.isOffline = true }),
    Option(
      "--curl", .output, "print the curl command, with secrets; send nothing",
      effect: .flag { $0.printsCurl = true }),
    Option(
      "--pretty", .output, "all, colors, format or none (on a terminal: all)",
      completion: .words(Invocation.Prettiness.allCases.map(\.rawValue)),
      effect: .value("HOW", OptionValue.setPrettiness)),
    Option(
      "--control-codes", .output, "let a terminal obey escape sequences of bodies",
      effect: .flag { $0.passesControlCodes = true }),
    Option("--no-color", .output, "no colours, as with NO_COLOR", effect: .flag { $0.hasColours = false }),
    Option(
      "--pager", .output, "show the output of a terminal in $PAGER", effect: .flag { $0.isPaged = true }),
    Option(
      "--timing", .output, "show on standard error where the time went",
      effect: .flag { $0.showsTiming = true }),
    Option(
      "--har", .output, "record the requests in a HAR file, secrets masked", completion: .files,
      effect: .value("FILE") { $0.archive = LocalFile.expanded($1) }),
    Option(
      "--check-status", .output, "exit with 3, 4, 5 for 3xx, 4xx, 5xx (default)",
      effect: .flag { $0.checksStatus = true }),
    Option(
      "--no-check-status", .output, "exit with 0 whatever the response",
      effect: .flag { $0.checksStatus = false }),
  ]

  private static let fileOptions: [Option] = [
    Option(
      "--output -o", .files, "write the body to FILE; - is the standard output", completion: .files,
      effect: .value("FILE") {
        $0.output = $1 == "-" ? nil : .file(LocalFile.expanded($1))
        $0.isOutputPlain = $1 == "-"
      }),
    Option(
      "--download -d", .files, "save the body under the name that the server suggests",
      effect: .flag { $0.isDownload = true }),
    Option(
      "--continue -c", .files, "with -o, append what is missing of a partial FILE",
      effect: .flag { $0.isContinued = true }),
    Option(
      "--segments", .files, "with -o or -d, use N connections at a time",
      effect: .value("N", OptionValue.setSegments)),
    Option(
      "--checksum", .files, "with -o or -d, verify sha256:HEX or sha512:HEX",
      effect: .value("HASH", OptionValue.setChecksum)),
    Option(
      "--size", .files, "of image resize: 400 (longer side), 400x300 (to fill)",
      effect: .value("SIZE", OptionValue.setImageSize)),
  ]

  private static let accessOptions: [Option] = [
    Option(
      "--auth -a", .access, "credentials; asks for a password that is missing", secret: .whole,
      effect: .value("USER:PASS", OptionValue.setCredentials)),
    Option(
      "--auth-type -A", .access, "basic (default), digest, or bearer for -a TOKEN",
      completion: .words(Invocation.Authentication.allCases.map(\.rawValue)),
      effect: .value("TYPE", OptionValue.setAuthentication)),
    Option(
      "--bearer", .access, "a bearer token", secret: .whole, effect: .value("TOKEN", OptionValue.setToken)),
    Option(
      "--netrc -n", .access, "take credentials from ~/.netrc",
      effect: .flag { $0.netrcFile = LocalFile.expanded("~/.netrc") }),
    Option(
      "--netrc-file", .access, "take credentials from this file", completion: .files,
      effect: .value("FILE") { $0.netrcFile = LocalFile.expanded($1) }),
    Option(
      "--session", .access, "keep headers, credentials and cookies for later",
      completion: .sessions,
      effect: .value("NAME", OptionValue.setSession)),
    Option(
      "--session-read-only", .access, "use a session, and do not change it", completion: .sessions,
      effect: .value("NAME", OptionValue.setReadOnlySession)),
    Option(
      "--cookie-jar", .access, "keep cookies in this file, in curl's format", completion: .files,
      effect: .value("FILE") { $0.cookieJar = LocalFile.expanded($1) }),
  ]

  private static let connectionOptions: [Option] = [
    Option(
      "--timeout", .connection, "give up after this time without a byte (default 60)",
      effect: .value("SECONDS") { (invocation, text) throws(UsageError) in
        invocation.timeout = try OptionValue.seconds(text, of: "--timeout")
      }),
    Option(
      "--max-time", .connection, "limit of one attempt, connection or segment",
      effect: .value("SECONDS") { (invocation, text) throws(UsageError) in
        invocation.totalTimeout = try OptionValue.seconds(text, of: "--max-time")
      }),
    Option(
      "--connect-timeout", .connection, "give up if connecting takes longer",
      effect: .value("SECONDS") { (invocation, text) throws(UsageError) in
        invocation.connectTimeout = try OptionValue.seconds(text, of: "--connect-timeout")
      }),
    Option(
      "--limit-rate", .connection, "bytes in a second, such as 200k or 1.5M",
      effect: .value("RATE", OptionValue.setBandwidth)),
    Option(
      "--retry", .connection, "retry N times after a temporary failure; not POST",
      effect: .value("N", OptionValue.setRetryLimit)),
    Option(
      "--max-redirects", .connection, "follow at most N redirects (default 20)",
      effect: .value("N", OptionValue.setRedirectLimit)),
    Option(
      "--follow -F", .connection, "follow redirects (default)",
      effect: .flag { if $0.redirects == .show { $0.redirects = .follow(limit: nil) } }),
    Option(
      "--no-follow", .connection, "show a redirect, do not follow it", effect: .flag { $0.redirects = .show }),
    Option(
      "--ca", .connection, "trust only the authorities in this PEM file", completion: .files,
      effect: .value("FILE", OptionValue.setTrust)),
    Option(
      "--verify", .connection, "as in HTTPie: no is -k, a file is that of --ca", completion: .files,
      effect: .value("HOW", OptionValue.setVerification)),
    Option(
      "--insecure -k", .connection, "accept every server certificate",
      effect: .flag { $0.verifiesServer = false }),
    Option(
      "--cert", .connection, "the client's certificate: PEM, or .p12 with its key", completion: .files,
      effect: .value("FILE") { $0.certificate = LocalFile.expanded($1) }),
    Option(
      "--cert-key", .connection, "the key, if it is not in the file of --cert", completion: .files,
      effect: .value("FILE") { $0.certificateKey = LocalFile.expanded($1) }),
    Option(
      "--cert-key-pass", .connection, "its passphrase; asked for if needed", secret: .whole,
      effect: .value("PASS") { $0.certificatePassphrase = $1 }),
    Option(
      "--proxy", .connection, "an http, https or socks URL; none for no proxy", secret: .userInformation,
      effect: .value("URL", OptionValue.setProxy)),
    Option(
      "--proxy-anyauth", .connection, "answer the proxy with Digest or NTLM if it asks",
      effect: .flag { $0.negotiatesProxyLogin = true }),
    Option(
      "--resolve", .connection, "the address of this host",
      effect: .value("HOST:PORT:ADDRESS", OptionValue.addAddress)),
    Option(
      "--unix-socket", .connection, "connect through this socket", completion: .files,
      effect: .value("PATH") { $0.unixSocket = LocalFile.expanded($1) }),
    Option(
      "--ipv4 -4", .connection, "connect to IPv4 addresses only",
      effect: .flag { $0.addressFamily = .ipv4 }),
    Option(
      "--ipv6 -6", .connection, "connect to IPv6 addresses only",
      effect: .flag { $0.addressFamily = .ipv6 }),
    Option("--http1.1", .connection, "never use HTTP/2", effect: .flag { $0.isHTTP1Only = true }),
    Option("--http2", .connection, "use HTTP/2 for http URLs too", effect: .flag { $0.usesHTTP2 = true }),
  ]

  private static let commandOptions: [Option] = [
    Option(
      "--no-config", .command, "do not read the file of default options",
      effect: .flag { _ in }),
    Option("--help", .command, "show this text", effect: .text(.help)),
    Option("--version", .command, "show the version", effect: .text(.version)),
    Option("--man", .command, "print the manual page", effect: .text(.manual)),
    Option(
      "--completion", .command, "print the completions of bash, zsh or fish",
      completion: .words(Completions.Shell.allCases.map(\.rawValue)),
      effect: .value("SHELL", OptionValue.setShell)),
  ]
}
