import AFCommand
import ChildProcesses
import Foundation
import HTTPTestServer
import Testing

/// SIGINT and SIGTERM cancel a request, and what was received is saved.
@Suite(.timeLimit(.minutes(5))) struct InterruptionTests {
  private let server: HTTPTestServer
  private let folder: Folder
  private let gate = Gate()

  init() throws {
    server = try HTTPTestServer()
    folder = try Folder()
  }

  private func enqueueEndless() {
    server.enqueue(
      Reply(
        headers: [.contentType("text/event-stream"), HTTPHeader(name: "Set-Cookie", value: "k=v")],
        body: .parts(["data: 1\n\n", .gate(gate)])))
  }

  private func archivedURLs() throws -> [String] {
    let data = try Data(contentsOf: URL(fileURLWithPath: folder.path("a.har")))
    let log = (try JSONSerialization.jsonObject(with: data) as? [String: Any])?["log"] as? [String: Any]
    let entries = log?["entries"] as? [[String: Any]] ?? []
    return entries.compactMap { ($0["request"] as? [String: Any])?["url"] as? String }
  }

  @Test(
    "An interrupted request is in the archive, and its cookies are in the session", arguments: ["sse", "GET"])
  func kept(word: String) async throws {
    defer { gate.open() }
    enqueueEndless()
    var terminal = Terminal.pipe
    let interruption = Interruption()
    terminal.interruption = interruption
    terminal.onOutput = { _ in interruption.interrupt(SIGINT) }
    let run = await terminal.run(
      "--har", folder.path("a.har"), "--session", folder.path("s"), word, server.url("/x"))
    #expect(run.status == .interrupted && run.error == "")
    #expect(try archivedURLs() == [server.url("/x")])
    #expect(try String(contentsOfFile: folder.path("s"), encoding: .utf8).contains("k\\tv"))
  }

  @Test("An interrupted WebSocket connection is in the archive")
  func webSocket() async throws {
    server.enqueue(
      .webSocket(
        WebSocketEndpoint { connection in
          try connection.send("hello")
          try connection.drain()
        }))
    var terminal = Terminal.pipe
    let interruption = Interruption()
    terminal.interruption = interruption
    terminal.onOutput = { _ in interruption.interrupt(SIGTERM) }
    let run = await terminal.run("--har", folder.path("a.har"), "-I", "ws", server.url("/x"))
    #expect(run.status == .terminated && run.error == "")
    #expect(try archivedURLs() == [server.url("/x")])
  }

  @Test("Ctrl-C after the response is left to the pager") func pager() async throws {
    server.enqueue(.text("text"))
    var terminal = Terminal()
    let interruption = Interruption()
    terminal.interruption = interruption
    terminal.pager = Pager(
      write: { _ in true },
      finish: {
        interruption.interrupt(SIGINT)
        // A second one would end the tests if it were not left to the pager.
        if interruption.signal == nil { interruption.interrupt(SIGINT) }
        return nil
      })
    let run = await terminal.run("--pager", "--har", folder.path("a.har"), server.url("/x"))
    #expect(run.status == .success && run.error.isEmpty, "\(run.error)")
    #expect(try archivedURLs() == [server.url("/x")])
    let other = Interruption()
    terminal.interruption = other
    terminal.pager?.finish = {
      other.interrupt(SIGTERM)
      return nil
    }
    #expect(await terminal.run("--pager", server.url("/get")).status == .terminated)
  }

  @Test("A signal kills the process once the archive has been written", arguments: [SIGINT, SIGTERM])
  func process(signal: Int32) async throws {
    defer { gate.open() }
    enqueueEndless()
    let pipe = Pipe()
    // The tests may run in a background job, whose children ignore SIGINT.
    let program = try ChildProgram(
      ["/usr/bin/env", "--default-signal=INT", Programs.af, "--har", folder.path("a.har"), server.url("/x")],
      output: pipe.fileHandleForWriting.fileDescriptor)
    try pipe.fileHandleForWriting.close()
    #expect(try pipe.fileHandleForReading.read(upToCount: 9) == Data("data: 1\n\n".utf8))
    program.send(signal)
    #expect(await program.end() == .killed(signal: signal))
    #expect(try archivedURLs() == [server.url("/x")])
  }

  @Test("An earlier archive stays if the process is killed")
  func earlierArchive() async throws {
    defer { gate.open() }
    enqueueEndless()
    let path = try folder.file("a.har", "earlier")
    let pipe = Pipe()
    let program = try ChildProgram(
      [Programs.af, "--har", path, server.url("/x")], output: pipe.fileHandleForWriting.fileDescriptor)
    try pipe.fileHandleForWriting.close()
    #expect(try pipe.fileHandleForReading.read(upToCount: 9) == Data("data: 1\n\n".utf8))
    program.send(SIGKILL)
    #expect(await program.end() == .killed(signal: SIGKILL))
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "earlier")
  }
}
