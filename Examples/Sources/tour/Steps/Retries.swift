import Alamofire
import HTTPTestServer

let retries = Step("A server that is busy at first") { stage in
  stage.server.enqueue(.status(503), .status(503))
  let request = AF.request(stage.server.url("/get"), interceptor: .retryPolicy(exponentialBackoffScale: 0.01))
  let response = await request.validate().serializingData().response
  stage.show("GET /get", "\(response.response?.statusCode ?? 0) after \(request.retryCount) retries")
}
