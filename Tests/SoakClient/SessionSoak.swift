import Alamofire

/// Uses a large number of sessions at a time.
enum SessionSoak {
  struct Report: Codable {
    /// With all sessions alive, right after their first requests.
    var busy: ProcessFigures
    /// After the end of their idle threads, or ten seconds later.
    var idle: ProcessFigures
    /// The seconds between `busy` and `idle`.
    var seconds: Double
    /// After the last session was released.
    var released: ProcessFigures
    var failures = 0
    var firstFailure: String?
  }

  static func run(_ url: String, _ options: TransportOptions, count: Int) async throws -> Report {
    raiseDescriptorLimit()
    var sessions = (0..<count).map { _ in Session(transportOptions: options) }
    var failures = await send(to: url, sessions)
    let busy = try ProcessFigures()
    let start = ContinuousClock.now
    let idle = try await ProcessFigures.settled { $0.threads <= 16 }
    let duration = ContinuousClock.now - start
    failures += await send(to: url, sessions)
    sessions.removeAll()
    let released = try await ProcessFigures.settled { $0.threads <= 16 }
    return Report(
      busy: busy, idle: idle, seconds: duration / .seconds(1), released: released, failures: failures.count,
      firstFailure: failures.first)
  }

  /// Sends one request with each session, all at once.
  private static func send(to url: String, _ sessions: [Session]) async -> [String] {
    let tasks = sessions.map { $0.request(url).validate().serializingData() }
    var failures: [String] = []
    for task in tasks {
      if let error = await task.response.error { failures.append("\(error)") }
    }
    return failures
  }

  private static func raiseDescriptorLimit() {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }
}
