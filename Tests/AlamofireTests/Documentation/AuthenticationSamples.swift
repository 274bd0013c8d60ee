import Alamofire

// Samples of Authentication.md; see `SampleTests`.

private struct User: Codable, Sendable {
  var name: String
}

private func show(_ value: Any) {}

private func passwords(secret: String) async throws {
  let text = try await AF.request("https://example.com/private")
    .authenticate(username: "ann", password: secret)
    .validate()
    .serializingString()
    .value
  show(text)
}

private func storage(secret: String) {
  let space = URLProtectionSpace(
    host: "example.com", port: 443, protocol: "https", realm: "files",
    authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
  let storage = URLCredentialStorage.shared
  storage.setDefaultCredential(
    URLCredential(user: "ann", password: secret, persistence: .forSession), for: space)

  let configuration = URLSessionConfiguration.af.default
  configuration.urlCredentialStorage = storage

  var options = TransportOptions()
  options.netrcFile = "~/.netrc"
  let session = Session(configuration: configuration, transportOptions: options)
  show(session)
}

private func basic(session: Session, secret: String) {
  let first = session.request(
    "https://example.com/private", headers: [.authorization(username: "ann", password: secret)])
  let second = session.request("https://example.com/private")
    .authenticate(username: "ann", password: secret)
    .transportOptions { $0.preemptiveBasicAuthentication = true }
  show((first, second))
}

private func tokens(token: String) {
  let configuration = URLSessionConfiguration.af.default
  configuration.headers.add(.authorization(bearerToken: token))
  let session = Session(configuration: configuration)

  let request = AF.request(
    "https://example.com/me", headers: [.authorization(bearerToken: token)])
  show((session, request))
}

private func errors(response: AFDataResponse<Data>) {
  if case .missingCredential = response.error?.underlyingError as? AuthenticationError {
    print("log in first")
  }
}
