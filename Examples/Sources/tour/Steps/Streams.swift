import Alamofire
import HTTPTestServer

let streams = Step("A stream of JSON, value by value") { stage in
  struct Line: Decodable, Sendable {
    let id: Int
  }
  let task = AF.streamRequest(stage.server.url("/stream/3")).validate().streamTask()
  for await stream in task.streamingDecodables(Line.self) {
    switch stream.event {
    case .stream(let result): stage.show("a value", "\(try result.get().id)")
    case .complete(let completion):
      stage.show(
        "the end", completion.error?.localizedDescription ?? "\(completion.response?.statusCode ?? 0)")
    }
  }
}
