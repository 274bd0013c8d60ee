import Alamofire

let curlDescription = Step("The same with curl") { stage in
  let request = AF.request(
    stage.server.url("/post"), method: .post, parameters: ["name": "Ada"],
    encoder: JSONParameterEncoder.default)
  _ = try await request.serializingData().value

  for line in request.cURLDescription().split(separator: "\n") {
    stage.say(line.replacingOccurrences(of: "\t", with: "  "))
  }
}
