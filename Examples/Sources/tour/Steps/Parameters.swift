import Alamofire

private struct Search: Encodable, Sendable {
  let text: String
  let tags: [String]
  let page: Int
}

private struct Echo: Decodable, Sendable {
  let url: String
  let headers: [String: String]
}

let parameters = Step("Parameters and header fields") { stage in
  let search = Search(text: "loops & mills", tags: ["brass"], page: 2)
  let headers: HTTPHeaders = [.accept("application/json"), HTTPHeader(name: "X-Request-ID", value: "42")]
  let echo = try await AF.request(stage.server.url("/get"), parameters: search, headers: headers)
    .serializingDecodable(Echo.self).value

  stage.show("query", echo.url.components(separatedBy: "?").last ?? "")
  stage.show("X-Request-ID at the server", echo.headers["X-Request-Id"] ?? "missing")
}
