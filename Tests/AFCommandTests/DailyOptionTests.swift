import ChildProcesses
import Foundation
import HTTPTestServer
import Testing

@testable import AFCommand

/// Options for scripts and daily work: the status, repeated fields, compression, address families.
@Suite(.timeLimit(.minutes(5))) struct DailyOptionTests {
  private let server: HTTPTestServer
  private let folder: Folder

  init() throws {
    server = try HTTPTestServer()
    folder = try Folder()
  }

  // MARK: --status

  @Test(
    "--status writes the status code alone, and the exit status says the same",
    arguments: [(200, ExitCode.success), (304, .redirect), (404, .clientError), (503, .serverError)])
  func status(code: Int, exit: ExitCode) async {
    for terminal in [Terminal.pipe, Terminal()] {
      server.enqueue(Reply(status: code, body: .bytes(Array((code == 304 ? "" : "page").utf8))))
      let run = await terminal.run("--status", server.url("/"))
      #expect(run.output == "\(code)\n")
      #expect(run.status == exit)
      #expect(run.error.isEmpty)
    }
    server.enqueue(.status(code))
    #expect(await Terminal.pipe.run("--status", "--no-check-status", server.url("/")).status == .success)
  }

  @Test("--status stands after the parts that are asked for, and beside a file")
  func statusBesideParts() async throws {
    server.enqueue(.text("body\n"), .text("body"), .text("body"), .text("body"), .status(204))
    #expect(await Terminal.pipe.run("--status", "-b", server.url("/")).output == "body\n200\n")
    let head = await Terminal.pipe.run("-h", "--status", server.url("/")).output
    #expect(head.hasPrefix("HTTP/1.1 200 OK\n") && head.hasSuffix("\n200\n"))
    let file = folder.path("f")
    #expect(await Terminal.pipe.run("--status", "-o", file, server.url("/")).output == "200\n")
    #expect(FileManager.default.contents(atPath: file) == Data("body".utf8))
    #expect(await Terminal.pipe.run("-q", "--status", server.url("/")).output == "200\n")
    #expect(await Terminal.pipe.run("HEAD", "--status", server.url("/")).output == "204\n")
  }

  @Test("--status writes nothing without a response, and is not for streams of messages")
  func noStatus() async throws {
    let run = await Terminal.pipe.run("--status", "http://127.0.0.1:1/")
    #expect(run.output.isEmpty && run.status == .failure)
    for words in [["ws"], ["sse"]] {
      let refused = await Terminal.pipe.run(["--status"] + words + [server.url("/")])
      #expect(refused.status == .usage && refused.error.contains("--status is for one response"))
    }
    #expect(await Terminal.pipe.run("-w", "%{http_code}", server.url("/")).error.contains("--status"))
  }

  // MARK: Header fields

  @Test("A name that comes twice is two fields, as typed")
  func repeatedFields() async throws {
    _ = await Terminal.pipe.run(
      server.url("/get"), "X-A:1", "x-a:2", "X-B:3", "X-A:1", "Cookie:a=1", "Cookie:b=2", "User-Agent:x",
      "User-Agent:y")
    let request = try await server.takeRequest()
    func values(_ name: String) -> [String] {
      request.headers.filter { $0.name.lowercased() == name }.map(\.value)
    }
    #expect(values("x-a") == ["1", "2", "1"])
    #expect(values("x-b") == ["3"])
    #expect(values("cookie") == ["a=1; b=2"])
    #expect(values("user-agent") == ["y"])
  }

  @Test("A name is left out with all its values, and later ones are sent")
  func omittedFields() async throws {
    _ = await Terminal.pipe.run(server.url("/get"), "X-A:1", "X-A:2", "x-a:", "X-A:3", "X-A:4")
    let request = try await server.takeRequest()
    #expect(request.headers.filter { $0.name.lowercased() == "x-a" }.map(\.value) == ["3", "4"])
  }

  @Test("Repeated fields follow a redirect to the same origin, and secret ones go nowhere else")
  func redirectedFields() async throws {
    let other = try HTTPTestServer()
    server.enqueue(.redirect(to: "/there"), .redirect(to: other.url("/get")))
    _ = await Terminal.pipe.run(server.url("/here"), "X-A:1", "X-A:2")
    _ = try await server.takeRequest()
    for server in [server, other] {
      let request = try await server.takeRequest()
      #expect(request.headers.filter { $0.name == "X-A" }.map(\.value) == ["1", "2"])
    }
  }

  @Test("Repeated fields are shown before and after they are sent, their secrets masked")
  func shownFields() async {
    let words = [server.url("/get"), "X-A:1", "X-A:2", "X-Api-Key:s3cret-1", "X-Api-Key:s3cret-2"]
    server.enqueue(.status(204))
    for option in ["--offline", "-v"] {
      let run = await Terminal.pipe.run([option] + words)
      #expect(run.output.contains("X-A: 1\n") && run.output.contains("X-A: 2\n"), "\(option)")
      #expect(!run.output.contains("s3cret"), "\(option)")
    }
  }

  @Test("Repeated fields are sent with the handshake of a WebSocket and with events")
  func streamedFields() async throws {
    server.enqueue(.webSocket(WebSocketEndpoint { try $0.close() }), .status(204))
    for action in ["ws", "sse"] {
      _ = await Terminal.pipe.run("-I", action, server.url("/"), "X-A:1", "X-A:2")
      let request = try await server.takeRequest()
      #expect(request.headers.filter { $0.name == "X-A" }.map(\.value) == ["1", "2"], "\(action)")
    }
  }

  @Test("A session keeps each value of a field")
  func keptFields() async throws {
    let session = folder.path("s.json")
    _ = await Terminal.pipe.run("--session", session, server.url("/get"), "X-A:1", "X-A:2")
    _ = await Terminal.pipe.run("--session", session, server.url("/get"))
    for _ in 0..<2 {
      let request = try await server.takeRequest()
      #expect(request.headers.filter { $0.name == "X-A" }.map(\.value) == ["1", "2"])
    }
  }

  @Test(
    "A value with a line break or a NUL is refused before anything is sent",
    arguments: ["--curl", "--offline", "-b"])
  func injectedFields(option: String) async throws {
    for value in ["1\r\nX-Evil: 2", "1\nX-Evil: 2", "a\rb"] {
      let file = try folder.file("value", value)
      for words in [["X-A:\(value)"], ["X-A:1", "X-A:\(value)"], ["X-A:@\(file)"]] {
        let run = await Terminal.pipe.run([option, server.url("/")] + words)
        #expect(run.status == .usage && run.error.contains("'X-A' has a line break"), "\(words)")
      }
    }
    #expect(server.requestCount == 0)
  }

  // MARK: --compress

  private static let text = String(repeating: "compress me ", count: 1000)

  @Test(
    "--compress sends the body of each kind as deflate",
    arguments: ["raw", "item", "file", "input", "form", "sse"])
  func compression(kind: String) async throws {
    let file = try folder.file("t.txt", Self.text)
    var terminal = Terminal.pipe
    var words = ["--compress", "POST", server.url("/post")]
    switch kind {
    case "raw": words += ["--raw", Self.text]
    case "item": words += ["a=\(Self.text)"]
    case "file": words += ["@\(file)"]
    case "form": words = ["-f"] + words + ["f@\(file)"]
    case "sse": words = ["--compress", "sse", "POST", server.url("/post"), "a=\(Self.text)"]
    default:
      terminal.input = Self.text + String(repeating: "x", count: 300_000)
      terminal.isInputRedirected = true
    }
    if kind == "sse" { server.enqueue(.status(204)) }
    let run = await terminal.run(words)
    let request = try await server.takeRequest()
    if kind != "sse" { #expect(run.status == .success, "\(run.error)") }
    #expect(request.header("Content-Encoding") == "deflate")
    #expect(request.bodyLength < 3000)
    #expect(request.header("Content-Length") == "\(request.bodyLength)")
    let plain = try await inflated(request.body)
    #expect(plain.contains(Self.text))
    if kind == "input" { #expect(plain == terminal.input) }
    if kind == "form" {
      #expect(request.header("Content-Type")?.hasPrefix("multipart/form-data; boundary=") == true)
      #expect(plain.contains("filename=\"t.txt\""))
    }
  }

  /// Returns the text of a body in the zlib format, read by another program.
  private func inflated(_ bytes: [UInt8]) async throws -> String {
    let path = folder.path("body")
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    let run = try await ChildRun(
      [
        "python3", "-c",
        "import sys,zlib; sys.stdout.buffer.write(zlib.decompress(open(sys.argv[1],'rb').read()))", path,
      ])
    #expect(run.status == 0, "\(run.complaints)")
    return String(decoding: run.output, as: UTF8.self)
  }

  @Test("--compress leaves a body alone that would not become smaller, and one that is empty")
  func incompressible() async throws {
    for words in [["--raw", "x"], []] {
      _ = await Terminal.pipe.run(["--compress", "POST", server.url("/post")] + words)
      let request = try await server.takeRequest()
      #expect(request.header("Content-Encoding") == nil)
      #expect(request.bodyText == words.last ?? "")
    }
  }

  @Test("--compress keeps the text in what is shown, and does not code a body twice")
  func shownCompression() async {
    for option in ["--offline", "-v"] {
      let run = await Terminal.pipe.run(option, "--compress", server.url("/post"), "--raw", Self.text)
      #expect(run.output.contains("Content-Encoding: deflate\n"), "\(option)")
      #expect(run.output.contains("compress me compress me"), "\(option)")
      #expect(!run.output.contains("Content-Length: \(Self.text.utf8.count)\n"), "\(option)")
    }
    let twice = await Terminal.pipe.run("--compress", server.url("/"), "--raw", "x", "Content-Encoding:gzip")
    #expect(twice.status == .usage && twice.error.contains("--compress sets Content-Encoding"))
  }

  // MARK: -4 and -6

  @Test("-4 and -6 connect to addresses of one family")
  func families() async {
    let port = server.port
    #expect(await Terminal.pipe.run("-4", "http://localhost:\(port)/get").status == .success)
    // The test server listens only on IPv4.
    let wrong = await Terminal.pipe.run("-6", "http://localhost:\(port)/get")
    #expect(wrong.status == .failure && wrong.error.hasSuffix(" With -6, only IPv6 addresses are used.\n"))
    #expect(await Terminal.pipe.run("-6", "-4", "http://localhost:\(port)/get").status == .success)
    #expect(await Terminal.pipe.run("-6", "http://127.0.0.1:\(port)/get").status == .failure)
  }

  // MARK: URLs

  @Test(
    "A second URL is answered with what to do",
    arguments: ["https://b.example", ":8080/b", ":/b", "//b.example", "b.example", "b.example/path"])
  func secondURL(text: String) async {
    let run = await Terminal.pipe.run(server.url("/"), text)
    #expect(run.status == .usage)
    #expect(run.error.contains("'\(text)'"))
    #expect(
      run.error.contains("run af again") || run.error.contains("Run it once for each URL"), "\(run.error)")
  }

  // MARK: Standard input

  @Test("Unsent input is reported, unless -I or -q is given")
  func unsentInput() async {
    var terminal = Terminal.pipe
    (terminal.input, terminal.isInputRedirected) = ("typed", true)
    let note = "af: The standard input was not sent: "
    let get = await terminal.run(server.url("/get"))
    #expect(
      get.error == note
        + "a GET does not read it. Write POST before the URL, or @- as the body. -I leaves this line out.\n")
    #expect(get.status == .success)
    let other = await terminal.run("POST", server.url("/post"), "a=b")
    #expect(other.error == note + "the request has another body. -I leaves this line out.\n")
    for words in [
      ["-I", server.url("/get")], ["-q", server.url("/get")], ["POST", server.url("/post")],
      [server.url("/post"), "@-"],
    ] {
      #expect(await terminal.run(words).error.isEmpty, "\(words)")
    }
    terminal.input = ""
    #expect(await terminal.run(server.url("/get")).error.isEmpty)
    terminal = Terminal.pipe
    terminal.input = "typed"
    #expect(await terminal.run(server.url("/get")).error.isEmpty)
  }

  @Test("The process sees whether its input has bytes, from a file and from a pipe")
  func unsentInputOfProcess() async throws {
    let file = URL(fileURLWithPath: try folder.file("input", "typed"))
    let run = try await ChildRun([Programs.af, server.url("/get")], input: file)
    #expect(run.complaints.contains("The standard input was not sent"))
    let empty = URL(fileURLWithPath: try folder.file("empty", ""))
    #expect(try await ChildRun([Programs.af, server.url("/get")], input: empty).complaints.isEmpty)
    // The shell reads one of two lines, which arrive at once.
    let script = "printf 'a\\nb\\n' | { read -r line; \"$0\" \"$1\"; }"
    let piped = try await ChildRun(["sh", "-c", script, Programs.af, server.url("/get")])
    #expect(piped.complaints.contains("The standard input was not sent"))
  }
}
