import Alamofire

// Samples of AppleAndLinux.md; see `SampleTests`.

private struct User: Codable, Sendable {
  var name: String
}

private func users() async throws {

  let user = try await AF.request("https://example.com/users/1")
    .validate()
    .serializingDecodable(User.self)
    .value
  print(user.name)
}
