import ChildProcesses
import Foundation
import HTTPTestServer
import Testing

@testable import AFCommand

/// The file of default options, and `--no-OPTION`.
@Suite(.timeLimit(.minutes(5))) struct DefaultOptionTests {
  private let folder: Folder

  init() throws { folder = try Folder() }

  /// Runs with a file of defaults.
  private func run(_ defaults: String, _ words: String...) async throws -> Run {
    var terminal = Terminal.pipe
    terminal.variables = ["AF_CONFIG": try folder.file("config", defaults)]
    return await terminal.run(words)
  }

  @Test("The options of the file come before the arguments, which are stronger")
  func order() async throws {
    let server = try HTTPTestServer()
    let defaults = "# for all requests\n\n  --status\n-a  ann:a b=c#d \n--retry=2\r\n"
    let first = try await run(defaults, server.url("/get"))
    #expect(first.output == "200\n", "\(first.error)")
    let second = try await run(defaults, "-a", "bob:x", server.url("/get"))
    #expect(second.output == "200\n")
    let fields = server.recordedRequests.map { $0.header("Authorization") ?? "" }
    #expect(fields == ["ann:a b=c#d", "bob:x"].map { "Basic " + Data($0.utf8).base64EncodedString() })
  }

  @Test("Lines may end as on Windows, also after a comment") func windowsLines() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.text("body"))
    let defaults = "# for all\r\n\r\n--status\r\n#\u{301}\r\n-a ann:\u{301}b\r\n"
    let run = try await run(defaults, server.url("/"))
    #expect(run.output == "200\n", "\(run.error)")
    let login = Data("ann:\u{301}b".utf8).base64EncodedString()
    #expect(server.recordedRequests.first?.header("Authorization") == "Basic \(login)")
    let options = try DefaultOption.read("#\r\n--status\r\n-4", path: "config")
    #expect(options.map(\.choice.source) == ["config, line 2", "config, line 3"])
  }

  @Test("Spaces and tabs surround a value, and other kinds of spaces belong to it") func spaces() throws {
    let login = try invocation("\t-a \t ann:\u{3000}b\u{A0} \t\n", ["example.com"]).credentials
    #expect(login == Invocation.Credentials(user: "ann", password: "\u{3000}b\u{A0}"))
  }

  @Test("--no-config reads no file, and --no-OPTION undoes one option")
  func undoing() async throws {
    let server = try HTTPTestServer()
    let defaults = "--status\n-4\n--timeout 5\n"
    server.enqueue(.text("body"), .text("body"), .text("body"), .text("body"))
    for words in [["--no-config"], ["--no-status"], ["--status", "--no-status"]] {
      let run = try await run(defaults, words[0], words.last ?? "", server.url("/"))
      #expect(run.output == "body", "\(words): \(run.error)")
    }
    #expect(try await run("--no-config", "--no-status", "--status", server.url("/")).status == .usage)
    #expect(try await run("", "--no-status", "--status", server.url("/")).output == "200\n")
    let refused = try await run("", "--no-status=1", server.url("/"))
    #expect(refused.status == .usage)
    #expect(try await run("", "--no-foo", server.url("/")).error.contains("There is no option --no-foo"))
  }

  @Test(
    "A line that makes no option is named with its file and number",
    arguments: [
      ("\n--foo", "line 2: There is no option --foo"), ("X-A:1", "line 1: 'X-A:1' is not an option"),
      ("--timeout x", "line 1: --timeout needs a number"), ("--timeout", "line 1: --timeout needs a value"),
      ("-v yes", "line 1: -v does not take a value"), ("--help", "line 1: --help is for the command line"),
      ("-4\n--no-config", "line 2: --no-config is for the command line"),
      ("--completion bash", "line 1: --completion is for the command line"),
      ("-- x", "line 1: -- does not take a value"),
    ])
  func faults(defaults: String, expected: String) async throws {
    let run = try await run(defaults, "http://127.0.0.1:1/")
    #expect(run.status == .usage)
    #expect(run.error.contains("config, \(expected)"), "\(run.error)")
    // A text about the command needs no file.
    #expect(try await self.run(defaults, "--help").output == Help.text)
    #expect(try await self.run(defaults, "--completion", "fish").status == .success)
  }

  /// Returns the invocation of arguments after the options of a file.
  private func invocation(_ defaults: String, _ words: [String]) throws -> Invocation {
    let options = try DefaultOption.read(defaults, path: "config")
    let outcome = try ArgumentParser.parse(words) { () throws(UsageError) in options }
    guard case .send(let invocation) = outcome else { throw UsageError("no request") }
    return invocation
  }

  @Test("An argument is stronger than an option of the file that it excludes")
  func exclusion() throws {
    let first = try invocation("--http2\n--timeout 5", ["--http1.1", "example.com"])
    #expect(first.isHTTP1Only && !first.usesHTTP2 && first.timeout == 5)
    let second = try invocation("--timeout 5\n--http1.1", ["example.com", "--http2"])
    #expect(!second.isHTTP1Only && second.usesHTTP2 && second.timeout == 5)
    let quiet = try invocation("--progress", ["-q", "example.com"])
    #expect(quiet.isQuiet && !quiet.isProgressForced)
    let direct = try invocation("--proxy http://p.test:1\n--proxy-anyauth", ["--no-proxy", "example.com"])
    #expect(direct.proxy == nil && !direct.negotiatesProxyLogin)
    for field in ["Range:bytes=0-9", "Range:@file"] {
      #expect(try !invocation("--continue", ["-o", "f", "example.com", field]).isContinued, "\(field)")
    }
  }

  @Test(
    "Options of the file that do not fit to the action are ignored, and the others are kept",
    arguments: [
      ["ws", "example.com"], ["sse", "example.com"], ["image", "info", "example.com"],
      ["--segments", "2", "-o", "f", "example.com"],
    ])
  func unsuitable(words: [String]) throws {
    let defaults =
      "--cert-key k\n--retry 3\n--status\n--timeout 5\n--timing\n--print hb\n--continue\n--cert c\n--size 3\n"
    let invocation = try invocation(defaults, words)
    #expect(invocation.retryLimit == nil && !invocation.showsStatus && !invocation.isContinued)
    #expect(invocation.timeout == 5 && invocation.certificate == "c" && invocation.certificateKey == "k")
    #expect(invocation.imageSize == nil)
    #expect(!invocation.showsTiming && invocation.shown == .automatic)
    #expect(throws: UsageError.self) { try self.invocation(defaults, words + ["--retry", "3"]) }
  }

  @Test(
    "Faults of the file itself, and of items, stay errors",
    arguments: [
      ("--http2\n--http1.1", ["example.com"]), ("-q\n--progress", ["example.com"]),
      ("--form", ["example.com", "a:=1"]), ("--timeout 5", ["--http2", "--http1.1", "example.com"]),
      ("--retry 3", ["ws", "example.com", "a=b"]), ("--retry 3", ["ftp://example.com"]),
    ])
  func faultsOfTheFile(defaults: String, words: [String]) {
    #expect(throws: UsageError.self) { try invocation(defaults, words) }
  }

  @Test("The file is found by the variables of the XDG Base Directory Specification")
  func paths() throws {
    typealias Option = DefaultOption
    #expect(Option.path(["HOME": "/h"]) == "/h/.config/af/config")
    #expect(Option.path(["HOME": "/h", "XDG_CONFIG_HOME": "/x"]) == "/x/af/config")
    #expect(Option.path(["HOME": "/h", "XDG_CONFIG_HOME": ""]) == "/h/.config/af/config")
    #expect(Option.path(["HOME": "/h", "XDG_CONFIG_HOME": "x"]) == "/h/.config/af/config")
    #expect(Option.path(["HOME": "/h", "AF_CONFIG": "/a"]) == "/a")
    #expect(Option.path(["HOME": "/h", "AF_CONFIG": ""]) == nil)
    #expect(Option.path([:]) == nil)
    #expect(try Option.read(["HOME": folder.path]).isEmpty)
    #expect(throws: UsageError.self) { try Option.read(["AF_CONFIG": folder.path("missing")]) }
    #expect(throws: UsageError.self) { try Option.read(["AF_CONFIG": folder.path]) }
  }

  @Test("A process reads the file of its user")
  func process() async throws {
    let server = try HTTPTestServer()
    try FileManager.default.createDirectory(atPath: folder.path("af"), withIntermediateDirectories: true)
    _ = try folder.file("af/config", "--status\n")
    let words = ["env", "-u", "AF_CONFIG", "XDG_CONFIG_HOME=\(folder.path)", Programs.af]
    let run = try await ChildRun(words + [server.url("/get")])
    #expect(run.output == Data("200\n".utf8), "\(run.complaints)")
    let ignored = try await ChildRun(words + ["--no-config", server.url("/get")])
    #expect(ignored.status == 0 && ignored.output.count > 10)
  }
}
