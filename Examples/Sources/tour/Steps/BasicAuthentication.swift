import Alamofire

private struct Welcome: Decodable, Sendable {
  let user: String
}

let basicAuthentication = Step("Basic authentication") { stage in
  let url = stage.server.url("/basic-auth/ada/engine")

  let stranger = await AF.request(url).serializingData(emptyResponseCodes: [401]).response
  stage.show("without credentials", "\(stranger.response?.statusCode ?? 0)")

  let response = await AF.request(url).authenticate(username: "ada", password: "engine")
    .serializingDecodable(Welcome.self).response
  stage.show(
    "with credentials", "\(response.response?.statusCode ?? 0), welcome \(try response.result.get().user)")
}
