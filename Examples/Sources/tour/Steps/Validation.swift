import Alamofire

let validation = Step("Validation, and what it says") { stage in
  let missing = await AF.request(stage.server.url("/status/404")).validate().serializingData().response
  guard let error = missing.error else { throw Surprise("A 404 passed the validation.") }
  stage.show("GET /status/404", "\(error.responseCode ?? 0)")
  stage.explain(error.localizedDescription)

  let page = await AF.request(stage.server.url("/html"))
    .validate(contentType: ["application/json"]).serializingData().response
  guard let error = page.error else { throw Surprise("A page passed as JSON.") }
  stage.show("GET /html, JSON wanted", error.responseContentType ?? "no content type")
  stage.explain(error.localizedDescription)
}
