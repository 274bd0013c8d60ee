import Alamofire
import HTTPTestServer

let cancellation = Step("Cancellation") { stage in
  // The server holds both responses back until the gate is opened, which never happens.
  let gate = Gate()
  stage.server.enqueue(.text("late").held(by: gate), .text("late").held(by: gate))
  let url = stage.server.url("/late")

  let request = AF.request(url)
  let response = request.serializingData()
  await gate.waitUntilReached()
  request.cancel()
  stage.show("request.cancel()", await response.result.failureText)

  let task = Task { await AF.request(url).serializingData().result.failureText }
  await gate.waitUntilReached(count: 2)
  task.cancel()
  stage.show("the task that waits is cancelled", await task.value)
}

extension Result where Failure == AFError {
  fileprivate var failureText: String {
    switch self {
    case .success: "no error"
    case .failure(let error): error.localizedDescription
    }
  }
}
