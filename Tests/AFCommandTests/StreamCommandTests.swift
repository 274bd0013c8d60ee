import AFCommand
import Foundation
import HTTPTestServer
import Testing

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

  @Test("A server that is no WebSocket server is reported with the class of its response")
  func refused() async {
    let run = await Terminal.pipe.run("-I", "ws", server.url("/status/404"))
    #expect(run.status == .clientError)
    #expect(run.error.hasPrefix("af: "))
  }

  @Test("Events are written as they come, over several connections")
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

  @Test("On a terminal the type of an event stands in front of it")
  func eventTypes() async {
    server.enqueue(
      Reply(
        headers: [.contentType("text/event-stream")], body: .parts(["retry: 1\nevent: price\ndata: 1\n\n"])),
      .status(204))
    #expect(await Terminal().run("sse", server.url("/")).output == "price: 1\n")
  }

  @Test("A response that is no event stream is a failure of its class")
  func noEvents() async {
    #expect(await Terminal.pipe.run("sse", server.url("/status/503")).status == .serverError)
    #expect(await Terminal.pipe.run("sse", server.url("/get")).status == .failure)
  }
}
