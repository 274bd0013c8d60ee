import Alamofire

/// Sends a large number of requests with one session.
enum RequestSoak {
  /// The number of requests after which memory must stop growing.
  private static let warmUp = 1000

  struct Report: Codable {
    var before: ProcessFigures
    var after: ProcessFigures
    var failures = 0
    var firstFailure: String?
    var seconds: Double
  }

  static func run(_ url: String, _ options: TransportOptions, count: Int, concurrency: Int) async throws
    -> Report
  {
    let session = Session(transportOptions: options)
    defer { withExtendedLifetime(session) {} }
    var failures = await send(warmUp, to: url, session, concurrency)
    let before = try ProcessFigures()
    let start = ContinuousClock.now
    failures += await send(max(0, count - warmUp), to: url, session, concurrency)
    let duration = ContinuousClock.now - start
    // libdispatch begins further threads while other programs keep its own from running. They end without work.
    let after = try await ProcessFigures.settled { $0.threads <= before.threads + 1 }
    return Report(
      before: before, after: after, failures: failures.count, firstFailure: failures.first,
      seconds: duration / .seconds(1))
  }

  /// Sends requests from a number of concurrent tasks, and returns the failures.
  private static func send(_ count: Int, to url: String, _ session: Session, _ concurrency: Int) async
    -> [String]
  {
    await withTaskGroup(of: [String].self) { group in
      for worker in 0..<concurrency {
        let share = count / concurrency + (worker < count % concurrency ? 1 : 0)
        group.addTask {
          var failures: [String] = []
          for _ in 0..<share {
            let response = await session.request(url).validate().serializingData().response
            if let error = response.error { failures.append("\(error)") }
          }
          return failures
        }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
  }
}
