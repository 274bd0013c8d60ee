import Alamofire
import HTTPTestServer

let timeouts = Step("Timeouts") { stage in
  stage.server.enqueue(.stall)
  let response = await AF.request(stage.server.url("/silence"), requestModifier: { $0.timeoutInterval = 0.3 })
    .serializingData().response
  guard let error = response.error?.underlyingError as? URLError, error.code == .timedOut else {
    throw Surprise("A server that says nothing did not run into the timeout.")
  }
  stage.show("after 0.3 s without a byte", "URLError.timedOut")
  stage.explain(error.localizedDescription)
}
