import AFCommand
import ChildProcesses
import Foundation
import HTTPTestServer
import Testing

/// The start of the pager of `--pager`, beside questions, errors and files.
@Suite(.timeLimit(.minutes(5))) struct PagerTests {
  /// The text that the pager gets, and the order of its start and of questions.
  private final class Pages: Sendable {
    let steps = Mutex<[String]>([])
    let text = Mutex(Data())

    func note(_ step: String) { steps.withLock { $0.append(step) } }
  }

  private let server: HTTPTestServer
  private let folder: Folder
  private let pages = Pages()

  init() throws {
    server = try HTTPTestServer()
    folder = try Folder()
  }

  private var terminal: Terminal {
    var terminal = Terminal()
    let pages = pages
    terminal.folder = folder.path
    terminal.secret = "tea"
    terminal.onQuestion = { pages.note("question") }
    terminal.onPager = { pages.note("pager") }
    terminal.pager = Pager(
      write: { data in
        pages.text.withLock { $0 += data }
        return true
      }, finish: { nil })
    return terminal
  }

  private var steps: [String] { pages.steps.withLock { $0 } }

  @Test(
    "The pager has the terminal after the question for a passphrase",
    .enabled(if: Programs.isInstalled("openssl")))
  func passphrase() async throws {
    let identity = try TestIdentity(.init(commonName: "Ada"))
    let plain = try folder.file("plain.pem", identity.privateKeyPEM)
    let (certificate, key) = (try folder.file("a.pem", identity.certificatePEM), folder.path("key.pem"))
    let made = try await ChildRun(
      ["openssl", "pkcs8", "-topk8", "-v2", "aes256", "-passout", "pass:tea", "-in", plain, "-out", key])
    try #require(made.status == 0, "\(made.complaints)")
    server.enqueue(.text("shown"))
    let run = await terminal.run(
      "--pager", "-b", "-a", "ann", "--cert", certificate, "--cert-key", key, server.url("/"))
    #expect(run.status == .success && run.output.isEmpty, "\(run.error)")
    #expect(steps == ["question", "question", "pager"])
    #expect(String(decoding: pages.text.withLock { $0 }, as: UTF8.self).contains("shown"))
  }

  @Test(
    "An argument that is refused, or output that goes elsewhere, starts no pager",
    arguments: [
      ["--ca", "/none.pem"], ["--unix-socket", "/none"], ["-c", "-o", "/dev/null"], ["-o", "FOLDER/f"],
      ["-d"],
      ["-q"], ["--status"], ["-p", ""], ["-o", "-"],
    ])
  func noOutput(options: [String]) async throws {
    let options = options.map { $0.replacingOccurrences(of: "FOLDER", with: folder.path) }
    let run = await terminal.run(["--pager"] + options + [server.url("/get")])
    let isRefused = run.error.contains("/none") || options.contains("-c")
    #expect((run.status == .usage) == isRefused, "\(run.error)")
    #expect(steps.isEmpty)
  }

  @Test("The head of a response whose body is saved is paged")
  func headOfFile() async throws {
    let run = await terminal.run("--pager", "-v", "-o", folder.path("f"), server.url("/get"))
    #expect(run.status == .success && run.output.isEmpty, "\(run.error)")
    #expect(steps == ["pager"])
    #expect(String(decoding: pages.text.withLock { $0 }, as: UTF8.self).contains("HTTP/1.1 200 OK"))
  }
}
