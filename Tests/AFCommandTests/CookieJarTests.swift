import ChildProcesses
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@testable import AFCommand

/// Cookies in files, as far as a server or another program writes into them.
@Suite(.timeLimit(.minutes(5))) struct CookieJarTests {
  private let server: HTTPTestServer
  private let folder: Folder

  init() throws {
    server = try HTTPTestServer()
    folder = try Folder()
  }

  private func text(_ path: String) throws -> String {
    String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self)
  }

  /// Lets the server set a cookie. Returns what the next request of the same jar or session sends to it.
  private func sentBack(_ setCookie: String, _ option: String, _ path: String) async throws -> String? {
    server.enqueue(Reply.text("").with(header: "Set-Cookie", value: setCookie), .text(""))
    _ = await Terminal.pipe.run(option, path, server.url("/"))
    _ = try await server.takeRequest()
    let run = await Terminal.pipe.run(option, path, server.url("/"))
    #expect(run.status == .success, "\(run.error)")
    return try await server.takeRequest().header("Cookie")
  }

  @Test(
    "A server plants no cookie for another host in a jar or a session",
    arguments: ["\u{2028}", "\u{2029}", "\u{85}", "\u{0B}", "\u{0C}", "\r"], ["--cookie-jar", "--session"])
  func plantedLine(separator: String, option: String) async throws {
    let path = folder.path("state/file")
    try FileManager.default.createDirectory(atPath: folder.path("state"), withIntermediateDirectories: true)
    let line = "bank.example\tFALSE\t/\tFALSE\t4102444800\tsession\tplanted"
    let planted = "a=b\(separator)\(line)"
    let sent = try await sentBack(planted, option, path)
    // Control characters are refused with the whole cookie; other separators are a part of its value.
    #expect(sent == nil || sent == planted, "\(sent ?? "none")")
    let cookies =
      option == "--session"
      ? try NamedSession(path: path).cookieLines.compactMap(\.cookie) : try CookieJar.read(path)
    #expect(!cookies.contains { $0.domain.contains("bank") || $0.name == "session" })
    // Another program might split lines at other characters than line feeds. So curl's rule is checked: it knows only
    // the line feed.
    #expect(try text(path).split(separator: "\n").allSatisfy { !$0.hasPrefix("bank.example") })
  }

  @Test("Values with tabs survive the round trip, and names or paths with tabs are left out")
  func tabs() async throws {
    let jar = folder.path("jar")
    #expect(try await sentBack("a=b\tc\t", "--cookie-jar", jar) == "a=b\tc")
    #expect(try await sentBack("a\tx=b; Path=/", "--cookie-jar", jar) == "a=b\tc")
    #expect(try !text(jar).contains("x"))
    // A tab in a path would make its name the path.
    server.enqueue(Reply.text("").with(header: "Set-Cookie", value: "p=q; Path=/\tFALSE"), .text(""))
    _ = await Terminal.pipe.run("--cookie-jar", jar, server.url("/"))
    #expect(try CookieJar.read(jar).map(\.name) == ["a"])
  }

  @Test(
    "An expiry beyond all limits neither ends the program nor the cookie",
    arguments: ["9223372036854775807", "1e300", "inf", "253402300800", "0x7fffffffffffffff"])
  func lateExpiry(text expiry: String) async throws {
    let line = "127.0.0.1\tFALSE\t/\tFALSE\t\(expiry)\tk\tv"
    let session = #"{"headers": [], "cookies": ["\#(line.replacingOccurrences(of: "\t", with: "\\t"))"]}"#
    for (option, content) in [("--cookie-jar", line + "\n"), ("--session", session)] {
      let path = try folder.file("state", content)
      server.enqueue(Reply.text("").with(header: "Set-Cookie", value: "a=b"))
      let run = try await ChildRun([Programs.af, option, folder.path("state"), server.url("/get")])
      #expect(run.status == 0, "\(option): \(run.end)")
      #expect(try await server.takeRequest().header("Cookie") == "k=v")
      let written = try text(path)
      #expect(written.contains("253402300799"), "\(written)")
    }
  }

  @Test(
    "An expiry that is not a number, or not above zero, is the end of the session",
    arguments: ["nan", "-inf", "-1e300", "0", "", "soon", "-9223372036854775808"])
  func noExpiry(text expiry: String) async throws {
    let path = try folder.file("jar", "127.0.0.1\tFALSE\t/\tFALSE\t\(expiry)\tk\tv\n")
    server.enqueue(Reply.text("").with(header: "Set-Cookie", value: "a=b"))
    let run = try await ChildRun([Programs.af, "--cookie-jar", path, server.url("/get")])
    #expect(run.status == 0, "\(run.end)")
    #expect(try await server.takeRequest().header("Cookie") == "k=v")
    #expect(try text(path).hasSuffix("\t0\tk\tv\n"))
  }

  @Test("Lines of a jar end at a line feed, with or without a carriage return, and at nothing else")
  func lineEnds() throws {
    let lines = [
      "a.example\tFALSE\t/\tFALSE\t0\ta\tb\r", "b.example\tFALSE\t/\tFALSE\t0\tc\td\u{2028}e\u{85}f",
      "c.example\tFALSE\t/\tFALSE\t0\tg\th\ri", "d.example\tfalse\t/\ttrue\t0\t\tj",
      ".e.example\tFALSE\t/\tFALSE\t0\tk\tl",
    ]
    let cookies = CookieJarLine.all(in: Data(lines.joined(separator: "\n").utf8))
    #expect(cookies.map(\.domain) == ["a.example", "b.example", "d.example", "e.example"])
    #expect(cookies.map(\.value) == ["b", "d\u{2028}e\u{85}f", "j", "l"])
    #expect(cookies.map(\.isSecure) == [false, false, true, false])
    #expect(cookies.last?.text == "e.example\tFALSE\t/\tFALSE\t0\tk\tl")
  }

  @Test(
    "A line that is not a cookie is skipped",
    arguments: [
      "", "#", "# a.example\tFALSE\t/\tFALSE\t0\ta\tb", "a.example\tFALSE\t/\tFALSE\t0\ta",
      "\tFALSE\t/\tFALSE\t0\ta\tb", ".\tTRUE\t/\tFALSE\t0\ta\tb", "..a\tTRUE\t/\tFALSE\t0\ta\tb",
      "a.example\tFALSE\tp\tFALSE\t0\ta\tb", "a.example\tFALSE\t/\tFALSE\t0\t\t",
      "a.example\tFALSE\t/\tFALSE\t0\ta\tb\u{0}", "#HttpOnly_#a\tFALSE\t/\tFALSE\t0\ta\tb",
    ])
  func noCookies(line: String) { #expect(CookieJarLine(line.utf8) == nil) }

  @Test("A cookie that a line cannot hold is not written")
  func unwritableCookies() throws {
    let line = try #require(CookieJarLine("a.example\tFALSE\t/\tFALSE\t7\tk\tv".utf8))
    #expect(line.text == "a.example\tFALSE\t/\tFALSE\t7\tk\tv")
    let changes: [(String, (inout CookieJarLine) -> Void)] = [
      ("a line feed in the value", { $0.value = "v\nb.example\tFALSE\t/\tFALSE\t0\ta\tb" }),
      ("a carriage return at the end", { $0.value = "v\r" }), ("a tab in the name", { $0.name = "k\tl" }),
      ("a tab in the path", { $0.path = "/\tTRUE" }), ("a tab in the domain", { $0.domain = "a\tTRUE" }),
      ("a comment", { $0.domain = "#HttpOnly_b" }), ("no path", { $0.path = "" }),
      ("a time in 1970", { $0.expiry = 0 }), ("a time before", { $0.expiry = -7 }),
      ("a time beyond all calendars", { $0.expiry = .max }), ("a null", { $0.name = "k\u{0}" }),
    ]
    for (name, change) in changes {
      var changed = line
      change(&changed)
      #expect(changed.text == nil, "\(name)")
    }
    var value = line
    value.value = "v\tw\u{2028}"
    #expect(value.text.flatMap { CookieJarLine($0.utf8) } == value)
  }

  @Test("A comment with SameSite is for the line after it alone, and is written again")
  func commentsOfSameSite() throws {
    let line = "a.example\tFALSE\t/\tFALSE\t0\ta\tb"
    let lines = [
      "# SameSite=Strict", line, line, "# SameSite=Lax\r", line, "# SameSite=Strict", "# another one", line,
      "# SameSite=Other", line,
    ]
    let expected: [CookieJarLine.SameSite?] = [.strict, nil, .lax, nil, nil]
    let cookies = CookieJarLine.all(in: Data(lines.joined(separator: "\n").utf8))
    #expect(cookies.map(\.sameSite) == expected)
    let written = cookies.flatMap(\.lines)
    #expect(written == ["# SameSite=Strict", line, line, "# SameSite=Lax", line, line, line])
    #expect(CookieJarLine.all(in: Data(written.joined(separator: "\n").utf8)) == cookies)
    // A server that adds nothing but the attribute has changed the cookie.
    let objects = try cookies.map { try #require($0.cookie) }
    #expect(!CookieChanges(from: [objects[1]], to: [objects[0]]).isEmpty)
    #expect(CookieChanges(from: [objects[0]], to: [objects[0]]).isEmpty)
  }

  @Test(
    "SameSite outlives the run, so that a redirect from another site sends no such cookie",
    arguments: ["--cookie-jar", "--session"])
  func sameSite(option: String) async throws {
    let path = folder.path("state")
    /// Returns the cookies of the last request of a run, in the order of their names.
    func sent(_ words: String..., replies: [Reply]) async throws -> [String] {
      server.forgetRequests()
      for reply in replies { server.enqueue(reply) }
      let run = await Terminal.pipe.run([option, path] + words)
      #expect(run.status == .success, "\(run.error)")
      let requests = server.recordedRequests
      #expect(requests.count == replies.count)
      return requests.last?.header("Cookie")?.components(separatedBy: "; ").sorted() ?? []
    }
    let site = "http://localhost:\(server.port)/"
    var first = Reply.text("")
    first.headers += ["strict=1; SameSite=Strict", "lax=1; SameSite=Lax; Max-Age=3600", "free=1"].map {
      HTTPHeader(name: "Set-Cookie", value: $0)
    }
    #expect(try await sent(site, replies: [first]).isEmpty)
    // A cookie of the other site, so that the file is written anew with the cookies that were read from it.
    let redirect = Reply.redirect(to: site).with(header: "Set-Cookie", value: "other=1")
    let followed = try await sent(server.url("/"), replies: [redirect, .text("")])
    #expect(followed == ["free=1", "lax=1"], "a GET that another site has redirected")
    let repeated = try await sent(
      "POST", server.url("/"), replies: [.redirect(to: site, status: 307), .text("")])
    #expect(repeated == ["free=1"], "a POST that another site has redirected")
    #expect(try await sent(site, replies: [.text("")]) == ["free=1", "lax=1", "strict=1"])
  }

  @Test("A file that is not text is not replaced by a jar")
  func noText() async throws {
    let path = folder.path("photo")
    try Data([0xFF, 0xD8, 0xFF]).write(to: URL(fileURLWithPath: path))
    let run = await Terminal.pipe.run("--cookie-jar", path, server.url("/cookies/set/k/v"))
    #expect(run.status == .usage && run.error.contains("are not text"))
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data([0xFF, 0xD8, 0xFF]))
    #expect(server.requestCount == 0)
  }

  @Test(
    "A text that is not a jar is not replaced by one",
    arguments: [
      #"[{"domain": "127.0.0.1", "name": "a", "value": "b"}]"#, "{\"a\": 1}\n", "hello\n",
      "# Title\n\nText\n",
      #"{"headers": [], "cookies": ["127.0.0.1\tFALSE\t/\tFALSE\t0\tk\tv"]}"#, "\r\nhello", "a=b; c=d",
    ])
  func noJar(content: String) async throws {
    let path = try folder.file("notes", content)
    let run = await Terminal.pipe.run("--cookie-jar", path, server.url("/cookies/set/k/v"))
    #expect(run.status == .usage && run.error.contains("'\(path)' is not a cookie jar."), "\(run.error)")
    #expect(try text(path) == content)
    #expect(server.requestCount == 0)
  }

  @Test(
    "A jar without cookies, with comments or with a damaged line stays a jar",
    arguments: [
      "", "\n", "# Netscape HTTP Cookie File\n", "# comment\r\n \t\r\n", "# HTTP Cookie File\ndamaged\n",
      "damaged\n127.0.0.1\tFALSE\t/\tFALSE\t0\ta\tb\n",
    ])
  func sparseJar(content: String) async throws {
    let path = try folder.file("jar", content)
    let run = await Terminal.pipe.run("--no-follow", "--cookie-jar", path, server.url("/cookies/set/k/v"))
    #expect(run.status != .usage && server.requestCount == 1, "\(run.error)")
    #expect(try CookieJar.read(path).contains { $0.name == "k" })
  }

  @Test("A file that another program puts in the place of the jar during the run is not replaced")
  func laterFile() async throws {
    let path = folder.path("jar")
    let gate = Gate()
    defer { gate.open() }
    var slow = Reply.text("").with(header: "Set-Cookie", value: "a=b")
    slow.body = .parts([.gate(gate)])
    server.enqueue(slow)
    async let running = Terminal.pipe.run("--cookie-jar", path, server.url("/"))
    _ = try await server.takeRequest()
    _ = try folder.file("jar", "notes\n")
    gate.open()
    let run = await running
    #expect(run.status == .failure && run.error.contains("is not a cookie jar."), "\(run.error)")
    #expect(try text(path) == "notes\n")
  }

  @Test(
    "A session of HTTPie is refused, because its login would be lost",
    arguments: [
      #"{"auth": {"type": "basic", "raw_auth": "ann:pw"}, "cookies": [], "headers": []}"#,
      #"{"__meta__": {"httpie": "3.2.1"}, "cookies": [], "headers": [{"name": "A", "value": "b"}]}"#,
      #"{"__meta__": {}, "auth": {"type": null, "username": null}, "cookies": {}, "headers": {}}"#,
    ])
  func foreignSession(content: String) async throws {
    let path = try folder.file("s.json", content)
    let run = await Terminal.pipe.run("--session", path, server.url("/cookies/set/k/v"), "X-A:1")
    #expect(run.status == .usage && run.error.contains("'\(path)' is not a session of af."), "\(run.error)")
    #expect(try text(path) == content)
    #expect(server.requestCount == 0)
  }

  @Test("A typed Cookie field is sent, and not stored in a session")
  func typedCookie() async throws {
    let path = folder.path("s.json")
    for (name, isRemembered) in [
      ("Cookie", false), ("cookie", false), ("Range", false), ("If-Match", false), ("Content-Type", false),
      ("X-Cookie", true), ("Cookies", true),
    ] {
      _ = await Terminal.pipe.run("--session", path, server.url("/get"), "\(name):k=typed")
      #expect(try await server.takeRequest().header(name) == "k=typed", "\(name) is sent")
      _ = await Terminal.pipe.run("--session", path, server.url("/get"))
      let later = try await server.takeRequest().header(name)
      #expect((later == "k=typed") == isRemembered, "\(name): \(later ?? "none") is sent later")
      try FileManager.default.removeItem(atPath: path)
    }
  }

  @Test("A long run stores only what it has changed itself", arguments: ["--session", "--cookie-jar"])
  func severalRuns(option: String) async throws {
    let path = folder.path("state")
    let gate = Gate()
    defer { gate.open() }
    func reply(_ cookies: [String]) -> Reply {
      Reply(headers: cookies.map { HTTPHeader(name: "Set-Cookie", value: $0) }, body: .bytes([]))
    }
    server.enqueue(reply(["a=1", "b=1", "c=1"]))
    _ = await Terminal.pipe.run(option, path, "-a", "ann:old", server.url("/"), "X-A:old", "X-B:old")
    _ = try await server.takeRequest()
    var slow = reply(["c=; Max-Age=0", "d=1"])
    slow.body = .parts([.gate(gate)])
    server.enqueue(slow)
    async let long = Terminal.pipe.run(option, path, server.url("/"), "X-B:typed")
    _ = try await server.takeRequest()
    server.enqueue(reply(["a=2", "b=; Max-Age=0"]))
    _ = await Terminal.pipe.run(option, path, "-a", "ann:new", server.url("/"), "X-A:new")
    gate.open()
    #expect(await long.status == .success)
    let session = option == "--session" ? try NamedSession(path: path) : nil
    let cookies = try session?.cookieLines.compactMap(\.cookie) ?? CookieJar.read(path)
    #expect(cookies.map { "\($0.name)=\($0.value)" }.sorted() == ["a=2", "d=1"])
    guard let session else { return }
    #expect(session.credentials?.password == "new")
    #expect(session.headers.map { "\($0.name):\($0.value)" }.sorted() == ["X-A:new", "X-B:typed"])
  }

  @Test("A session and a cookie jar do not get the cookies of each other", arguments: [false, true])
  func sessionAndJar(isReadOnly: Bool) async throws {
    func lines(_ cookies: [(String, String)]) -> [String] {
      cookies.map { "127.0.0.1\tFALSE\t/\tFALSE\t0\t\($0)\t\($1)" }
    }
    func texts(_ cookies: [HTTPCookie]) -> [String] { cookies.map { "\($0.name)=\($0.value)" }.sorted() }
    let kept = lines([("s", "1"), ("both", "session"), ("gone", "session")])
      .map { "\"\($0.replacingOccurrences(of: "\t", with: "\\t"))\"" }.joined(separator: ", ")
    let session = try folder.file("session", "{\"headers\": [], \"cookies\": [\(kept)]}")
    let jar = try folder.file(
      "jar", lines([("j", "1"), ("both", "jar"), ("gone", "jar")]).map { $0 + "\n" }.joined())
    let set = ["new=1", "gone=; Max-Age=0"].map { HTTPHeader(name: "Set-Cookie", value: $0) }
    server.enqueue(Reply(headers: set, body: .bytes([])))
    let option = isReadOnly ? "--session-read-only" : "--session"
    let run = await Terminal.pipe.run(option, session, "--cookie-jar", jar, server.url("/"))
    #expect(run.status == .success, "\(run.error)")
    let sent = try await server.takeRequest().header("Cookie") ?? ""
    #expect(["s=1", "j=1", "both=jar", "gone=jar"].allSatisfy { sent.contains($0) }, "\(sent)")
    #expect(
      texts(try NamedSession(path: session).cookieLines.compactMap(\.cookie))
        == (isReadOnly ? ["both=session", "gone=session", "s=1"] : ["both=session", "new=1", "s=1"]))
    #expect(texts(try CookieJar.read(jar)) == ["both=jar", "j=1", "new=1"])
  }

  @Test("A run that changes nothing does not write the file", arguments: ["--session", "--cookie-jar"])
  func unchanged(option: String) async throws {
    let path = folder.path("state")
    _ = await Terminal.pipe.run(option, path, server.url("/cookies/set/k/v"), "X-A:1")
    func number() throws -> ino_t {
      var information = stat()
      try #require(stat(path, &information) == 0)
      return information.st_ino
    }
    let before = try number()
    // The number of a file that is replaced could be used again, so the file stays open.
    let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
    #expect(await Terminal.pipe.run(option, path, server.url("/get")).status == .success)
    #expect(try number() == before)
    _ = await Terminal.pipe.run(option, path, server.url("/cookies/set/k/w"))
    #expect(try number() != before)
    try file.close()
  }

  @Test(
    "A run that changes nothing keeps what other programs have written", arguments: [mode_t(0o600), 0o644])
  func foreignContent(mode: mode_t) async throws {
    let line = "127.0.0.1\tFALSE\t/\tFALSE\t0\tk\tv"
    let jar = """
      # Netscape HTTP Cookie File
      # https://curl.se/docs/http-cookies.html
      # This file was generated by libcurl! Edit at your own risk.

      \(line)

      """
    let cookie = line.replacingOccurrences(of: "\t", with: "\\t")
    let session = #"{"note": "mine", "headers": [], "cookies": ["\#(cookie)", "unknown"]}"#
    for (option, content) in [("--cookie-jar", jar), ("--session", session)] {
      let path = try folder.file("state", content)
      #expect(chmod(path, mode) == 0)
      let run = await Terminal.pipe.run(option, path, server.url("/get"))
      #expect(run.status == .success, "\(option): \(run.error)")
      #expect(try await server.takeRequest().header("Cookie") == "k=v", "\(option)")
      #expect(try text(path) == content, "\(option)")
      // Cookies and credentials are for the owner alone.
      var information = stat()
      #expect(stat(path, &information) == 0 && information.st_mode & 0o777 == 0o600, "\(option)")
    }
  }

  @Test("The lock of a folder excludes other programs until it is released") func folderLock() throws {
    let other = open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    try #require(other >= 0)
    defer { close(other) }
    let lock = FolderLock(of: folder.path("jar"))
    #expect(flock(other, LOCK_EX | LOCK_NB) != 0)
    lock.release()
    #expect(flock(other, LOCK_EX | LOCK_NB) == 0)
  }

  @Test("Cookies whose names Unicode calls equal are two cookies") func equalNames() throws {
    let cookies = try ["\u{E9}", "e\u{301}"].map { name in
      try #require(HTTPCookie(properties: [.domain: "a.example", .path: "/", .name: name, .value: "v"]))
    }
    #expect(CookieChanges(from: [], to: cookies).applied(to: []).count == 2)
    let orders = [cookies, cookies.reversed()].map { CookieJar.lines($0).map { Array($0.utf8) } }
    #expect(orders[0] == orders[1])
    #expect(CookieChanges(from: cookies, to: [cookies[0]]).applied(to: cookies).count == 1)
  }

  @Test("A session is stored for its owner alone, from the first byte on, and follows a link")
  func privateFiles() async throws {
    let (target, link) = (folder.path("target"), folder.path("link"))
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
    try Data("{\"headers\": []}".utf8).write(to: URL(fileURLWithPath: target))
    chmod(target, 0o644)
    for option in ["--cookie-jar", "--session"] {
      try Data((option == "--session" ? "{\"headers\": [], \"cookies\": []}" : "").utf8)
        .write(to: URL(fileURLWithPath: target))
      let run = await Terminal.pipe.run(option, link, server.url("/cookies/set/k/v"))
      #expect(run.status == .success, "\(run.error)")
      var information = stat()
      #expect(lstat(link, &information) == 0 && information.st_mode & S_IFMT == S_IFLNK, "\(option)")
      #expect(stat(target, &information) == 0 && information.st_mode & 0o777 == 0o600, "\(option)")
      #expect(try text(target).contains("k"), "\(option)")
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["link", "target"])
  }
}
