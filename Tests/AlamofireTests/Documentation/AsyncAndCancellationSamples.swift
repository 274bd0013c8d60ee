import Alamofire

// Samples of AsyncAndCancellation.md; see `SampleTests`.

private struct User: Codable, Sendable {
  var id: Int
}

private func show(_ value: Any) {}

private func awaiting(url: String) async throws {
  let task = AF.request(url).validate().serializingDecodable(User.self)

  let user = try await task.value  // throws an AFError
  let result = await task.result  // a Result, never throws
  let response = await task.response  // with head, body and metrics
  print(response.metrics?.taskInterval.duration ?? 0)
  show((user, result))
}

private func parallel(session: Session) async throws {
  async let first = session.request("https://example.com/users/1")
    .validate().serializingDecodable(User.self).value
  async let second = session.request("https://example.com/users/2")
    .validate().serializingDecodable(User.self).value
  print(try await [first, second].map(\.id))

  let users = try await withThrowingTaskGroup(of: User.self) { group in
    for id in 1...100 {
      group.addTask {
        try await session.request("https://example.com/users/\(id)")
          .validate().serializingDecodable(User.self).value
      }
    }
    return try await group.reduce(into: []) { $0.append($1) }
  }
  show(users)
}

private func cancelling(url: String) async {
  let work = Task {
    try await AF.request(url).serializingDecodable(User.self).value
  }
  work.cancel()
}

private func detached(url: String) async {
  // The request goes on if the awaiting task is cancelled.
  let task = AF.request(url).serializingData(automaticallyCancelling: false)
  let response = await task.response
  show(response)
}

private func deadline(url: String) async throws {
  let user = try await AF.request(url)
    .transportOptions { $0.timeLimits.total = .seconds(5) }
    .validate()
    .serializingDecodable(User.self)
    .value
  show(user)
}

private func sequences() async {
  let request = AF.request("https://example.com/large.json")
  let data = request.serializingData()  // starts the request
  for await progress in request.downloadProgress() { print(progress.fractionCompleted) }
  print(await data.result)
}

private enum ModelSample {
  @MainActor final class Model {
    private(set) var user: User?

    func load() async {
      user = try? await AF.request("https://example.com/users/1")
        .validate().serializingDecodable(User.self).value
    }
  }
}
