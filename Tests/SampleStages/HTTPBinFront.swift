import ChildProcesses
import Foundation
package import HTTPTestServer
import Synchronization

/// A front of a real httpbin: a test server accepts and records requests over TLS, and this type forwards those for
/// httpbin.org. Responses are returned byte for byte.
///
/// Many samples ignore their response. Therefore each request for httpbin.org is also sent to a test server, and
/// ``verdict()`` reports whether both parsed the same request.
package final class HTTPBinFront: Sendable {
  private struct State {
    var port: UInt16 = 0
    var underWay = 0
    var differences: [String] = []
    /// Requests by their connections, and their numbers there.
    var answered: Set<[Int]> = []
    var waiters: [(isOver: @Sendable (State) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state = Mutex(State())

  package init() {}

  /// Sets where httpbin is; nowhere, before.
  package func lead(to port: UInt16) { state.withLock { $0.port = port } }

  /// The routes of the server in front.
  ///
  /// - Parameter others: The port of the test server that answers for all other hosts, over plain HTTP.
  package func routes(others: Int) -> Routes {
    Routes.none.adding("/**") { request, _ in self.answer(to: request, others: UInt16(others)) }
  }

  /// A request that goes nowhere is answered with 502 and the reason.
  private func answer(to request: RecordedRequest, others: UInt16) -> Reply {
    let port = state.withLock { state in
      state.underWay += 1
      return state.port
    }
    var difference: String?
    defer { finish(request, difference) }
    do {
      let bytes = ForwardedRequest(request).bytes
      let answer = try Loopback.exchange(bytes, with: others)
      guard request.header("Host") == "httpbin.org" else { return .raw(answer) }
      let real = try Loopback.exchange(bytes, with: port)
      difference = EchoedRequest(real).difference(from: EchoedRequest(answer))
        .map { "\(request.method) \(request.target): \($0)" }
      return .raw(real)
    } catch {
      difference = "\(request.method) \(request.target) went nowhere: \(error)"
      var reply = Reply.text("\(error)")
      reply.status = 502
      return reply
    }
  }

  private func finish(_ request: RecordedRequest, _ difference: String?) {
    let over = state.withLock { state in
      state.underWay -= 1
      state.answered.insert([request.connection, request.indexOnConnection])
      state.differences += [difference].compactMap(\.self)
      let waiters = state.waiters
      state.waiters = waiters.filter { !$0.isOver(state) }
      return waiters.filter { $0.isOver(state) }.map(\.continuation)
    }
    for continuation in over { continuation.resume() }
  }

  private func wait(until isOver: @escaping @Sendable (State) -> Bool) async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if isOver(state) { return true }
        state.waiters.append((isOver, continuation))
        return false
      }
      if isOver { continuation.resume() }
    }
  }

  /// Waits until a request is answered that was recorded in front. One for another host need not have come here.
  package func untilAnswered(_ request: RecordedRequest) async {
    guard request.header("Host") == "httpbin.org" else { return }
    await wait { $0.answered.contains([request.connection, request.indexOnConnection]) }
  }

  /// Waits until every request that has come is answered, forgets them, and returns where httpbin has understood
  /// something else than the test server.
  package func verdict() async -> [String] {
    await wait { $0.underWay == 0 }
    return state.withLock { state in
      defer { (state.differences, state.answered) = ([], []) }
      return state.differences
    }
  }
}
