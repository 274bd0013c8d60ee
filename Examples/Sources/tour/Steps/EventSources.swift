import Alamofire
import HTTPTestServer

let eventSources = Step("Server-sent events, over two connections") { stage in
  func events(_ text: String) -> Reply {
    .text(text).with(header: "Content-Type", value: "text/event-stream")
  }
  stage.server.enqueue(
    events("retry: 10\n\nid: 1\nevent: price\ndata: 0.92\n\n"),
    events("id: 2\nevent: price\ndata: 0.93\n\n"),
    .status(204))
  for try await event in AF.eventSourceRequest(stage.server.url("/prices")).events() {
    stage.show("event \(event.id)", "\(event.type) \(event.data)")
  }
  let last = stage.server.recordedRequests.last?.header("Last-Event-ID") ?? "none"
  stage.show("the last connection asked behind", "event \(last)")
}
