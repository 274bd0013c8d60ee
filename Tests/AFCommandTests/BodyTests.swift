import AFCommand
import ChildProcesses
import Foundation
import HTTPTestServer
import Testing

/// Bodies of requests from files and from the standard input.
@Suite(.timeLimit(.minutes(5))) struct BodyTests {
  private let server: HTTPTestServer
  private let folder: Folder

  init() throws {
    server = try HTTPTestServer()
    folder = try Folder()
  }

  @Test("Items take their values from files")
  func values() async throws {
    let text = try folder.file("text", "Ada\n")
    let json = try folder.file("json", " [1]\n")
    let run = await Terminal.pipe.run(
      server.url("/post"), "name=@\(text)", "list:=@\(json)", "q==@\(text)", "X-Name:@\(text)")
    let request = try await server.takeRequest()
    #expect(run.status == .success)
    #expect(request.bodyText == #"{"name": "Ada\n", "list": [1]}"#)
    #expect(request.target == "/post?q=Ada")
    #expect(request.header("X-Name") == "Ada")
  }

  @Test("An item takes its value from a pipe", .enabled(if: Programs.isInstalled("bash")))
  func pipes() async throws {
    let run = try await ChildRun(
      ["bash", "-c", #""$0" "$1" a=@<(printf hi) b:=@<(printf 1)"#, Programs.af, server.url("/post")])
    #expect(run.status == 0, "\(run.complaints)")
    #expect(try await server.takeRequest().bodyText == #"{"a": "hi", "b": 1}"#)
  }

  @Test("A file is a whole body, with its length and the type of its extension")
  func wholeFile() async throws {
    let file = try folder.file("a.csv", "a,b\n")
    for arguments in [["@\(file)"], ["--raw", "@\(file)", "Content-Type:text/csv"]] {
      let run = await Terminal.pipe.run([server.url("/post")] + arguments)
      let request = try await server.takeRequest()
      #expect(run.status == .success)
      #expect(request.bodyText == "a,b\n")
      #expect(request.header("Content-Type") == "text/csv")
      #expect(request.header("Content-Length") == "4")
    }
  }

  @Test(
    "A file whose size says nothing is sent to its end",
    // A separate root may lack `/sys`.
    arguments: ["/proc/version", "/sys/devices/system/cpu/online"].filter {
      FileManager.default.fileExists(atPath: $0)
    })
  func generatedFile(path: String) async throws {
    let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
    let content = String(decoding: try handle.readToEnd() ?? Data(), as: UTF8.self)
    try handle.close()
    #expect(!content.isEmpty)
    for arguments in [
      ["@\(path)"], ["--raw", "@\(path)"], ["-f", "a@\(path)"], ["-f", "a=@\(path)"], ["a=@\(path)"],
    ] {
      let run = await Terminal.pipe.run([server.url("/post")] + arguments)
      #expect(run.status == .success, "\(arguments): \(run.error)")
      let request = try await server.takeRequest()
      #expect(request.header("Content-Length") == "\(request.body.count)")
      let isForm = request.header("Content-Type")?.contains("urlencoded") == true
      let body = isForm ? request.bodyText.removingPercentEncoding ?? "" : request.bodyText
      #expect(body.contains(content.split(separator: " ")[0].prefix(3)), "\(arguments)")
      #expect(request.body.count >= content.utf8.count, "\(arguments)")
    }
  }

  @Test("A file is sent again after a redirect that keeps the method")
  func redirectedFile() async throws {
    let file = try folder.file("a.txt", "text")
    server.enqueue(.redirect(to: "/post", status: 307))
    #expect(await Terminal.pipe.run(server.url("/here"), "@\(file)").status == .success)
    #expect(try await server.takeRequest().bodyText == "text")
    #expect(try await server.takeRequest().bodyText == "text")
  }

  @Test("A form with files is multipart, with names and types of the files")
  func multipart() async throws {
    let (picture, other) = (try folder.file("a.png", "PNG"), try folder.file("none", "x"))
    let run = await Terminal.pipe.run(
      "-f", server.url("/post"), "name=Ada", "p@\(picture)", "o@\(other);type=a/b;filename=o.x")
    let request = try await server.takeRequest()
    #expect(run.status == .success)
    #expect(request.header("Content-Type")?.hasPrefix("multipart/form-data; boundary=") == true)
    let parts = request.bodyText.components(separatedBy: "\r\n--").map {
      $0.components(separatedBy: "\r\n\r\n")
    }
    #expect(parts.compactMap { $0.dropFirst().first } == ["Ada", "PNG", "x"])
    #expect(request.bodyText.contains(#"name="p"; filename="a.png""#))
    #expect(request.bodyText.contains("Content-Type: image/png\r\n"))
    #expect(request.bodyText.contains(#"name="o"; filename="o.x""#))
    #expect(request.bodyText.contains("Content-Type: a/b\r\n"))
  }

  @Test("--multipart makes a multipart form without files")
  func multipartFields() async throws {
    _ = await Terminal.pipe.run("--multipart", server.url("/post"), "a=1")
    #expect(try await server.takeRequest().bodyText.contains("name=\"a\"\r\n\r\n1\r\n"))
  }

  private static let formTypes: [(item: String, start: String?)] = [
    ("Content-Type:multipart/mixed", "multipart/mixed; boundary=alamofire.boundary."),
    ("content-type:multipart/form-data; a=b", "multipart/form-data; a=b; boundary=alamofire.boundary."),
    (#"Content-Type:multipart/form-data; Boundary="a b""#, #"multipart/form-data; Boundary="a b""#),
    ("Content-Type:multipart/form-data;boundary=text", "multipart/form-data;boundary=text"),
    ("Content-Type;", ""), ("Content-Type:", nil),
  ]

  @Test(
    "The type of a form is sent as it is typed and shown, with the boundary of the form",
    arguments: formTypes, ["", "--compress", "sse"])
  func typedTypeOfForm(type: (item: String, start: String?), kind: String) async throws {
    let words =
      (kind == "sse" ? [kind, "POST"] : [])
      + [server.url("/post"), "a=" + String(repeating: "text ", count: 99), type.item]
    let options = ["--multipart"] + (kind == "--compress" ? [kind] : [])
    if kind == "sse" { server.enqueue(.status(204)) }
    _ = await Terminal.pipe.run(options + words)
    let request = try await server.takeRequest()
    let sent = request.header("Content-Type")
    #expect(type.start.map { start in sent?.hasPrefix(start) == true } ?? (sent == nil), "\(sent ?? "none")")
    #expect((request.header("Content-Encoding") == "deflate") == (kind == "--compress"))
    if let sent, kind != "--compress", let name = sent.range(of: "boundary=", options: .caseInsensitive) {
      let boundary = sent[name.upperBound...].trimmingCharacters(in: CharacterSet(charactersIn: "\""))
      #expect(request.bodyText.hasPrefix("--\(boundary)\r\n"), "\(request.bodyText)")
      #expect(request.bodyText.hasSuffix("\r\n--\(boundary)--\r\n"), "\(request.bodyText)")
    }
    if kind == "sse" { return }
    let shown = await Terminal.pipe.run(["--offline", "-p", "H"] + options + words).output
    let line = shown.split(separator: "\n").first { $0.lowercased().hasPrefix("content-type: ") }
    let value = line?.dropFirst("content-type: ".count)
    #expect(type.start.map { value?.hasPrefix($0) == true } ?? (value == nil), "\(shown)")
  }

  @Test(
    "A typed boundary that no form can have is refused",
    arguments: ["", "ä", "a@b", "\"\"", "\"a;b\"", "\"a\"b"])
  func wrongBoundary(boundary: String) async {
    let field = "Content-Type:multipart/form-data; boundary=\(boundary)"
    let run = await Terminal.pipe.run("--multipart", server.url("/post"), "a=1", field)
    #expect(run.status == .usage && run.error.contains("cannot be the boundary"), "\(run.error)")
    #expect(server.requestCount == 0)
  }

  @Test(
    "The boundary of a form is what servers read from a typed type with quoted strings",
    arguments: [
      (#"x="; boundary=q"; boundary=r"#, "r"), (#"x="\"; boundary=q"; boundary="r""#, "r"),
      (#"boundary="r\ s\t"; x="a"#, nil), (#"boundary="r\ s\t"; x="a""#, "r st"), (#"boundary="r"#, nil),
    ] as [(String, String?)])
  func quotedStrings(parameters: String, boundary: String?) async throws {
    let type = "multipart/form-data; \(parameters)"
    let run = await Terminal.pipe.run("--multipart", server.url("/post"), "a=1", "Content-Type:\(type)")
    #expect((run.status == .usage) == (boundary == nil), "\(run.error)")
    guard let boundary else {
      #expect(run.error.contains("a quotation mark is missing") && server.requestCount == 0, "\(run.error)")
      return
    }
    let request = try await server.takeRequest()
    #expect(request.header("Content-Type") == type)
    #expect(request.bodyText.hasPrefix("--\(boundary)\r\n"), "\(request.bodyText)")
  }

  @Test("A short input has a length, a long or chunked one is streamed")
  func inputs() async throws {
    let long = String(repeating: "x", count: 1_000_000)
    let short = await Terminal(isOutputTerminal: false, input: "short").run(server.url("/post"), "@-")
    #expect(short.status == .success)
    let first = try await server.takeRequest()
    #expect(first.bodyText == "short" && first.header("Content-Length") == "5")
    _ = await Terminal(isOutputTerminal: false, input: long).run(server.url("/post"), "@-")
    let second = try await server.takeRequest()
    #expect(second.isChunked && second.bodyText == long)
    _ = await Terminal(isOutputTerminal: false, input: "s").run("--chunked", server.url("/post"), "@-")
    #expect(try await server.takeRequest().isChunked)
  }

  @Test(
    "A slow upload shows its progress on a terminal, or if it is asked for",
    arguments: [["@FILE"], ["-f", "p@FILE"], ["@-"]], [true, false])
  func progress(items: [String], isTerminal: Bool) async throws {
    let text = String(repeating: "x", count: 3_000_000)
    let file = try folder.file("a", text)
    let gate = Gate()
    server.enqueue(.text("done").held(by: gate))
    var terminal = Terminal(isOutputTerminal: false, isErrorTerminal: isTerminal, input: text)
    terminal.tick = .seconds(1)
    // The response is sent once the progress has been seen.
    terminal.onErrorText = { if $0.contains("sent 3.0 MB") { gate.open() } }
    let run = await terminal.run(
      (isTerminal ? [] : ["--progress"]) + [server.url("/post")]
        + items.map { $0.replacingOccurrences(of: "FILE", with: file) })
    #expect(run.status == .success)
    #expect(run.output == "done")
    #expect(run.error.contains("B/s"))
    #expect(run.error.contains("sent 3.0 MB of 3.0 MB") == (items != ["@-"]))
    #expect(run.error.hasSuffix("\r\u{1B}[K"))
  }

  @Test("An upload shows no progress without a terminal, and none in quiet")
  func noProgress() async throws {
    let file = try folder.file("a", String(repeating: "x", count: 3_000_000))
    var terminal = Terminal(isOutputTerminal: false, isErrorTerminal: false, tick: .seconds(1))
    #expect(await terminal.run(server.url("/post"), "@\(file)").error.isEmpty)
    terminal.isErrorTerminal = true
    let run = await terminal.run("-q", server.url("/post"), "@\(file)")
    #expect(run.error.isEmpty && run.bytes.isEmpty && run.status == .success)
  }

  @Test("A redirected input is the body of a named method, unless it is refused or there is another body")
  func redirectedInput() async throws {
    let terminal = Terminal(isOutputTerminal: false, input: "typed", isInputRedirected: true)
    let expectations = [
      (["POST"], [], "typed"), (["PUT"], [], "typed"), ([], [], ""), (["GET"], [], ""),
      (["POST", "-I"], [], ""), (["POST"], ["a=b"], #"{"a": "b"}"#), (["DELETE"], [], ""),
    ]
    for (head, tail, expected) in expectations {
      _ = await terminal.run(
        head.filter { $0.hasPrefix("-") } + head.filter { !$0.hasPrefix("-") } + [server.url("/anything")]
          + tail)
      #expect(try await server.takeRequest().bodyText == expected)
    }
  }

  @Test("Files that are not there, folders and files of another kind are usage errors with their path")
  func missing() async throws {
    let text = try folder.file("text", "no JSON")
    for item in ["@/none", "a=@/none", "a:=@\(text)", "@\(folder.path)"] {
      let run = await Terminal.pipe.run(server.url("/post"), item)
      #expect(run.status == .usage)
      #expect(run.error.contains("'"))
    }
    #expect(await Terminal.pipe.run("-f", server.url("/post"), "a@/none").error.contains("'/none'"))
    for start in ["a=", "a==", "A:"] {
      let run = await Terminal.pipe.run("POST", server.url("/post"), "\(start)@none")
      #expect(run.status == .usage && run.error.contains("write '\(start)\\@none'"), "\(run.error)")
    }
    #expect(server.requestCount == 0)
  }

  @Test("--curl names the files")
  func curl() async throws {
    let file = try folder.file("a.png", "x")
    let run = await Terminal.pipe.run("--curl", "-f", server.url("/"), "a=b", "p@\(file);type=a/b")
    #expect(run.output.contains("--form-string a=b"))
    #expect(run.output.contains(#"--form 'p=@"\#(file)";type=a/b'"#))
    #expect(!run.output.contains("Content-Type"))
    #expect(
      await Terminal.pipe.run("--curl", server.url("/"), "@\(file)").output.contains("--data-binary @\(file)")
    )
  }
}
