import Foundation
import HTTPTestServer
import Testing

@testable import AFCommand

/// The line of progress while the rest of a file arrives, and before a body on the terminal.
@Suite(.timeLimit(.minutes(5))) struct ContinuedProgressTests {
  private let server: HTTPTestServer
  private let folder: Folder

  init() throws {
    server = try HTTPTestServer()
    folder = try Folder()
  }

  /// Continues a file of 6,000 bytes. The server sends 1,000 bytes, and the rest when their progress is shown.
  private func progress(_ reply: (Gate) -> Reply) async throws -> Run {
    let file = try folder.file("f", String(repeating: "x", count: 6000))
    let gate = Gate()
    server.enqueue(reply(gate))
    let terminal = Terminal(isOutputTerminal: false, isErrorTerminal: true, tick: .seconds(1)) { gate.open() }
    return await terminal.run("-c", "-o", file, server.url("/f"))
  }

  private func part(_ gate: Gate, _ count: Int, _ range: String) -> Reply {
    var reply = Reply(body: .parts([.pattern(1000), .gate(gate), .pattern(count - 1000)]))
      .framed(.contentLength).with(header: "Content-Range", value: "bytes \(range)")
    reply.status = 206
    return reply
  }

  @Test("It counts the bytes of earlier runs, and its rate is this run's")
  func rest() async throws {
    let run = try await progress { part($0, 4000, "6000-9999/10000") }
    #expect(run.status == .success, "\(run.error)")
    #expect(run.error.contains(" 70%  "), "\(run.error)")
    #expect(run.error.contains("7.0 kB of 10 kB  1.0 kB/s  3 s left"), "\(run.error)")
  }

  @Test("Without a length it counts the bytes of all runs")
  func unknownLength() async throws {
    let run = try await progress { part($0, 4000, "6000-9999/10000").framed(.chunked) }
    #expect(run.status == .success, "\(run.error)")
    #expect(run.error.contains("\r7.0 kB  1.0 kB/s\u{1B}"), "\(run.error)")
  }

  @Test("If the server sends the whole file again, it begins again")
  func whole() async throws {
    let run = try await progress {
      Reply(body: .parts([.pattern(1000), .gate($0), .pattern(9000)])).framed(.contentLength)
    }
    #expect(run.status == .success, "\(run.error)")
    #expect(run.error.contains("1.0 kB of 10 kB  1.0 kB/s  9 s left"), "\(run.error)")
  }

  @Test("The line is removed before a body on the terminal, and nothing is removed after that")
  func removal() async throws {
    let gate = Gate()
    defer { gate.open() }
    // The second value shows that the body is not a single one. It does not end its line.
    server.enqueue(
      Reply(
        headers: [.contentType("application/json")],
        body: .parts(["{\"a\": 1}\n", .gate(gate), "{\"a\": 2}"])
      ).framed(.chunked))
    let shown = Mutex("")
    var terminal = Terminal(isErrorTerminal: true, tick: .seconds(1))
    terminal.onErrorText = { text in
      shown.withLock { $0 += text }
      gate.open()
    }
    terminal.onOutput = { data in shown.withLock { $0 += String(decoding: data, as: UTF8.self) } }
    let run = await terminal.run("-b", server.url("/"))
    #expect(run.status == .success && run.output == "{\"a\": 1}\n{\"a\": 2}\n", "\(run.error)")
    let parts = shown.withLock { $0 }.components(separatedBy: "\r\u{1B}[K")
    try #require(parts.count == 2, "the line was removed \(parts.count - 1) times")
    #expect(parts[0].hasPrefix("\r") && !parts[0].contains("{"), "\(parts[0])")
    #expect(parts[1] == run.output)
  }

  @Test(
    "No progress is drawn into a body that -o - writes to a terminal", arguments: [[], ["--pretty", "all"]])
  func plainOutput(options: [String]) async throws {
    let gate = Gate()
    defer { gate.open() }
    // To be laid out, JSON is collected until its second value.
    let parts: [Reply.Part] = ["{\"a\": 1}\n{\"a\": 2}\n", .gate(gate), "{\"a\": 3}\n"]
    server.enqueue(Reply(headers: [.contentType("application/json")], body: .parts(parts)).framed(.chunked))
    let shown = Mutex("")
    var terminal = Terminal(isErrorTerminal: true, tick: .seconds(1))
    terminal.onErrorText = { text in shown.withLock { $0 += text } }
    terminal.onOutput = { data in
      shown.withLock { $0 += String(decoding: data, as: UTF8.self) }
      gate.open()
    }
    let run = await terminal.run(options + ["-o", "-", server.url("/")])
    #expect(run.status == .success && run.output.hasSuffix("{\"a\": 3}\n"), "\(run.error)")
    let all = shown.withLock { $0 }
    let start = try #require(all.range(of: "{"))
    #expect(!all[start.lowerBound...].contains("\u{1B}[K"), "\(all)")
  }

  @Test("Lengths near the largest number are shown without a time")
  func hugeLength() async throws {
    let run = try await progress { gate in
      .raw(
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 6000-9223372036854775806/9223372036854775807\r\n"
          + "Content-Length: 9223372036854769807\r\n\r\n" + String(repeating: "y", count: 1000))
    }
    #expect(run.status == .failure)
    #expect(run.error.contains("7.0 kB of 9223372037 GB  1.0 kB/s\u{1B}"), "\(run.error)")
    for (completed, total, offset) in [
      (Int64.max, Int64.max, Int64.max), (1, .max, 0), (0, .max, .max), (1, 2, -1),
    ] {
      for elapsed in [0, 1e-9, 1, 1e300] {
        let line = ProgressLine(completed: completed, total: total, offset: offset, elapsed: elapsed)
        #expect(line.text(width: 80).count < 80)
      }
    }
  }
}
