import Foundation
import Scorecard
import Synchronization

/// Holds the number of requests in flight constant: the end of each request starts the next.
struct ClosedLoop: Sendable {
  var client: any GetClient
  var row: Row
  var concurrency: Int
  /// The pause before each request, in microseconds. When thread hops are counted, it is long enough for all threads
  /// of the client to fall asleep.
  var pause: UInt32 = 0

  /// Sends `count` requests. The first failure ends the run.
  func perform(_ count: Int) async throws -> LatencyLog {
    let log = LatencyLog(count: count)
    switch row {
    case .getData, .handshake, .resumption:
      try await inTasks(log) { if try await client.data().isEmpty { throw UnexpectedResponse() } }
    case .getDecodable:
      try await inTasks(log) { if try await client.item().id != 12345 { throw UnexpectedResponse() } }
    case .getCallback:
      try await inCallbacks(log)
    case .adapted, .validated, .posted, .withCookies, .redirected, .compressed, .authenticated:
      try await inTasks(log) { if try await client.everyday(row).isEmpty { throw UnexpectedResponse() } }
    }
    return log
  }

  private func inTasks(_ log: LatencyLog, _ request: @escaping @Sendable () async throws -> Void) async throws
  {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<concurrency {
        group.addTask {
          while let ticket = log.ticket() {
            let start = Clock.monotonic()
            try await request()
            log.ended(ticket, since: start)
            if pause > 0 { usleep(pause) }
          }
        }
      }
      try await group.waitForAll()
    }
  }

  private func inCallbacks(_ log: LatencyLog) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<concurrency {
        group.addTask {
          try await withCheckedThrowingContinuation { ended in
            next(log, ended)
          }
        }
      }
      try await group.waitForAll()
    }
  }

  /// Sends one request after the other, each from the callback of the previous one.
  private func next(_ log: LatencyLog, _ ended: CheckedContinuation<Void, any Error>) {
    guard let ticket = log.ticket() else { return ended.resume() }
    let start = Clock.monotonic()
    client.callback { result in
      log.ended(ticket, since: start)
      if pause > 0 { usleep(pause) }
      switch result {
      case .success(let data) where !data.isEmpty: next(log, ended)
      case .success: ended.resume(throwing: UnexpectedResponse())
      case .failure(let error): ended.resume(throwing: error)
      }
    }
  }
}
