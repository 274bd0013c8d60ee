import AFCommand
import Foundation
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5))) struct CommandTests {
  private let server: HTTPTestServer

  init() throws {
    server = try HTTPTestServer()
  }

  private func address(_ path: String) -> String { ":\(server.port)\(path)" }

  // MARK: Sending

  @Test("A GET on a terminal shows the head and the laid out body")
  func get() async throws {
    server.enqueue(.json(#"{"b":[1],"a":"ü"}"#).with(header: "X-B", value: "2"))
    let run = await Terminal().run(server.url("/people"), "id==1", "X-Mine:yes")
    let request = try await server.takeRequest()
    #expect(run.status == .success)
    #expect(run.error.isEmpty)
    #expect(run.output.hasPrefix("HTTP/1.1 200 OK\n"))
    #expect(run.output.contains("\nContent-Type: application/json\n"))
    #expect(run.output.contains("\nX-B: 2\n"))
    #expect(run.output.hasSuffix("\n\n{\n  \"b\": [\n    1\n  ],\n  \"a\": \"ü\"\n}\n"))
    #expect(request.method == "GET")
    #expect(request.target == "/people?id=1")
    #expect(request.header("X-Mine") == "yes")
    #expect(request.header("User-Agent")?.hasPrefix("af/") == true)
    #expect(request.header("Accept") == "*/*")
  }

  @Test("Data items become a POST of JSON")
  func post() async throws {
    let run = await Terminal.pipe.run(server.url("/post"), "name=Ada", "age:=36")
    let request = try await server.takeRequest()
    #expect(run.status == .success)
    #expect(request.method == "POST")
    #expect(request.bodyText == #"{"name": "Ada", "age": 36}"#)
    #expect(request.header("Content-Type") == "application/json")
  }

  @Test("A field that is left out is not shown either, and curl does not add it")
  func omission() async {
    let shown = await Terminal.pipe.run("--offline", server.url("/"), "User-Agent:", "a=b", "Content-Type:")
    #expect(shown.output.contains("\nAccept-Encoding: "))
    #expect(!shown.output.contains("User-Agent") && !shown.output.contains("Content-Type"))
    let command = await Terminal.pipe.run("--curl", server.url("/"), "User-Agent:")
    #expect(command.output.contains("  -H user-agent: \\\n") && !command.output.contains("af/"))
  }

  @Test("A form is sent with Basic credentials in the first request")
  func form() async throws {
    _ = await Terminal.pipe.run("-f", "-a", "Ada:pass:word", "PUT", server.url("/put"), "a=1", "a=2")
    let request = try await server.takeRequest()
    #expect(request.method == "PUT")
    #expect(request.bodyText == "a=1&a=2")
    #expect(request.header("Authorization") == "Basic QWRhOnBhc3M6d29yZA==")
  }

  @Test("Standard input becomes the body, also of a GET")
  func input() async throws {
    let terminal = Terminal(isOutputTerminal: false, input: "typed")
    let run = await terminal.run("GET", server.url("/anything"), "--raw", "-", "Content-Type:text/plain")
    let request = try await server.takeRequest()
    #expect(run.status == .success)
    #expect(request.method == "GET")
    #expect(request.bodyText == "typed")
    #expect(request.header("Content-Type") == "text/plain")
  }

  @Test("An address without a host is sent to localhost")
  func shortAddress() async {
    let run = await Terminal.pipe.run(address("/ip"))
    #expect(run.status == .success)
  }

  // MARK: Output

  @Test("Events are written as they arrive") func events() async throws {
    let gate = Gate()
    let (first, second) = ("data: 1\n\n", "data: 2\n\n")
    server.enqueue(
      Reply(body: .parts([.bytes(Array(first.utf8)), .gate(gate), .bytes(Array(second.utf8))]))
        .with(header: "Content-Type", value: "text/event-stream"))
    var terminal = Terminal.pipe
    let arrived = Mutex(Data())
    terminal.onOutput = { data in
      let isFirst = arrived.withLock { all in
        all += data
        return all == Data(first.utf8)
      }
      // The server sends the second event when the first one is on the screen.
      if isFirst { gate.open() }
    }
    let run = await terminal.run(server.url("/prices"))
    #expect(run.status == .success)
    #expect(run.output == first + second)
  }

  @Test("Events on a terminal follow the head") func eventsOnTerminal() async throws {
    server.enqueue(
      Reply(body: .parts(["data: 1\n\n"])).with(header: "Content-Type", value: "text/event-stream"))
    let run = await Terminal().run(server.url("/prices"))
    #expect(run.output.hasPrefix("HTTP/1.1 200 OK\n"))
    #expect(run.output.hasSuffix("\n\ndata: 1\n\n"))
  }

  @Test("A pipe receives the bytes of the body alone, unchanged")
  func pipe() async {
    let bytes: [UInt8] = [0, 255, 10, 13, 0]
    server.enqueue(.data(bytes), .json(#"{"a":1}"#))
    #expect(await Terminal.pipe.run(server.url("/")).bytes == Data(bytes))
    #expect(await Terminal.pipe.run(server.url("/")).output == #"{"a":1}"#)
  }

  @Test("A terminal shows a note instead of a binary body")
  func binary() async {
    server.enqueue(.data([0, 255]))
    let run = await Terminal().run("-b", server.url("/"))
    #expect(run.output.hasPrefix("Not text: 2 B of application/octet-stream."))
  }

  @Test("The head is the output of a HEAD request, in a pipe too")
  func head() async {
    let run = await Terminal.pipe.run("HEAD", server.url("/get"))
    #expect(run.output.hasPrefix("HTTP/1.1 200 OK\n"))
    #expect(await Terminal.pipe.run("HEAD", "-b", server.url("/get")).output.isEmpty)
  }

  @Test("Text in another charset is converted")
  func charset() async {
    let latin = Reply.data([0x63, 0x61, 0x66, 0xE9]).with(header: "Content-Type", value: "")
    var reply = latin
    reply.headers = [HTTPHeader(name: "Content-Type", value: "text/plain; charset=iso-8859-1")]
    server.enqueue(reply)
    #expect(await Terminal().run("-b", server.url("/")).output == "café\n")
  }

  @Test("Headers and body can be shown alone")
  func parts() async {
    server.enqueue(.text("body"), .text("body"))
    let headers = await Terminal.pipe.run("--headers", server.url("/"))
    #expect(headers.output.hasPrefix("HTTP/1.1 200 OK\n"))
    #expect(!headers.output.contains("body"))
    #expect(await Terminal().run("--body", server.url("/")).output == "body\n")
  }

  @Test("Verbose shows every request and response, without secrets")
  func verbose() async {
    server.enqueue(.redirect(to: "/there", status: 307), .text("done"))
    let run = await Terminal().run("-v", "-a", "u:p", server.url("/here"), "a=b", "Cookie:id=1234")
    let blocks = run.output.components(separatedBy: "\n\n")
    #expect(blocks.count == 7)
    #expect(blocks.first?.hasPrefix("POST /here HTTP/1.1\nHost: 127.0.0.1:\(server.port)\n") == true)
    #expect(blocks.dropFirst().first == "{\n  \"a\": \"b\"\n}")
    #expect(run.output.contains("\n\nHTTP/1.1 307 Temporary Redirect\n"))
    #expect(run.output.contains("\n\nPOST /there HTTP/1.1\n"))
    #expect(blocks.last == "done\n")
    #expect(run.output.contains("Authorization: Basic <redacted>\n"))
    #expect(run.output.contains("Cookie: id=<redacted>\n"))
    #expect(!run.output.contains("dTpw") && !run.output.contains("1234"))
  }

  @Test("Verbose shows trailers after the body, and nothing takes one for a head") func trailers() async {
    let trailers = [HTTPHeader(name: "X-End", value: "1"), HTTPHeader(name: "X-A", value: "b HTTP/1.1")]
    for (body, shown) in [("done", "done\n"), ("done\n", "done\n\n")] {
      server.enqueue(Reply(body: .parts([.bytes(Array(body.utf8))])).with(trailers: trailers.reversed()))
      let run = await Terminal.pipe.run("-v", server.url("/"))
      #expect(run.output.hasSuffix("\n\n\(shown)X-A: b HTTP/1.1\nX-End: 1\n"), "\(run.output)")
      #expect(run.output.contains("HTTP/1.1 200 OK\n"))
    }
    server.enqueue(.parts("done").with(trailers: trailers))
    #expect(await Terminal.pipe.run(server.url("/")).output == "done")
  }

  @Test("Colours are used on terminals only")
  func colours() async {
    server.enqueue(.json("[1]"), .json("[1]"))
    #expect(await Terminal(hasColours: true).run(server.url("/")).output.contains("\u{1B}[1;32m200 OK"))
    let piped = await Terminal(isOutputTerminal: false, hasColours: true).run("-h", server.url("/"))
    #expect(!piped.output.contains("\u{1B}"))
  }

  @Test("Timing lists the hops on standard error and does not change the output")
  func timing() async {
    server.enqueue(.redirect(to: "/there"), .text("done"))
    let run = await Terminal.pipe.run("--timing", server.url("/here"))
    #expect(run.output == "done")
    #expect(run.error.hasPrefix("GET \(server.url("/here")) → 302\n"))
    #expect(run.error.contains("GET \(server.url("/there")) → 200\n"))
    #expect(run.error.contains("connection used again"))
    #expect(run.error.contains("\n  waiting "))
    #expect(run.error.split(separator: "\n").allSatisfy { $0.count < 80 })
  }

  @Test("A slow body shows its progress on a terminal, and removes it at the end")
  func progress() async {
    let gate = Gate()
    server.enqueue(
      Reply(body: .parts([.pattern(1000), .gate(gate), .pattern(9000)])).framed(.contentLength))
    // The rest of the body is sent after the line that shows its beginning.
    let terminal = Terminal(isOutputTerminal: false, isErrorTerminal: true, tick: .seconds(1)) { gate.open() }
    let slow = await terminal.run("-b", server.url("/"))
    #expect(slow.status == .success)
    #expect(slow.error.contains(" 10%  "))
    #expect(slow.error.contains("1.0 kB of 10 kB  1.0 kB/s  9 s left"))
    #expect(slow.error.hasPrefix("\r") && slow.error.hasSuffix("\r\u{1B}[K"))
    #expect(slow.error.components(separatedBy: "\r").allSatisfy { $0.count < 80 + "\u{1B}[K".count })
  }

  @Test("A dumb terminal shows progress only if it is asked for", arguments: [false, true])
  func progressOnDumbTerminal(isForced: Bool) async {
    server.enqueue(.bytes(1000))
    var terminal = Terminal(isOutputTerminal: false, isErrorTerminal: true, tick: .seconds(1))
    terminal.variables["TERM"] = "dumb"
    let run = await terminal.run(["-b", server.url("/")] + (isForced ? ["--progress"] : []))
    #expect(run.status == .success)
    #expect(run.error.isEmpty == !isForced)
  }

  @Test("A body that is complete within half a second shows no progress")
  func quickBody() async {
    server.enqueue(.bytes(1000))
    let terminal = Terminal(isErrorTerminal: true, tick: .milliseconds(1))
    #expect(await terminal.run("-b", server.url("/")).error.isEmpty)
  }

  @Test(
    "--offline shows stored cookies, and the range of a file that is continued",
    arguments: ["--session", "--cookie-jar"])
  func offlineState(option: String) async throws {
    let folder = try Folder()
    server.enqueue(
      Reply.text("0123456789").with(header: "ETag", value: "\"v1\"")
        .with(header: "Set-Cookie", value: "sid=planted").with(effect: .closeAfterBody(bytes: 4)))
    let words = [option, folder.path("state"), "-o", folder.path("f"), server.url("/f")]
    #expect(await Terminal.pipe.run(words).status == .failure)
    let run = await Terminal.pipe.run(["--offline", "-c"] + words)
    #expect(run.status == .success, "\(run.error)")
    for field in ["Cookie: sid=<redacted>", "Range: bytes=4-", "If-Range: \"v1\""] {
      #expect(run.output.contains("\n\(field)\n"), "\(run.output)")
    }
    #expect(!run.output.contains("planted"))
    let typed = await Terminal.pipe.run(["--offline"] + words + ["Cookie:a=b"])
    #expect(typed.output.contains("\nCookie: a=<redacted>\n"), "\(typed.output)")
    #expect(server.requestCount == 1)
  }

  @Test(
    "--offline and --curl show stored cookies unless the method is TRACE, which does not send them",
    arguments: ["--session", "--cookie-jar"])
  func traceState(option: String) async throws {
    let folder = try Folder()
    server.enqueue(Reply.text("x").with(header: "Set-Cookie", value: "sid=planted"))
    let words = [option, folder.path("state")]
    #expect(await Terminal.pipe.run(words + [server.url("/f")]).status == .success)
    for method in ["GET", "TRACE"] {
      let shown = await Terminal.pipe.run(["--offline"] + words + [method, server.url("/f")])
      #expect(shown.output.contains("\nCookie: sid=<redacted>\n") == (method == "GET"), "\(shown.output)")
      let command = await Terminal.pipe.run(["--curl"] + words + [method, server.url("/f")])
      #expect(command.output.contains("--cookie") == (method == "GET"), "\(command.output)")
      let isReported = method == "TRACE" && option == "--cookie-jar"
      #expect(command.error.contains("--cookie-jar is left out") == isReported, "\(command.error)")
    }
    #expect(server.requestCount == 1)
  }

  @Test("--curl has the retries of idempotent requests alone")
  func curlRetries() async {
    let get = await Terminal.pipe.run("--retry", "3", "--curl", server.url("/x"))
    #expect(get.output.contains("--retry 3"))
    let post = await Terminal.pipe.run("--retry", "3", "--curl", "POST", server.url("/x"), "a=b")
    #expect(post.status == .success && !post.output.contains("--retry"))
  }

  @Test("--curl has the proxy of the scheme of the URL", arguments: ["https://a.test/", "HTTPS://a.test/"])
  func curlProxy(url: String) async {
    let run = await Terminal.pipe.run(
      "--proxy", "https:http://p.test:1", "--proxy", "http:none", "--curl", url)
    #expect(run.output.contains("--proxy http://p.test:1 ") && !run.output.contains("--noproxy"))
  }

  @Test("--curl prints a command and sends nothing")
  func curl() async {
    let run = await Terminal.pipe.run(
      "--curl", "-a", "u:p w", "--no-follow", "--ca", "my ca.pem", server.url("/x"), "a=it's", "X:$HOME", "E;"
    )
    #expect(run.status == .success)
    #expect(
      run.output == #"""
        curl \
          --user 'u:p w' \
          --cacert 'my ca.pem' \
          --compressed \
          -H '\#(userAgent)' \
          -H 'Accept: application/json, */*;q=0.5' \
          -H 'Content-Type: application/json' \
          -H 'E;' \
          -H 'X: $HOME' \
          --data-raw '{"a": "it'\''s"}' \
          http://127.0.0.1:\#(server.port)/x

        """#)
    #expect(server.requestCount == 0)
  }

  private var userAgent: String {
    let version = Help.version.split(separator: " ").last.map { $0.trimmingCharacters(in: .newlines) } ?? ""
    return "User-Agent: af/\(version) Alamofire/\(version)"
  }

  // MARK: Exit status

  @Test(
    "The exit status is the class of the response",
    arguments: [
      (200, ExitCode.success), (204, .success), (304, .redirect), (404, .clientError), (503, .serverError),
    ])
  func exitCode(code: Int, expected: ExitCode) async {
    let run = await Terminal.pipe.run(server.url("/status/\(code)"))
    #expect(run.status == expected)
    #expect(run.error.isEmpty == (expected == .success))
    #expect(await Terminal.pipe.run("--no-check-status", server.url("/status/\(code)")).status == .success)
  }

  @Test("A status of no known class is a failure of the server (RFC 9110 §15)", arguments: [600, 999])
  func exitCodeOfUnknownClass(code: Int) async {
    server.enqueue(.raw("HTTP/1.1 \(code) Denied\r\nContent-Length: 0\r\n\r\n"))
    let run = await Terminal.pipe.run(server.url("/"))
    #expect(run.status == .serverError && run.error == "af: The server answered \(code).\n", "\(run.error)")
  }

  @Test("Redirects are followed, shown or limited")
  func redirects() async {
    let followed = await Terminal.pipe.run(server.url("/redirect/2"))
    #expect(followed.status == .success)
    let shown = await Terminal().run("--no-follow", server.url("/redirect/2"))
    #expect(shown.status == .redirect)
    #expect(shown.output.hasPrefix("HTTP/1.1 302 Found\n"))
    let refused = await Terminal.pipe.run("--max-redirects", "1", server.url("/redirect/2"))
    #expect(refused.status == .failure)
    #expect(refused.error.contains("--max-redirects"))
  }

  @Test("Help and version are written to the output, mistakes to standard error")
  func texts() async {
    #expect(await Terminal().run("--help").output == Help.text)
    #expect(await Terminal().run("--version").output.hasPrefix("af "))
    let run = await Terminal().run("--frob")
    #expect(run.status == .usage)
    #expect(run.output.isEmpty)
    #expect(run.error == "af: There is no option --frob.\nTry 'af --help'.\n")
  }

  // MARK: Failures

  @Test("A request without a response is reported in one sentence")
  func refused() async throws {
    let port = try HTTPTestServer.refusedPort()
    let run = await Terminal().run("http://127.0.0.1:\(port)/")
    #expect(await Terminal().run("-v", "http://127.0.0.1:\(port)/").output.isEmpty)
    #expect(run.status == .failure)
    #expect(run.output.isEmpty)
    #expect(
      run.error
        == "af: 127.0.0.1 does not accept the connection; check that the server runs on port \(port).\n")
  }

  @Test("An incomplete body is a failure")
  func brokenBody() async {
    server.enqueue(.closeAfterBody(bytes: 100))
    let run = await Terminal.pipe.run(server.url("/"))
    #expect(run.status == .failure)
    #expect(run.bytes.count <= 100)
    #expect(run.error.hasPrefix("af: "))
  }

  @Test("A request to an unresponsive server times out")
  func timeout() async {
    server.enqueue(.stall)
    let run = await Terminal.pipe.run("-v", "--timeout", "0.2", server.url("/silence"))
    #expect(run.status == .failure)
    #expect(run.output.hasPrefix("GET /silence HTTP/1.1\n"))
    #expect(run.error.contains("--timeout"))
  }

  @Test("An unknown authority is refused, and trusted when it is named")
  func authority() async throws {
    let secure = try HTTPTestServer(.tls(.localhost))
    let refused = await Terminal.pipe.run(secure.url("/get"))
    #expect(refused.status == .failure)
    #expect(refused.error.contains("--ca FILE"))
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).pem")
    try Data(TestIdentity.localhost.caPEM.utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let trusted = await Terminal.pipe.run("--ca", file.path, "--http1.1", secure.url("/get"))
    #expect(trusted.status == .success)
    let missing = await Terminal.pipe.run("--ca", file.path + "x", secure.url("/get"))
    #expect(missing.status == .usage)
    #expect(missing.error.contains("'\(file.path)x'"))
  }
}
