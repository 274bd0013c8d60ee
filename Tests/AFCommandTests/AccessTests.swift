import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@testable import AFCommand

/// Credentials, sessions and cookies.
@Suite(.timeLimit(.minutes(5))) struct AccessTests {
  private let server: HTTPTestServer
  private let folder: Folder

  init() throws {
    server = try HTTPTestServer()
    folder = try Folder()
  }

  // MARK: Credentials

  @Test("A bearer token is sent in two spellings, with its colons")
  func bearer() async throws {
    _ = await Terminal.pipe.run("--bearer", "a:b", server.url("/get"))
    #expect(try await server.takeRequest().header("Authorization") == "Bearer a:b")
    _ = await Terminal.pipe.run("-A", "bearer", "-a", "a:b", server.url("/get"))
    #expect(try await server.takeRequest().header("Authorization") == "Bearer a:b")
  }

  @Test("Digest answers the challenge, also for a body")
  func digest() async {
    let url = server.url("/digest-auth/auth/ann/secret")
    #expect(await Terminal.pipe.run("-A", "digest", "-a", "ann:secret", url).status == .success)
    #expect(
      await Terminal.pipe.run("-A", "digest", "-a", "ann:secret", "POST", url, "a=b").status == .success)
    #expect(await Terminal.pipe.run("-A", "digest", "-a", "ann:wrong", url).status == .clientError)
  }

  @Test("A missing password is asked for, and never shown")
  func prompt() async throws {
    var terminal = Terminal()
    terminal.secret = "top"
    let run = await terminal.run("-v", "-a", "ann", server.url("/basic-auth/ann/top"))
    #expect(run.status == .success)
    #expect(!(run.output + run.error).contains("YW5uOnRvcA"))
    let refused = await Terminal().run("-a", "ann", server.url("/get"))
    #expect(refused.status == .usage)
    #expect(refused.error.contains("USER:PASS"))
  }

  @Test("Credentials come from a netrc file, by host")
  func netrc() async throws {
    let file = try folder.file("netrc", "machine 127.0.0.1 login ann password top\n")
    #expect(
      await Terminal.pipe.run("--netrc-file", file, server.url("/basic-auth/ann/top")).status == .success)
    let missing = await Terminal.pipe.run("--netrc-file", folder.path("none"), server.url("/get"))
    #expect(missing.status == .failure)
    #expect(missing.error.contains("--netrc-file") && !missing.error.contains("TransportOptions"))
  }

  @Test(
    "A pipe as the netrc file is refused if it would be read again",
    arguments: [
      (["--retry", "1"], true), (["--segments", "2", "-d"], true), (["sse"], true), ([], false),
      (["--retry", "0"], false), (["--retry", "1", "POST"], false),
    ])
  func netrcPipe(words: [String], isRefused: Bool) async throws {
    let (pipe, reader) = try makeNetrcPipe()
    defer { close(reader) }
    server.enqueue(.text("body"))
    let run = await Terminal.pipe.run(words + ["--netrc-file", pipe, server.url("/")])
    #expect(run.status == (isRefused ? .usage : .success), "\(run.error)")
    #expect(run.error.contains("'\(pipe)' is a pipe") == isRefused, "\(run.error)")
    #expect(server.requestCount == (isRefused ? 0 : 1))
    if isRefused { return }
    let other = await Terminal.pipe.run("--retry", "1", "--netrc-file", "/dev/null", server.url("/get"))
    #expect(other.status == .success, "a device can be read again: \(other.error)")
  }

  /// Makes a pipe with a netrc file. Returns its path, and a descriptor that keeps the bytes as long as it is open.
  private func makeNetrcPipe() throws -> (path: String, reader: Int32) {
    let pipe = folder.path("netrc")
    try #require(mkfifo(pipe, 0o600) == 0)
    // The pipe keeps its bytes as long as one side is open.
    let reader = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    try #require(reader >= 0)
    let writer = try FileHandle(forWritingTo: URL(fileURLWithPath: pipe))
    try writer.write(contentsOf: Data("machine 127.0.0.1 login ann password top\n".utf8))
    try writer.close()
    return (pipe, reader)
  }

  @Test(
    "A pipe is the netrc file of a body that is sent once, and default options give way to it",
    arguments: [
      ("", ["--retry", "1", "--chunked", "PUT"], ["@-"]), ("--retry 1", [], []),
      ("--retry 1", ["PUT"], ["@-"]),
      ("--segments 2", ["-o"], []), ("--segments 2", ["--curl", "-o"], []),
    ] as [(String, [String], [String])])
  func singleUseOfNetrcPipe(defaults: String, words: [String], items: [String]) async throws {
    let (pipe, reader) = try makeNetrcPipe()
    defer { close(reader) }
    var terminal = Terminal.pipe
    terminal.input = "data"
    terminal.variables = ["AF_CONFIG": try folder.file("config", defaults)]
    let file = words.last == "-o" ? [folder.path("file")] : []
    server.enqueue(.text("body"))
    let run = await terminal.run(words + file + ["--netrc-file", pipe, server.url("/")] + items)
    #expect(run.status == .success, "\(run.error)")
    guard !words.contains("--curl") else { return }
    #expect(server.recordedRequests.map { $0.header("Authorization") } == ["Basic YW5uOnRvcA=="])
  }

  @Test(
    "A device without end instead of a file is an error at once",
    arguments: ["--cookie-jar", "--session", "--netrc-file", "--ca", "--cert", "AF_CONFIG"])
  func endlessFile(option: String) async {
    var terminal = Terminal.pipe
    let words = option == "AF_CONFIG" ? [] : [option, "/dev/zero"]
    if option == "AF_CONFIG" { terminal.variables["AF_CONFIG"] = "/dev/zero" }
    let run = await terminal.run(words + [server.url("/get")])
    #expect(run.status != .success)
    #expect(run.error.contains("/dev/zero"), "\(run.error)")
    #expect(server.recordedRequests.isEmpty)
  }

  // MARK: Sessions

  @Test("A session keeps fields, credentials and cookies, in a file for its owner alone")
  func session() async throws {
    let path = folder.path("s.json")
    _ = await Terminal.pipe.run(
      "--session", path, "-a", "ann:top", server.url("/cookies/set/k/v"), "X-A:1", "If-None-Match:x")
    server.forgetRequests()
    _ = await Terminal.pipe.run("--session", path, server.url("/get"))
    let request = try #require(server.recordedRequests.first)
    #expect(request.header("X-A") == "1")
    #expect(request.header("If-None-Match") == nil)
    #expect(request.header("Authorization") == "Basic YW5uOnRvcA==")
    #expect(request.header("Cookie") == "k=v")
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
  }

  @Test("A session or cookie jar that cannot be written is found before a request is sent")
  func unwritableState() async {
    for option in ["--session", "--cookie-jar"] {
      let run = await Terminal.pipe.run(option, folder.path("none/s.json"), server.url("/get"))
      #expect(run.status == .usage && run.error.contains("cannot be written: No such file or directory."))
    }
    #expect(server.requestCount == 0)
  }

  @Test("A session that is only read does not change, and a typed field wins")
  func readOnlySession() async throws {
    let path = folder.path("s.json")
    _ = await Terminal.pipe.run("--session", path, server.url("/get"), "X-A:1")
    let before = FileManager.default.contents(atPath: path)
    server.forgetRequests()
    _ = await Terminal.pipe.run("--session-read-only", path, server.url("/cookies/set/k/v"), "X-A:2")
    #expect(server.recordedRequests.first?.header("X-A") == "2")
    #expect(FileManager.default.contents(atPath: path) == before)
    _ = await Terminal.pipe.run("--session", path, server.url("/get"), "X-A:")
    #expect(server.recordedRequests.last?.header("X-A") == nil)
    _ = await Terminal.pipe.run("--session", path, server.url("/get"))
    #expect(server.recordedRequests.last?.header("X-A") == "1")
  }

  @Test("A named session is apart for each host")
  func namedSession() async throws {
    var terminal = Terminal.pipe
    terminal.variables = ["XDG_DATA_HOME": folder.path]
    _ = await terminal.run("--session", "me", server.url("/get"), "X-A:1")
    let path = folder.path("af/sessions/127.0.0.1_\(server.port)/me.json")
    #expect(FileManager.default.fileExists(atPath: path))
    let other = try HTTPTestServer()
    _ = await terminal.run("--session", "me", other.url("/get"))
    #expect(other.recordedRequests.first?.header("X-A") == nil)
  }

  @Test(
    "A run that writes no session makes no folder for one",
    arguments: [
      ["--session-read-only", "me"], ["--session", "me", "--offline"], ["--session", "me", "--curl"],
    ])
  func unwrittenSession(options: [String]) async throws {
    var terminal = Terminal.pipe
    for home in [folder.path, "/proc/none"] {
      terminal.variables = ["XDG_DATA_HOME": home]
      let run = await terminal.run(options + [server.url("/get")])
      #expect(run.status == .success, "\(run.error)")
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    let run = await terminal.run("--session", "me", server.url("/get"))
    #expect(run.status == .usage && run.error.contains("/proc/none/"), "\(run.error)")
  }

  @Test("A relative folder for the data of programs is ignored", arguments: ["data", "./data", ""])
  func relativeDataFolder(value: String) {
    let place = NamedSession.place("me", host: "h", variables: ["XDG_DATA_HOME": value])
    #expect(place.path.hasPrefix("/") && place.path.hasSuffix("/.local/share/af/sessions/h/me.json"))
  }

  private static let storedCredentials =
    #"{"headers": [], "cookies": [], "credentials": {"type": "basic", "user": "ann", "password": "x"}}"#

  /// Returns whether the session "me" has credentials for a URL.
  private func sends(_ url: String) async -> Bool {
    var terminal = Terminal.pipe
    terminal.variables = ["XDG_DATA_HOME": folder.path]
    let run = await terminal.run("--session", "me", "--offline", "-p", "H", url)
    #expect(run.status == .success, "\(run.error)")
    return run.output.contains("Authorization: Basic")
  }

  @Test("The secrets of a session are sent to the port alone for which they were stored")
  func sessionOfPort() async throws {
    for host in ["example.com", "example.com_80"] {
      try FileManager.default.createDirectory(
        atPath: folder.path("af/sessions/\(host)"), withIntermediateDirectories: true)
    }
    _ = try folder.file("af/sessions/example.com/me.json", Self.storedCredentials)
    for url in ["https://example.com", "https://EXAMPLE.com/x", "https://example.com:443"] {
      #expect(await sends(url), "\(url)")
    }
    for url in ["http://example.com", "http://example.com:443", "https://example.com:8443"] {
      #expect(await !sends(url), "\(url)")
    }
    _ = try folder.file("af/sessions/example.com_80/me.json", Self.storedCredentials)
    for url in ["http://Example.com", "http://example.com:80"] { #expect(await sends(url), "\(url)") }
  }

  @Test(
    "The secrets of a session are not sent to the other scheme on their port, nor to a host called like both",
    arguments: [
      ("https://example.com:8443", "http://example.com:8443"),
      ("https://example.com:80", "http://example.com"),
      ("https://example.com", "http://example.com:443"), ("https://[::1]:8080", "http://[::1]:8080"),
      ("https://box_80", "http://box"), ("https://box_8443_tls", "https://box:8443"),
    ])
  func sessionOfScheme(one: String, other: String) async throws {
    for (stored, foreign) in [(one, other), (other, one)] {
      let host = NamedSession.host(of: URLComponents(string: stored))
      let place = NamedSession.place("me", host: host, variables: ["XDG_DATA_HOME": folder.path])
      try NamedSession.makeFolder(try #require(place.folder))
      try Data(Self.storedCredentials.utf8).write(to: URL(fileURLWithPath: place.path))
      #expect(await sends(stored), "\(stored) lacks its credentials")
      #expect(await !sends(foreign), "\(foreign) gets the credentials for \(stored)")
      try FileManager.default.removeItem(atPath: place.path)
    }
  }

  @Test("A session stores the value of a file and a repeated field, and a typed field replaces a stored one")
  func sessionFields() async throws {
    let session = folder.path("me")
    let file = try folder.file("value", "from a file\n")
    func sent(_ items: String...) async throws -> RecordedRequest {
      server.forgetRequests()
      _ = await Terminal.pipe.run(["--session", session, server.url("/get")] + items)
      return try #require(server.recordedRequests.first)
    }
    _ = try await sent("X-A:old", "X-B:1", "X-B:2", "X-C:1", "X-C:")
    let typed = try await sent("X-A:@\(file)")
    #expect(typed.header("X-A") == "from a file" && typed.headers(named: "X-B") == ["1", "2"])
    #expect(typed.header("X-C") == nil)
    #expect(try await sent().header("X-A") == "from a file")
    #expect(try await sent("X-B:3").header("X-B") == "3")
    #expect(try await sent().header("X-B") == "3")
  }

  @Test("Credentials of a session are sent in the way that is typed") func typedWayOfCredentials()
    async throws
  {
    let path = folder.path("s.json")
    _ = await Terminal.pipe.run("--session", path, "-a", "ann:secret", server.url("/get"))
    server.forgetRequests()
    let url = server.url("/digest-auth/auth/ann/secret")
    // The second run finds the way in the session.
    for way in [["-A", "digest"], []] {
      #expect(await Terminal.pipe.run(["--session", path] + way + [url]).status == .success)
    }
    let fields = server.recordedRequests.compactMap { $0.header("Authorization") }
    #expect(fields.count == 2 && fields.allSatisfy { $0.hasPrefix("Digest ") }, "\(fields)")
  }

  @Test(
    "A token of a session is not sent as a user, nor a user as a token",
    arguments: [(["--bearer", "token"], "digest"), (["-a", "ann:secret"], "bearer")])
  func otherKindOfCredentials(stored: [String], way: String) async {
    let path = folder.path("s.json")
    _ = await Terminal.pipe.run(["--session", path] + stored + [server.url("/get")])
    server.forgetRequests()
    let run = await Terminal.pipe.run("--session", path, "-A", way, server.url("/get"))
    #expect(run.status == .usage && run.error.contains("--auth"), "\(run.error)")
    #expect(server.requestCount == 0)
  }

  @Test(
    "Typed credentials replace the Authorization field of a session, and a typed field its credentials",
    arguments: [(["--bearer", "new"], "Bearer new"), (["-a", "ann:new"], "Basic YW5uOm5ldw==")])
  func typedCredentials(words: [String], field: String) async throws {
    let path = folder.path("s.json")
    func sent(_ words: String...) async throws -> String? { try await sent(words) }
    func sent(_ words: [String]) async throws -> String? {
      server.forgetRequests()
      _ = await Terminal.pipe.run(["--session", path, server.url("/get")] + words)
      return try #require(server.recordedRequests.first).header("Authorization")
    }
    #expect(try await sent("Authorization:Bearer old") == "Bearer old")
    #expect(try await sent("Authorization:") == nil)
    #expect(try await sent() == "Bearer old")
    #expect(try await sent(words) == field)
    #expect(try await sent() == field)
    #expect(try await sent("Authorization:") == nil)
    #expect(try await sent() == field)
    #expect(try await sent("Authorization:Bearer last") == "Bearer last")
    #expect(try await sent() == "Bearer last")
    #expect(try !String(contentsOfFile: path, encoding: .utf8).contains("new"))
  }

  @Test("A file that cannot be flushed to the disk does not replace an earlier one") func failedFlush() throws
  {
    let path = try folder.file("file", "old")
    #expect(throws: PrivateFile.Failure.self) {
      try PrivateFile.write(Data("new".utf8), to: path) { _ in EIO }
    }
    #expect(FileManager.default.contents(atPath: path) == Data("old".utf8))
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("")) == ["file"])
    var flushed: [off_t] = []
    try PrivateFile.write(Data("newer".utf8), to: path) { descriptor in
      var status = stat()
      if fstat(descriptor, &status) == 0 { flushed.append(status.st_size) }
      return 0
    }
    #expect(flushed == [5] && FileManager.default.contents(atPath: path) == Data("newer".utf8))
  }

  @Test("A file that is a pipe or a device is written to, and not replaced") func device() throws {
    let pipe = folder.path("pipe")
    try #require(mkfifo(pipe, 0o600) == 0)
    // A reader, so that opening the pipe does not wait.
    let reader = open(pipe, O_RDWR | O_NONBLOCK | O_CLOEXEC)
    defer { close(reader) }
    try PrivateFile.write(Data("text".utf8), to: pipe)
    var bytes = [UInt8](repeating: 0, count: 8)
    #expect(read(reader, &bytes, 8) == 4)
    var information = stat()
    #expect(stat(pipe, &information) == 0 && information.st_mode & S_IFMT == S_IFIFO)
  }

  @Test("A cookie jar has curl's format, and is read back")
  func cookieJar() async throws {
    let path = folder.path("jar")
    _ = await Terminal.pipe.run("--cookie-jar", path, server.url("/cookies/set/k/v"))
    let text = FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    #expect(text?.hasSuffix("127.0.0.1\tFALSE\t/\tFALSE\t0\tk\tv\n") == true)
    server.forgetRequests()
    _ = await Terminal.pipe.run("--cookie-jar", path, server.url("/get"))
    #expect(server.recordedRequests.first?.header("Cookie") == "k=v")
  }

  @Test("A jar of another program is read: domains, HttpOnly and expired cookies")
  func foreignJar() throws {
    let lines = [
      "#HttpOnly_.example.com\tTRUE\t/p\tTRUE\t4102444800\ta\tb", "# comment", "", "x\ty",
      "example.org\tFALSE\t/\tFALSE\t0\tc\td=e",
    ]
    let cookies = try CookieJar.read(try folder.file("jar", lines.joined(separator: "\n")))
    #expect(cookies.map(\.name) == ["a", "c"])
    #expect(cookies.first?.isHTTPOnly == true && cookies.first?.isSecure == true)
    #expect(CookieJar.lines(cookies) == [lines[0], lines[4]])
  }
}
