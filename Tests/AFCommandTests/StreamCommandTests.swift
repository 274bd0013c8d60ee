import Foundation
import HTTPTestServer
import Scenarios
import Testing

@testable import AFCommand

/// `af ws` and `af sse`.
@Suite(.timeLimit(.minutes(5))) struct StreamCommandTests {
  private let server: HTTPTestServer

  init() throws {
    server = try HTTPTestServer()
  }

  @Test("Lines are sent as messages, and messages are written as lines")
  func echo() async throws {
    server.enqueue(.webSocket())
    let run = await Terminal(isOutputTerminal: false, input: "one\ntwo\nthree").run(
      "ws", ":\(server.port)/chat", "X-A:1", "q==2")
    #expect(run.status == .success)
    #expect(run.output == "one\ntwo\nthree\n")
    let request = try await server.takeRequest()
    #expect(request.target == "/chat?q=2")
    #expect(request.header("X-A") == "1")
  }

  @Test("A close code of a failure is reported, with its reason")
  func closed() async {
    server.enqueue(
      .webSocket(
        WebSocketEndpoint { connection in
          try connection.send("hello")
          try connection.close(4001, reason: "enough")
        }))
    let run = await Terminal.pipe.run("-I", "ws", server.url("/"))
    #expect(run.status == .failure)
    #expect(run.output == "hello\n")
    #expect(run.error.contains("4001: enough"))
  }

  @Test("A server that has finished, or goes away, is not a failure", arguments: [1000, 1001, 1011])
  func usualClose(code: Int) async {
    server.enqueue(.webSocket(WebSocketEndpoint { try $0.close(code) }))
    let run = await Terminal.pipe.run("-I", "ws", server.url("/"))
    #expect(run.status == (code == 1011 ? .failure : .success), "\(run.error)")
  }

  @Test("A server without WebSockets is reported with the class of its response")
  func refused() async {
    let run = await Terminal.pipe.run("-I", "ws", server.url("/status/404"))
    #expect(run.status == .clientError)
    #expect(run.error.hasPrefix("af: "))
  }

  @Test("The status of what is no stream does not matter with --no-check-status", arguments: ["ws", "sse"])
  func uncheckedStatus(action: String) async {
    let run = await Terminal.pipe.run("-I", "--no-check-status", action, server.url("/status/404"))
    #expect(run.status == .failure)
  }

  @Test("Lines of the input are divided wherever they begin and end") func inputLines() throws {
    let texts = [
      "", "a", String(repeating: "b", count: 65_535), "", String(repeating: "c", count: 200_000), "d",
    ]
    for rest in ["", "last"] {
      let input = Mutex(Data((texts.map { $0 + "\n" }.joined() + rest).utf8))
      for size in [1000, 65_536] {
        let all = input.withLock { $0 }
        var lines = InputLines { room in
          input.withLock { input in
            let count = input.prefix(size).copyBytes(to: room)
            input = Data(input.dropFirst(count))
            return count
          }
        }
        var read: [String] = []
        while let line = try lines.next() { read.append(line) }
        #expect(read == texts + (rest.isEmpty ? [] : [rest]))
        #expect(try lines.next() == nil)
        input.withLock { $0 = all }
      }
    }
  }

  @Test("Events are written as they arrive, over several connections")
  func events() async {
    func events(_ text: String) -> Reply {
      Reply(headers: [.contentType("text/event-stream")], body: .parts([.bytes(Array(text.utf8))]))
    }
    server.enqueue(
      events("retry: 1\n\nevent: price\ndata: 1\n\n"), events("data: 2\ndata: 3\n\n"), .status(204))
    let run = await Terminal.pipe.run("sse", server.url("/prices"))
    #expect(run.status == .success)
    #expect(run.output == "1\n2\n3\n")
    #expect(server.recordedRequests.first?.header("Accept") == "text/event-stream")
  }

  @Test(
    "A connection that fails is reported before the next one, unless --quiet is passed",
    arguments: [false, true])
  func failedConnection(isQuiet: Bool) async {
    func broken() -> Reply {
      let start = "retry: 1\ndata: one\n\n"
      return Reply(
        headers: [.contentType("text/event-stream")], body: .bytes(Array((start + "data: two\n\n").utf8))
      ).with(effect: .closeAfterBody(bytes: start.utf8.count))
    }
    let options = isQuiet ? ["-q"] : []
    server.enqueue(broken(), .status(204))
    let run = await Terminal.pipe.run(options + ["sse", server.url("/prices")])
    #expect(run.status == .success && run.output == (isQuiet ? "" : "one\n"), "\(run.error)")
    #expect(
      run.error.isEmpty == isQuiet && run.error.contains("Connecting again.") != isQuiet, "\(run.error)")
    #expect(server.requestCount == 2)
    // The failure of the last connection is the failure of the command.
    server.enqueue(broken())
    let post = await Terminal.pipe.run(options + ["sse", "POST", server.url("/prices")])
    #expect(post.status == .failure && !post.error.contains("Connecting again."), "\(post.error)")
    #expect(post.error.split(separator: "\n").count == 1, "\(post.error)")
  }

  @Test(
    "Data is sent with one POST, whose events end the command", arguments: ["items", "form", "file", "put"])
  func answer(kind: String) async throws {
    let folder = try Folder()
    let file = try folder.file("question.json", #"{"q": "why"}"#)
    let arguments =
      switch kind {
      case "items": ["sse", server.url("/answers"), "q=why"]
      case "form": ["-f", "sse", server.url("/answers"), "q=why"]
      case "put": ["sse", "PUT", server.url("/answers"), "q=why"]
      default: ["sse", server.url("/answers"), "@\(file)"]
      }
    server.enqueue(
      Reply(headers: [.contentType("text/event-stream")], body: .parts(["retry: 1\ndata: because\n\n"])),
      .status(204))
    let run = await Terminal.pipe.run(arguments)
    #expect(run.status == .success && run.output == "because\n", "\(run.error)")
    let request = try await server.takeRequest()
    #expect(request.method == (kind == "put" ? "PUT" : "POST"))
    #expect(request.bodyText == (kind == "form" ? "q=why" : #"{"q": "why"}"#))
    #expect(request.header("Accept") == "text/event-stream")
    #expect(server.requestCount == 1)
  }

  @Test("On a terminal the type of an event precedes it")
  func eventTypes() async {
    server.enqueue(
      Reply(
        headers: [.contentType("text/event-stream")], body: .parts(["retry: 1\nevent: price\ndata: 1\n\n"])),
      .status(204))
    #expect(await Terminal().run("sse", server.url("/")).output == "price: 1\n")
  }

  @Test("-v shows the heads of requests and responses, secrets masked", .steps)
  func heads() async throws {
    server.enqueue(.webSocket())
    step("WebSocket connection")
    let run = await Terminal(isOutputTerminal: false, input: "one\n").run(
      "-v", "-a", "u:p", "ws", ":\(server.port)/chat")
    let blocks = run.output.components(separatedBy: "\n\n")
    #expect(blocks.first?.hasPrefix("GET /chat HTTP/1.1\n") == true)
    #expect(blocks.first?.contains("\nAuthorization: Basic <redacted>") == true)
    #expect(blocks.dropFirst().first?.hasPrefix("HTTP/1.1 101") == true)
    #expect(blocks.last == "one\n")
    // A connection ends when its event is written. Before that, heads of the next one could be there.
    let gates = [Gate(), Gate()]
    for gate in gates {
      server.enqueue(
        Reply(
          headers: [.contentType("text/event-stream")],
          body: .parts(["retry: 1\ndata: 1\n\n", .gate(gate)])))
    }
    server.enqueue(.status(204))
    let count = Mutex(0)
    var terminal = Terminal.pipe
    terminal.onOutput = { data in
      guard data == Data("1\n".utf8) else { return }
      let number = count.withLock { count in
        count += 1
        return count
      }
      gates[min(number, gates.count) - 1].open()
    }
    step("server-sent events")
    let source = await terminal.run("-v", "sse", server.url("/prices"))
    let starts = source.output.components(separatedBy: "\n\n").map { $0.prefix { $0 != "\n" } }
    let first = ["GET /prices HTTP/1.1", "HTTP/1.1 200 OK", "1"]
    #expect(starts.map(String.init) == first + ["HTTP/1.1 200 OK", "1", "HTTP/1.1 204 No Content", ""])
  }

  @Test("-v and -h show the heads of a stream that fails", arguments: ["ws", "sse"])
  func headsOfFailure(action: String) async {
    let run = await Terminal.pipe.run("-v", "-I", action, server.url("/status/404"))
    let blocks = run.output.components(separatedBy: "\n\n")
    #expect(run.status == .clientError && blocks.count == 3, "\(run.output)")
    #expect(blocks.first?.hasPrefix("GET /status/404 HTTP/1.1\n") == true)
    #expect(blocks.dropFirst().first?.hasPrefix("HTTP/1.1 404 Not Found\n") == true)
    let headers = await Terminal.pipe.run("-h", "-I", action, server.url("/status/404"))
    #expect(headers.output.hasPrefix("HTTP/1.1 404 Not Found\n") && !headers.output.contains("GET "))
  }

  @Test("-h shows the heads of responses before the events")
  func headersOfEvents() async {
    server.enqueue(
      Reply(headers: [.contentType("text/event-stream")], body: .parts(["retry: 1\ndata: 1\n\n"])),
      .status(204))
    let run = await Terminal.pipe.run("-h", "sse", server.url("/prices"))
    #expect(run.output.hasPrefix("HTTP/1.1 200 OK\n") && run.output.contains("\n\n1\n"))
    #expect(!run.output.contains("GET "))
  }

  @Test("An empty input closes the connection once it is open, and the messages until then are written")
  func emptyInput() async throws {
    let closure = Mutex<WebSocketTestConnection.Event?>(nil)
    server.enqueue(
      .webSocket(
        WebSocketEndpoint { connection in
          connection.answersControlFrames = false
          let event = try connection.next()
          closure.withLock { $0 = event }
          // A message, then the Close frame that answers.
          try connection.write([0x81, 3] + Array("bye".utf8) + [0x88, 2, 0x03, 0xE8])
        }))
    var terminal = Terminal.pipe
    // Closing earlier would cancel the connection.
    let counts = Mutex<[Int]>([])
    terminal.onInput = { [server] in counts.withLock { $0.append(server.requestCount) } }
    let run = await terminal.run("ws", server.url("/"))
    #expect(run.status == .success && run.error == "", "\(run.error)")
    #expect(run.output == "bye\n")
    #expect(counts.withLock { $0 } == [1])
    #expect(closure.withLock { $0 } == .closed(code: 1000, reason: ""))
  }

  @Test(
    "An input that cannot be read, or is not UTF-8, closes the connection, and is a failure",
    arguments: [
      // A line without its end may have been cut off.
      (Array("tw".utf8), true),
      ([0x61, 0xFF, 0x62, 0x0A, 0x63, 0x0A], false), ([0xE2, 0x82, 0x0A, 0xAC, 0x0A], false),
      ([0x61, 0xFF], false),
    ] as [([UInt8], Bool)])
  func brokenInput(afterFirstLine bytes: [UInt8], isUnreadable: Bool) async throws {
    let events = Mutex<[WebSocketTestConnection.Event]>([])
    server.enqueue(
      .webSocket(
        WebSocketEndpoint { connection in
          // The command ends with the answer to its Close frame, which has to be recorded before.
          connection.answersControlFrames = false
          while let event = try connection.next() {
            events.withLock { $0.append(event) }
            if case .closed = event { return try connection.close() }
          }
        }))
    var terminal = Terminal.pipe
    terminal.inputBytes = Array("one\n".utf8) + bytes
    let failure = "Standard input cannot be read: Input/output error."
    if isUnreadable { terminal.inputFailure = UsageError(failure) }
    let run = await terminal.run("ws", server.url("/"))
    #expect(run.status == .failure)
    let reason =
      isUnreadable ? failure : "A line of the standard input is not text in UTF-8; it was not sent."
    #expect(run.error.contains(reason), "\(run.error)")
    #expect(events.withLock { $0 } == [.text("one"), .closed(code: 1000, reason: "")])
  }

  @Test("Messages and events save sessions and cookie jars", arguments: ["ws", "sse"])
  func keptState(action: String) async throws {
    let folder = try Folder()
    let cookie = HTTPHeader(name: "Set-Cookie", value: "k=v")
    if action == "ws" {
      server.enqueue(.webSocket(WebSocketEndpoint(fields: [cookie]) { try $0.close() }))
    } else {
      server.enqueue(
        Reply(headers: [.contentType("text/event-stream"), cookie], body: .parts(["data: 1\n\n"])),
        .status(204))
    }
    let (session, jar) = (folder.path("s"), folder.path("jar"))
    let run = await Terminal.pipe.run(
      "-I", "--session", session, "--cookie-jar", jar, action, server.url("/"), "X-A:1")
    #expect(run.status == .success, "\(run.error)")
    #expect(try String(contentsOfFile: jar, encoding: .utf8).contains("\tk\tv\n"))
    server.forgetRequests()
    _ = await Terminal.pipe.run("--session", session, server.url("/get"))
    #expect(server.recordedRequests.first?.header("X-A") == "1")
    #expect(server.recordedRequests.first?.header("Cookie") == "k=v")
  }

  @Test("A response that is not an event stream is a failure of its class")
  func noEvents() async {
    #expect(await Terminal.pipe.run("sse", server.url("/status/503")).status == .serverError)
    #expect(await Terminal.pipe.run("sse", server.url("/get")).status == .failure)
  }

  @Test(
    "The body of a refused response is written, unless heads alone are asked for", arguments: ["ws", "sse"])
  func refusedBody(action: String) async {
    let body = #"{"error":{"message":"context too long"}}"#
    for arguments in [[], ["-h"]] {
      server.enqueue(.json(body).with(status: 400))
      let run = await Terminal.pipe.run(arguments + ["-I", action, server.url("/answers")])
      #expect(run.status == .clientError)
      #expect(run.output.contains(body) == arguments.isEmpty, "\(run.output)")
      #expect(run.error.hasPrefix("af: ") && run.error.contains("context too long"), "\(run.error)")
    }
    server.enqueue(.json(body).with(status: 400))
    let shown = await Terminal(isOutputTerminal: true).run("-I", action, server.url("/answers"))
    #expect(shown.output.contains(#""message": "context too long""#), "\(shown.output)")
    server.enqueue(Reply.data([0, 1, 27]).with(status: 400))
    let binary = await Terminal(isOutputTerminal: true).run("-I", action, server.url("/answers"))
    #expect(binary.output.contains("Not text"), "\(binary.output)")
  }
}
