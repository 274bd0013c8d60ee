import Alamofire

let redirects = Step("Redirects") { stage in
  let followed = await AF.request(stage.server.url("/redirect/3")).serializingData().response
  stage.show(
    "GET /redirect/3",
    "\(followed.response?.statusCode ?? 0) from \(followed.response?.url?.path ?? "nowhere")")
  stage.show("redirects on the way", "\(followed.metrics?.redirectCount ?? 0)")

  let refused = await AF.request(stage.server.url("/redirect/3"))
    .transportOptions { $0.redirectLimit = 2 }
    .serializingData().response
  guard let error = refused.error else { throw Surprise("A third redirect was followed.") }
  stage.show("with redirectLimit = 2", "\(refused.response?.statusCode ?? 0), and an error")
  stage.explain(error.localizedDescription)
}
