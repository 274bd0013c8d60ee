import Alamofire

// Samples of FromOtherClients.md; see `SampleTests`.

private struct User: Codable, Sendable {
  var name: String
}

private func show(_ value: Any) {}

private func user(url: URL) async throws {
  let user = try await AF.request(url).validate().serializingDecodable(User.self).value
  show(user)
}

private func stream(url: String) async {
  let task = AF.streamRequest(url).streamTask()
  for await stream in task.streamingData() {
    if case .stream(.success(let chunk)) = stream.event { print(chunk.count) }
  }
}
