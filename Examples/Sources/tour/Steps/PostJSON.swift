import Alamofire

private struct Person: Codable, Sendable {
  let name: String
  let born: Int
}

private struct Echo: Decodable, Sendable {
  let json: Person
  let headers: [String: String]
}

let postJSON = Step("A POST of JSON") { stage in
  let echo = try await AF.request(
    stage.server.url("/post"), method: .post, parameters: Person(name: "Ada", born: 1815),
    encoder: JSONParameterEncoder.default
  ).serializingDecodable(Echo.self).value

  stage.show("the server understood", "\(echo.json.name), born \(echo.json.born)")
  stage.show("content type", echo.headers["Content-Type"] ?? "missing")
}
