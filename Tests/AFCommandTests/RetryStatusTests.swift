import AFCommand
import Foundation
import HTTPTestServer
import Testing

/// The responses that `--retry` treats as temporary failures.
@Suite(.timeLimit(.minutes(5))) struct RetryStatusTests {
  @Test("--retry repeats these statuses", arguments: [408, 429, 500, 502, 503, 504])
  func repeated(status: Int) async throws {
    let server = try HTTPTestServer()
    server.enqueue(.status(status), .text("done"))
    let run = await Terminal.pipe.run("--retry", "1", server.url("/"))
    #expect(run.status == .success && run.output == "done", "\(run.error)")
    #expect(run.error.contains("\(status) ") && server.requestCount == 2)
  }

  @Test(
    "--retry repeats no other status", arguments: [204, 304, 400, 401, 403, 404, 409, 410, 425, 501, 505])
  func notRepeated(status: Int) async throws {
    let server = try HTTPTestServer()
    server.enqueue(.status(status), .text("done"))
    let run = await Terminal.pipe.run("--retry", "3", server.url("/"))
    #expect(run.status == ExitCode(statusCode: status) && server.requestCount == 1, "\(run.error)")
  }

  @Test("-v shows every attempt, with and without a length of the last body", arguments: [true, false])
  func verboseAttempts(hasLength: Bool) async throws {
    let server = try HTTPTestServer()
    let last = Reply(body: .parts(["done"])).framed(hasLength ? .contentLength : .chunked)
    server.enqueue(.status(503), last)
    let run = await Terminal.pipe.run("-v", "--retry", "1", server.url("/"))
    #expect(run.status == .success, "\(run.error)")
    let starts = run.output.components(separatedBy: "\n\n").map { String($0.prefix { $0 != "\n" }) }
    #expect(
      starts == [
        "GET / HTTP/1.1", "HTTP/1.1 503 Service Unavailable", "GET / HTTP/1.1", "HTTP/1.1 200 OK", "done",
      ])
  }

  @Test("Without --retry no request is repeated, and 429 gives the exit status of its class")
  func noRetry() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.status(429), .text("done"))
    #expect(await Terminal.pipe.run(server.url("/")).status == .clientError)
    #expect(server.requestCount == 1)
  }

  @Test("Numbers of options end at their limits, which the error names")
  func limits() async throws {
    let server = try HTTPTestServer()
    for (option, good, bad) in [
      ("--retry", ["0", "1000"], ["-1", "1001", "1.5", "9223372036854775808", "nan", ""]),
      ("--max-redirects", ["0", "1000"], ["-1", "1001", "1e3"]),
      ("--timeout", ["0.5", "999999999"], ["0", "-1", "1e9", "inf", "nan", "1e300", ""]),
      ("--max-time", ["60", "999999999"], ["0", "-0.0", "1e9", "infinity"]),
      ("--connect-timeout", ["60", "999999999"], ["0", "1e9", "-nan"]),
      (
        "--limit-rate", ["900000000000000", "1k", "1.5M", "2G"],
        ["0", "0.5", "1e15", "1e300G", "nan", "infk", "-1", "k"]
      ),
    ] {
      for value in good {
        let run = await Terminal.pipe.run(option, value, server.url("/bytes/1"))
        #expect(run.status == .success, "\(option) \(value): \(run.error)")
      }
      for value in bad {
        let run = await Terminal.pipe.run(option, value, server.url("/bytes/1"))
        #expect(
          run.status == .usage && run.error.contains("\(option) needs"), "\(option) \(value): \(run.error)")
      }
    }
  }
}
