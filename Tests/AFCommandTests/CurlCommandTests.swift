import AFCommand
import ChildProcesses
import Foundation
import HTTPTestServer
import Testing

/// The printed commands of curl: a shell runs them, and the server compares their requests with the requests of `af`.
@Suite(.timeLimit(.minutes(5)), .enabled(if: Programs.isInstalled("curl"))) struct CurlCommandTests {
  private let folder: Folder

  init() throws { folder = try Folder() }

  /// A request without what two programs may do differently: the codings that they decode, and boundaries.
  private struct Sent: Equatable, CustomStringConvertible {
    let start: String
    let fields: [String]
    let body: String

    init(_ request: RecordedRequest) {
      start = "\(request.method) \(request.target)"
      let boundary = request.header("Content-Type").flatMap { type in
        type.range(of: "boundary=").map { String(type[$0.upperBound...]) }
      }
      // The boundaries of the two programs differ in their lengths.
      let omitted = boundary == nil ? ["accept-encoding"] : ["accept-encoding", "content-length"]
      func neutral(_ text: String) -> String {
        boundary.map { text.replacingOccurrences(of: $0, with: "BOUNDARY") } ?? text
      }
      fields = request.headers.filter { !omitted.contains($0.name.lowercased()) }
        .map { "\($0.name.lowercased()): \(neutral($0.value))" }.sorted()
      body = neutral(request.bodyText)
    }

    var description: String { ([start] + fields + [body]).joined(separator: "\n") }
  }

  static let values = [
    "plain", "", " ", "a b", "'", "''", "\"", "\\", "\\\\", "$HOME", "`id`", "$(id)", "!x", "a\nb", "*", "?",
    "~", "~/x",
    "#x", "a;b", "a&b", "a|b", "<x", ">x", "@x", "=x", "-x", "--help", "%0a", "%{http_code}", "{a,b}",
    "[1-3]", "[]", "ü€😀",
    "\t", "a=b", "a:b", "'\"'\"'", "\\'", "\\n", "^x", "\u{202E}x",
    // Quotation marks that are no Characters of their own.
    "x'\u{301};exit 9;'\u{301}", "\u{600}'", "x\"\u{301}", "x\\\u{301}", "e\u{301}",
  ]

  private func command(_ words: [String]) async -> String {
    let run = await Terminal.pipe.run(["--curl"] + words)
    #expect(run.status == .success, "\(words): \(run.error)")
    #expect(run.error.isEmpty, "\(words): \(run.error)")
    return run.output
  }

  /// Sends the request of `af` and the request of the command that it prints, and compares them.
  private func compare(_ words: [String], path: String = "/anything") async throws {
    let server = try HTTPTestServer()
    let arguments = words.map { $0.replacingOccurrences(of: "{url}", with: server.url(path)) }
    _ = await Terminal.pipe.run(arguments)
    let text = await command(arguments)
    let shell = try await ChildRun([
      "sh", "-c", text.replacingOccurrences(of: "curl ", with: "curl -sS ", options: .anchored),
    ])
    #expect(shell.status == 0, "\(text)\n\(shell.complaints)")
    let requests = server.recordedRequests.map { Sent($0) }
    try #require(requests.count == 2, "\(text)")
    #expect(requests[0] == requests[1], "\(text)")
  }

  /// Returns a text as the name of an item.
  private func escaped(_ text: String) -> String {
    text.map { ":=@\\".contains($0) ? "\\\($0)" : String($0) }.joined()
  }

  /// Returns a text as the value of an item. Without the backslash, the separator would be another one.
  private func kept(_ text: String) -> String {
    text.first.map { "=@".contains($0) } == true ? "\\\(text)" : text
  }

  @Test("Values of every part of a request reach the server as af sends them", arguments: values)
  func requestParts(value: String) async throws {
    try await compare(["POST", "{url}", "--raw=\(value.hasPrefix("@") ? " " + value : value)"])
    try await compare(["-a", "user:\(value)", "{url}"])
    try await compare(["-A", "bearer", "-a", "t\(value.replacingOccurrences(of: "\n", with: ""))", "{url}"])
    let name = escaped(value)
    let value = kept(value)
    try await compare(["{url}", "q==\(value)", "n\(name)q==x"])
    try await compare(["{url}", "name=\(value)"])
    try await compare(["-f", "{url}", "name=\(value)"])
    if !value.contains("\n") { try await compare(["{url}", "X-A:\(value)", "X-A:second"]) }
  }

  @Test("Names, types and contents of a multipart form are the same", arguments: values)
  func forms(value: String) async throws {
    try await compare(["--multipart", "{url}", "name=\(kept(value))"])
    // curl has no way to write a name with `=`, and its note says so. Its line breaks in names differ.
    if !value.contains(where: { "=\n\\\t".contains($0) }) {
      try await compare(["--multipart", "{url}", "a\(escaped(value))=x"])
    }
    // The library escapes a backslash and a tab in the name of a file, and curl does not.
    guard !value.isEmpty, !value.contains(where: { "/\n\\\t".contains($0) }) else { return }
    let file = try folder.file("f\(value)", "content")
    try await compare(["-f", "{url}", "up@\(file)"])
    try await compare(["--multipart", "{url}", "text=@\(file)"])
    try await compare(["{url}", "@\(file)"])
    if !value.contains(";") {
      try await compare(["-f", "{url}", "up@\(file);type=text/x;filename=g\(value)"])
    }
  }

  @Test(
    "The path is sent as typed",
    arguments: ["/a/../b", "/a/./b", "/a/%2e%2E/b", "/..", "/a//b", "/a/.", "/a%20b", "/.x/..y"])
  func paths(path: String) async throws {
    try await compare(["{url}"], path: path)
  }

  @Test(
    "Methods, bodies and options give the same request",
    arguments: [
      ["POST", "{url}"], ["PUT", "{url}"], ["PATCH", "{url}"], ["DELETE", "{url}"], ["OPTIONS", "{url}"],
      ["M-SEARCH", "{url}"],
      ["GET", "{url}", "a=b"], ["{url}", "User-Agent:", "Accept:"], ["{url}", "User-Agent;", "X-A;"],
      ["{url}", "a=b", "Content-Type:"],
      ["-4", "{url}"], ["--http1.1", "{url}"], ["{url}", "Cookie:a=1", "Cookie:b=2"],
      ["{url}", "Accept-Encoding:gzip"],
      ["--no-follow", "{url}"], ["--max-time", "30", "--timeout", "20", "{url}"], ["--status", "{url}"],
      ["-f", "{url}", "a=1", "b=2"], ["--multipart", "POST", "{url}"], ["--multipart", "{url}"],
      ["--multipart", "PUT", "{url}", "Content-Type:multipart/mixed"],
      ["--multipart", "{url}", "a=1", "Content-Type:multipart/form-data; charset=utf-8"],
    ])
  func methods(words: [String]) async throws { try await compare(words) }

  @Test(
    "A path with quotes, backslashes and separators names the same file",
    arguments: ["\\", "\\\"", "\"", ";x", ",", "\\;"])
  func pathsOfFiles(name: String) async throws {
    let path = folder.path("d\(name)d")
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    let file = try folder.file("d\(name)d/f.txt", "content")
    try await compare(["-f", "{url}", "up@\(file)"])
    try await compare(["--multipart", "{url}", "text=@\(file)"])
  }

  @Test("Standard input is sent in chunks with --chunked", arguments: ["POST", "PUT"])
  func chunkedInput(method: String) async throws {
    let server = try HTTPTestServer()
    let words = ["--no-follow", "--chunked", method, server.url("/anything"), "@-"]
    _ = await Terminal(isOutputTerminal: false, input: "typed").run(words)
    let text = await command(words)
    let input = URL(fileURLWithPath: try folder.file("input", "typed"))
    let shell = try await ChildRun(
      ["sh", "-c", text.replacingOccurrences(of: "curl ", with: "curl -sS ", options: .anchored)],
      input: input)
    #expect(shell.status == 0, "\(text)\n\(shell.complaints)")
    let requests = server.recordedRequests
    try #require(requests.count == 2, "\(text)")
    #expect(requests.allSatisfy { $0.isChunked && $0.bodyText == "typed" }, "\(text)")
    #expect(Sent(requests[0]) == Sent(requests[1]), "\(text)")
    let following = await Terminal.pipe.run(["--curl"] + words.dropFirst())
    #expect(following.error.contains("cannot send the input again"), "\(following.error)")
  }

  @Test("The cookies and the fields of a session are in the command")
  func session() async throws {
    let server = try HTTPTestServer()
    server.enqueue(Reply.text("x").with(header: "Set-Cookie", value: "a=\"1 $HOME'\"; Path=/"))
    let session = folder.path("s.json")
    _ = await Terminal.pipe.run("--session", session, server.url("/login"), "X-A:1")
    let words = ["--session-read-only", session, server.url("/get")]
    _ = await Terminal.pipe.run(words)
    let text = await command(words)
    #expect(try await ChildRun(["sh", "-c", text]).status == 0)
    let requests = server.recordedRequests.dropFirst().map { Sent($0) }
    #expect(requests.count == 2 && requests.first == requests.last, "\(text)")
    #expect(requests.first?.fields.contains { $0.hasPrefix("cookie: a=") } == true)
  }

  @Test(
    "A typed Authorization field is in the command, in place of the credentials",
    arguments: [["-a", "ann:planted"], ["--bearer", "planted"], ["-A", "digest", "-a", "ann:planted"]])
  func typedAuthorization(credentials: [String]) async throws {
    try await compare(credentials + ["{url}", "Authorization:Bearer typed"])
    let server = try HTTPTestServer()
    let session = ["--session", folder.path("s.json"), server.url("/get")]
    _ = await Terminal.pipe.run(session + credentials)
    let text = await command(session + ["Authorization:Bearer typed"])
    #expect(text.contains("-H 'Authorization: Bearer typed'") && !text.contains("planted"), "\(text)")
  }

  @Test("A TRACE request has the credentials of its own fields alone, in both programs")
  func traceCredentials() async throws {
    let netrc = try folder.file("netrc", "default login ann password planted\n")
    try await compare(["--netrc-file", netrc, "TRACE", "{url}"])
    try await compare(["-a", "ann:secret", "TRACE", "{url}"])
    try await compare(["--bearer", "token", "TRACE", "{url}"])
    let digest = await command(["-A", "digest", "-a", "ann:planted", "TRACE", "http://127.0.0.1:1/"])
    #expect(!digest.contains("--digest") && !digest.contains("planted"), "\(digest)")
  }

  @Test("A file is requested unencoded, and what curl cannot do is reported")
  func notes() async throws {
    let saved = await command(["-o", folder.path("a"), "http://127.0.0.1:1/x"])
    #expect(saved.contains("'Accept-Encoding: identity'") && !saved.contains("--compressed"))
    let name = await Terminal.pipe.run("--curl", "--multipart", "http://127.0.0.1:1/", "a\\=b=c")
    #expect(name.error == "af: curl ends the name 'a=b' at its first '='.\n")
    let jar = await Terminal.pipe.run("--curl", "--cookie-jar", folder.path("a=b"), "http://127.0.0.1:1/")
    #expect(jar.error.contains("because of the '='"))
    let url = "http://127.0.0.1:1/"
    let sum = "sha256:" + String(repeating: "0", count: 64)
    let parts = await Terminal.pipe.run(
      "--curl", "--segments", "4", "--checksum", sum, "-o", folder.path("b"), url)
    #expect(parts.error.contains("--segments") && parts.error.contains("--checksum"), "\(parts.error)")
    let proxies = await Terminal.pipe.run(
      "--curl", "--proxy", "http:\(url)", "--proxy", "https:http://ann:secret@p.test", url)
    #expect(proxies.error.contains("one proxy") && proxies.error.contains("https"), "\(proxies.error)")
    #expect(!proxies.error.contains("secret"))
    let image = await Terminal.pipe.run("--curl", "image", "info", url)
    #expect(image.status == .success && image.error.contains("image"), "\(image.error)")
    let certificate = await command(["--cert", "a:b\\c.pem", url])
    #expect(certificate.contains(#"--cert 'a\:b\\c.pem'"#), "\(certificate)")
    let compressed = await Terminal.pipe.run("--curl", "--compress", "http://127.0.0.1:1/", "--raw", "text")
    #expect(
      compressed.output.contains("--data-raw text") && compressed.error.contains("curl cannot compress"))
  }

  @Test("A type of a form that curl cannot send is reported")
  func typesOfForms() async {
    let url = "http://127.0.0.1:1/"
    for field in ["Content-Type:", "Content-Type;", "Content-Type:multipart/form-data; boundary=b"] {
      let form = await Terminal.pipe.run("--curl", "--multipart", url, "a=1", field)
      #expect(form.error.contains("on its own") && !form.output.contains("Content-Type"), "\(form.output)")
    }
    let mixed = await Terminal.pipe.run("--curl", "--multipart", url, "a=1", "Content-Type:multipart/mixed")
    #expect(mixed.error.contains("other heads of parts"), "\(mixed.error)")
    #expect(mixed.output.contains("-H 'Content-Type: multipart/mixed'"), "\(mixed.output)")
  }

  @Test("A HEAD with data is a command that curl accepts, and one without data has the option for it")
  func headRequests() async throws {
    let server = try HTTPTestServer()
    #expect(await command(["HEAD", server.url("/get")]).contains("--head"))
    for words in [["a=b"], ["--raw", "x"], ["--multipart", "a=b"]] {
      let run = await Terminal.pipe.run(["--curl", "HEAD", server.url("/anything")] + words)
      #expect(!run.output.contains("--head") && run.output.contains("-X HEAD"), "\(run.output)")
      #expect(run.error.contains("curl waits for a body"), "\(run.error)")
    }
    // The response has no body, and so curl ends.
    server.enqueue(.status(204))
    let text = await Terminal.pipe.run("--curl", "HEAD", server.url("/anything"), "a=b").output
    let shell = try await ChildRun(["sh", "-c", text])
    #expect(shell.status == 0, "\(text)\n\(shell.complaints)")
    let request = try #require(server.recordedRequests.first)
    #expect(request.method == "HEAD" && request.bodyText == #"{"a": "b"}"#)
  }

  @Test("The command saves no page of an error, and -d replaces no file")
  func savedFiles() async throws {
    let server = try HTTPTestServer()
    let path = try folder.file("f", "old")
    server.enqueue(Reply(status: 404, body: .bytes(Array("page".utf8))))
    let text = await command(["-o", path, server.url("/f")])
    let shell = try await ChildRun(["sh", "-c", text])
    #expect(shell.status == 22 && server.requestCount == 1, "\(text)\n\(shell.complaints)")
    #expect(FileManager.default.contents(atPath: path) == Data("old".utf8), "\(text)")
    let suggested = await command(["-d", server.url("/f")])
    #expect(suggested.contains("--no-clobber") && suggested.contains("--fail"), "\(suggested)")
    let continued = await Terminal.pipe.run("--curl", "-c", "-o", path, server.url("/f"))
    #expect(continued.error.contains("curl reads no journal"), "\(continued.error)")
    let redirect = await Terminal.pipe.run("--curl", "--no-follow", "-o", path, server.url("/f"))
    #expect(redirect.error.contains("the body of a redirect"), "\(redirect.error)")
  }
}
