import Alamofire

let concurrency = Step("Twenty at once") { stage in
  let url = stage.server.url("/delay/0.2")

  // The default limit is six connections to a host. The other requests wait in a queue.
  stage.show("each takes", "200 ms")
  stage.show("all, over six connections", "\(try await milliseconds(forTwenty: url, AF)) ms")

  let configuration = URLSessionConfiguration.af.default
  configuration.httpMaximumConnectionsPerHost = 20
  let session = Session(configuration: configuration)
  stage.show("all, over twenty connections", "\(try await milliseconds(forTwenty: url, session)) ms")
}

/// Returns the duration of twenty concurrent requests.
private func milliseconds(forTwenty url: String, _ session: Session) async throws -> Int {
  let start = ContinuousClock.now
  try await withThrowingTaskGroup(of: Void.self) { group in
    for _ in 0..<20 {
      group.addTask { _ = try await session.request(url).validate().serializingData().value }
    }
    try await group.waitForAll()
  }
  return Int((ContinuousClock.now - start) / .milliseconds(1))
}
