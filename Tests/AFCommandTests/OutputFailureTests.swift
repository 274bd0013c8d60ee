import ChildProcesses
import Foundation
import HTTPTestServer
import Testing

@testable import AFCommand

/// A standard output that cannot be written: a full disk, a closed descriptor, a pipe without a reader.
@Suite(.timeLimit(.minutes(5))) struct OutputFailureTests {
  private let server: HTTPTestServer
  private let folder: Folder

  init() throws {
    server = try HTTPTestServer()
    folder = try Folder()
  }

  /// Runs the command with its output redirected by the shell.
  private func run(_ redirection: String, _ arguments: [String], input: URL? = nil) async throws -> ChildRun {
    try await ChildRun(
      ["/bin/sh", "-c", "exec \"$0\" \"$@\" \(redirection)", Programs.af] + arguments,
      environment: ["XDG_DATA_HOME": folder.path], input: input)
  }

  private static let events = Reply(
    headers: [.contentType("text/event-stream")], body: .parts(["data: one\n\n", "data: two\n\n"]))

  @Test(
    "An output that cannot be written is an error with its own status",
    arguments: [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")])
  func everyOutput(redirection: String, reason: String) async throws {
    let url = server.url("/get")
    let ways: [[String]] = [
      [url], ["-b", url], ["-h", url], ["-v", url], ["-p", "Hh", url], ["-o", "-", url],
      ["--pretty", "all", url],
      ["HEAD", url], ["--offline", url], ["--curl", url], ["--help"], ["-h"], ["--version"], ["--man"],
      ["--completion", "bash"], ["--completion", "zsh"], ["--completion", "fish"],
      ["-h", "-o", folder.path("f"), url],
    ]
    for arguments in ways {
      let run = try await run(redirection, arguments)
      #expect(run.status == 23, "\(arguments): \(run.end)")
      #expect(run.complaints == "af: The output cannot be written: \(reason).\n", "\(arguments)")
    }
    // The file does not need the output.
    #expect(FileManager.default.fileExists(atPath: folder.path("f")))
  }

  @Test(
    "Messages and events that cannot be written end the connection",
    arguments: [">/dev/full", ">&-"], [[], ["-v"], ["-h"]])
  func streams(redirection: String, option: [String]) async throws {
    let gate = Gate()
    defer { gate.open() }
    server.enqueue(
      Reply(
        headers: [.contentType("text/event-stream")], body: .parts(["data: one\n\n", .gate(gate)])))
    let events = try await run(redirection, option + ["sse", server.url("/")])
    #expect(events.status == 23, "\(events.end) \(events.complaints)")
    #expect(events.complaints.hasPrefix("af: The output cannot be written: "))
    server.enqueue(
      .webSocket(
        WebSocketEndpoint { connection in
          try connection.send("hello")
          try connection.echo()
        }))
    let socket = try await run(redirection, option + ["-I", "ws", server.url("/")])
    #expect(socket.status == 23, "\(socket.end) \(socket.complaints)")
    #expect(socket.complaints.hasPrefix("af: The output cannot be written: "))
  }

  @Test(
    "A request ends at the first byte that cannot be written, whatever its status", arguments: [200, 404])
  func endlessBody(status: Int) async throws {
    let gate = Gate()
    defer { gate.open() }
    for arguments in [["-b"], ["-h"], ["-o", "-"]] {
      // The server never ends the body.
      var reply = Reply(body: .parts(["first\n", .gate(gate)]))
      reply.status = status
      server.enqueue(reply)
      let run = try await run(">/dev/full", arguments + [server.url("/")])
      #expect(run.status == 23, "\(arguments): \(run.end) \(run.complaints)")
    }
  }

  @Test("A disk that becomes full in the middle is an error, and no output follows the gap")
  func fullInTheMiddle() async throws {
    let seen = Mutex(0)
    var terminal = Terminal.pipe
    terminal.failureOfOutput = { data in
      seen.withLock { count in
        count += 1
        return count == 2 ? ENOSPC : nil
      }
    }
    let gate = Gate()
    defer { gate.open() }
    server.enqueue(Self.events, .status(204))
    let run = await terminal.run("sse", server.url("/"))
    #expect(run.status == .output && run.output == "one\n")
    #expect(run.error == "af: The output cannot be written: No space left on device.\n")
    #expect(seen.withLock { $0 } == 2)
  }

  @Test("A reader that has seen enough is not an error, and cookies are stored all the same")
  func closedPipe() async throws {
    let jar = folder.path("jar")
    // The reader of the pipe has exited before the program begins.
    let script = """
      import os, sys
      reader, writer = os.pipe()
      os.close(reader)
      os.dup2(writer, 1)
      os.execvp(sys.argv[1], sys.argv[1:])
      """
    let words = ["/usr/bin/env", "python3", "-c", script, Programs.af, "--cookie-jar", jar]
    for (arguments, isStored) in [
      ([server.url("/cookies/set/k/v")], true), (["-b", server.url("/cookies/set/k/v")], true),
      (["--help"], false), (["--offline", server.url("/")], false),
    ] {
      try? FileManager.default.removeItem(atPath: jar)
      let run = try await ChildRun(words + arguments)
      #expect(run.status == 0 && run.complaints == "", "\(arguments): \(run.end) \(run.complaints)")
      #expect(FileManager.default.fileExists(atPath: jar) == isStored, "\(arguments)")
    }
  }

  @Test("No output follows a failed write") func gap() async {
    let count = Mutex(0)
    var terminal = Terminal.pipe
    terminal.failureOfOutput = { _ in
      count.withLock { count in
        count += 1
        return count == 1 ? ENOSPC : nil
      }
    }
    let run = await terminal.run("-v", server.url("/bytes/10"))
    #expect(run.bytes.isEmpty, "\(run.output)")
    #expect(run.error.contains("No space left on device"))
  }

  @Test(
    "A closed standard input or error does not become a file of the request",
    arguments: ["<&-", "2>&-", "<&- 2>&-", "0<&- 1>&- 2>&-"])
  func closedDescriptors(redirection: String) async throws {
    server.enqueue(.text("body"))
    let file = folder.path("f")
    let run = try await run(redirection, ["-o", file, "POST", server.url("/x"), "a=b"])
    #expect(run.status == 0, "\(run.end)")
    #expect(FileManager.default.contents(atPath: file) == Data("body".utf8))
    #expect(try await server.takeRequest().bodyText == #"{"a": "b"}"#)
    server.enqueue(.text("to the output"))
    let shown = try await self.run(redirection, ["--raw", "@-", "POST", server.url("/x")])
    #expect(shown.status != 0 || shown.output == Data("to the output".utf8))
  }

  @Test("--quiet writes nothing, and an output that is full does not matter")
  func quiet() async throws {
    let run = try await run(">/dev/full", ["-q", server.url("/get")])
    #expect(run.status == 0 && run.complaints == "")
  }

  @Test("An archive on a full disk is an error")
  func fullDiskOfArchive() async throws {
    let run = await Terminal.pipe.run("--har", "/dev/full", server.url("/get"))
    #expect(run.status == .failure, "\(run.error)")
    #expect(run.error == "af: '/dev/full' cannot be written: No space left on device.\n")
  }
}
