import ChildProcesses
import Foundation
import HTTPTestServer
import Testing

@testable import AFCommand

/// Bodies of responses in files, and as they arrive.
@Suite(.timeLimit(.minutes(5))) struct DownloadTests {
  private let server: HTTPTestServer
  private let folder: Folder

  init() throws {
    server = try HTTPTestServer()
    folder = try Folder()
  }

  private func content(_ name: String) -> String? {
    FileManager.default.contents(atPath: folder.path(name)).map { String(decoding: $0, as: UTF8.self) }
  }

  @Test("-o writes the body into a file and nothing to the output")
  func output() async throws {
    _ = try folder.file("f", "an older and longer content")
    server.enqueue(.text("body"))
    let run = await Terminal().run("-o", folder.path("f"), server.url("/"))
    #expect(run.status == .success)
    #expect(run.bytes.isEmpty)
    #expect(content("f") == "body")
    #expect(try await server.takeRequest().header("Accept-Encoding") == "identity")
  }

  @Test("-o - writes the bytes to the output, also on a terminal")
  func standardOutput() async throws {
    server.enqueue(.data([0, 255]), .json(#"{"a":1}"#))
    var terminal = Terminal()
    terminal.folder = folder.path
    #expect(await terminal.run("-o", "-", server.url("/")).bytes == Data([0, 255]))
    #expect(await terminal.run("-d", "-o-", server.url("/x.json")).output == #"{"a":1}"#)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    #expect(await terminal.run("-co-", server.url("/")).status == .usage)
  }

  @Test("The page of an error is not saved, and an existing file is unchanged")
  func errorPage() async throws {
    _ = try folder.file("f", "old")
    let run = await Terminal().run("-o", folder.path("f"), server.url("/status/404"))
    #expect(run.status == .clientError)
    #expect(run.error.contains("404"))
    #expect(content("f") == "old")
  }

  @Test(
    "A body that is not saved because of its status is reported, whatever the exit status is",
    arguments: [404, 999], [[], ["--no-check-status"], ["-q", "--no-check-status"], ["--status"]])
  func unsavedBody(code: Int, options: [String]) async throws {
    var terminal = Terminal()
    terminal.folder = folder.path
    for output in [["-o", folder.path("f")], ["-d"]] {
      server.enqueue(.raw("HTTP/1.1 \(code) Denied\r\nContent-Length: 4\r\n\r\npage"))
      let run = await terminal.run(options + output + [server.url("/f")])
      let isChecked = !options.contains("--no-check-status")
      #expect(run.status == (!isChecked ? .success : code == 404 ? .clientError : .serverError))
      #expect(run.error.hasPrefix("af: The server answered \(code)"), "\(run.error)")
      #expect(run.error.hasSuffix(" Nothing was saved.\n"), "\(run.error)")
      #expect(run.output == (options == ["--status"] ? "\(code)\n" : ""))
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }
  }

  @Test("~ at the beginning of a path is the home folder, in files and in the command of curl")
  func home() async throws {
    server.enqueue(.text("body"))
    let home = ["HOME": folder.path]
    let saved = try await ChildRun([Programs.af, "--output=~/f", server.url("/")], environment: home)
    #expect(saved.status == 0, "\(saved.complaints)")
    #expect(content("f") == "body")
    let words = ["--ca=~/ca.pem", "--cert=~/a.pem", "--cert-key=~/k.pem", "--output=~/f", "--netrc-file=~/n"]
    let curl = try await ChildRun([Programs.af, "--curl"] + words + [server.url("/")], environment: home)
    let text = String(decoding: curl.output, as: UTF8.self)
    #expect(curl.status == 0 && !text.contains("~"), "\(text)\(curl.complaints)")
    for name in ["ca.pem", "a.pem", "k.pem", "f", "n"] {
      #expect(text.contains(folder.path(name)), "\(text)")
    }
    let other = try await ChildRun(
      [Programs.af, "--verify=~/ca.pem", server.url("/")], environment: home)
    #expect(
      other.status == 2 && other.complaints.contains("'\(folder.path("ca.pem"))'"), "\(other.complaints)")
  }

  @Test("A HEAD request, which has no body, neither empties nor makes a file", arguments: ["HEAD", "head"])
  func headRequest(method: String) async throws {
    _ = try folder.file("f", "old")
    var terminal = Terminal.pipe
    terminal.folder = folder.path
    for options in [["-o", folder.path("f")], ["-d"], ["-d", "-o", folder.path("g")]] {
      let run = await terminal.run(options + [method, server.url("/get")])
      #expect(run.status == .usage && run.error.contains("HEAD request has no body"), "\(run.error)")
    }
    #expect(content("f") == "old" && server.requestCount == 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["f"])
    let shown = await terminal.run("-o", "-", method, server.url("/get"))
    #expect(shown.status == .success && shown.output.hasPrefix("HTTP/1.1 200 OK\n"), "\(shown.error)")
  }

  @Test("A file that cannot be written ends the request with its path")
  func unwritable() async {
    let run = await Terminal().run("-o", folder.path("none/f"), server.url("/bytes/1000000"))
    #expect(run.status == .failure)
    #expect(run.error.contains("'\(folder.path("none/f"))' cannot be written: No such file or directory."))
  }

  @Test("A full disk ends the request")
  func fullDisk() async {
    let run = await Terminal().run("-o", "/dev/full", server.url("/bytes/100000"))
    #expect(run.status == .failure)
    #expect(run.error.contains("No space left on device"))
    #expect(!run.error.contains("af -c"), "a device is not continued")
  }

  @Test("-c appends the missing part")
  func continuation() async throws {
    let whole = await Terminal.pipe.run("-b", server.url("/range/1000")).output
    _ = try await server.takeRequest()
    _ = try folder.file("f", String(whole.prefix(400)))
    let run = await Terminal().run("-c", "-o", folder.path("f"), server.url("/range/1000"))
    #expect(run.status == .success)
    #expect(try await server.takeRequest().header("Range") == "bytes=400-")
    #expect(content("f") == whole)
  }

  @Test("-c begins at once without a file, and again if the server sends all of it")
  func continuationOfNothing() async throws {
    server.enqueue(.text("whole"), .text("whole"))
    #expect(await Terminal().run("-co", folder.path("f"), server.url("/")).status == .success)
    #expect(try await server.takeRequest().header("Range") == nil)
    _ = try folder.file("f", "wh")
    #expect(await Terminal().run("-co", folder.path("f"), server.url("/")).status == .success)
    #expect(content("f") == "whole")
  }

  @Test("-c leaves a complete file, and refuses another part than the missing one")
  func continuationRefused() async throws {
    _ = try folder.file("f", "whole")
    server.enqueue(
      .status(416).with(header: "Content-Range", value: "bytes */5"),
      .text("part").with(header: "Content-Range", value: "bytes 0-3/9"))
    #expect(await Terminal().run("-co", folder.path("f"), server.url("/")).status == .success)
    var part = Reply.text("part").with(header: "Content-Range", value: "bytes 0-3/9")
    part.status = 206
    _ = await Terminal().run("-co", folder.path("f"), server.url("/"))
    _ = try folder.file("f", "whole")
    server.enqueue(part)
    let run = await Terminal().run("-co", folder.path("f"), server.url("/"))
    #expect(run.status == .failure)
    #expect(content("f") == "whole")
  }

  @Test("-d takes the name of the server without its path, and never replaces a file")
  func suggestedNames() async throws {
    var terminal = Terminal()
    terminal.folder = folder.path
    let field = #"attachment; filename="../../evil.txt""#
    for content in ["first", "second", "third"] {
      server.enqueue(.text(content).with(header: "Content-Disposition", value: field))
      let run = await terminal.run("-d", server.url("/x"))
      #expect(run.status == .success)
      #expect(run.error.contains("Saved in evil"))
    }
    #expect(content("evil.txt") == "first")
    #expect(content("evil-1.txt") == "second")
    #expect(content("evil-2.txt") == "third")
    server.enqueue(.text("page"))
    _ = await terminal.run("-d", server.url("/dir/page.html?x=1"))
    #expect(content("page.html") == "page")
  }

  @Test("A download that breaks off says how it goes on")
  func broken() async {
    server.enqueue(.closeAfterBody(bytes: 100))
    let run = await Terminal().run("-o", folder.path("f"), server.url("/"))
    #expect(run.status == .failure)
    #expect(run.error.contains("af -c -o \(folder.path("f"))"))
  }

  @Test(
    "A part that -c cannot continue is only named",
    arguments: [["GET", "{url}", "Range:bytes=0-99"], ["POST", "{url}", "a=b"], ["GET", "{url}", "a=b"]])
  func brokenOtherwise(words: [String]) async {
    server.enqueue(.closeAfterBody(bytes: 100))
    let words = words.map { $0 == "{url}" ? server.url("/") : $0 }
    let run = await Terminal().run(["-o", folder.path("f")] + words)
    #expect(run.status == .failure)
    #expect(run.error.contains("The received part is in \(folder.path("f")).\n"), "\(run.error)")
  }

  @Test(
    "A suggested name has no path, no control characters and no leading dot",
    arguments: [
      ("a.txt", "a.txt"), ("../../etc/passwd", "passwd"), (#"..\..\boot.ini"#, "boot.ini"), ("/", "download"),
      ("..", "download"), (".bashrc", "bashrc"), ("-rf", "rf"), ("a\u{1B}[2Jb", "a[2Jb"),
      ("a\u{202E}b", "ab"), ("", "download"),
      (String(repeating: "x", count: 300), String(repeating: "x", count: 200)),
    ])
  func names(suggested: String, expected: String) {
    #expect(SavedFile.safe(suggested) == expected)
  }

  @Test("A body that is not text is refused on a terminal before it is fetched")
  func binary() async {
    let gate = Gate()
    server.enqueue(
      Reply(headers: [.contentType("image/png")], body: .parts([.gate(gate), .bytes([0])])))
    // The server never sends the body.
    let run = await Terminal().run(server.url("/"))
    #expect(run.status == .success)
    #expect(run.output.hasPrefix("HTTP/1.1 200 OK\n"))
    #expect(run.output.contains("\n\nNot text: image/png."))
    gate.open()
  }

  @Test("A body whose type hides that it is not text is refused at its first bytes")
  func hiddenBinary() async {
    let gate = Gate()
    server.enqueue(
      Reply(
        headers: [.contentType("text/plain")], body: .parts([.bytes([1, 0, 2]), .gate(gate), .bytes([0])])))
    let run = await Terminal().run("-b", server.url("/"))
    #expect(run.output.hasPrefix("Not text."))
    gate.open()
  }

  @Test("Lines reach the terminal as they arrive")
  func lines() async {
    let gate = Gate()
    var terminal = Terminal()
    let seen = Mutex(Data())
    terminal.onOutput = { data in
      let isThere = seen.withLock { seen in
        seen += data
        return String(decoding: seen, as: UTF8.self).hasSuffix("\n\nfirst\n")
      }
      // The server sends the second line when the first one is on the screen.
      if isThere { gate.open() }
    }
    server.enqueue(
      Reply(headers: [.contentType("text/plain")], body: .parts(["first\n", .gate(gate), "second\n"])))
    let run = await terminal.run(server.url("/"))
    #expect(run.output.hasSuffix("\n\nfirst\nsecond\n"))
  }

  @Test("The request ends when the reader of the output is gone")
  func closedPipe() async {
    let gate = Gate()
    server.enqueue(Reply(body: .parts(["first\n", .gate(gate), "second\n"])))
    var terminal = Terminal.pipe
    terminal.outputFailure = EPIPE
    #expect(await terminal.run(server.url("/")).status == .success)
    gate.open()
  }
}
