import ChildProcesses
import Foundation
package import HTTPTestServer
import Synchronization

/// A reverse proxy of a real httpbin. A test server receives requests over TLS and records them, and the proxy forwards
/// the ones for httpbin.org. Responses are returned byte for byte.
///
/// Many samples ignore the response. So each request for httpbin.org goes to a test server as well, and
/// ``takeDifferences()`` compares both responses.
package final class HTTPBinProxy: Sendable {
  private struct State {
    var port: UInt16 = 0
    var underWay = 0
    var differences: [String] = []
    /// Answered requests by the number of their connection and their index on it.
    var answered: Set<[Int]> = []
    var waiters: [(isOver: @Sendable (State) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
  }

  private let state = Mutex(State())

  package init() {}

  /// Sets the port of httpbin.
  package func forward(to port: UInt16) { state.withLock { $0.port = port } }

  /// Returns the routes of the test server in proxy.
  ///
  /// - Parameter others: The port of the test server that answers for all other hosts, over plain HTTP.
  package func routes(others: Int) -> Routes {
    Routes.none.adding("/**") { request, _ in self.answer(to: request, others: UInt16(others)) }
  }

  /// Forwards a request. If that fails, the response is 502 with the reason.
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

  /// Waits until a recorded request for httpbin.org is answered. Returns at once for another host.
  package func untilAnswered(_ request: RecordedRequest) async {
    guard request.header("Host") == "httpbin.org" else { return }
    await wait { $0.answered.contains([request.connection, request.indexOnConnection]) }
  }

  /// Waits until all requests are answered, removes them, and returns the differences between httpbin and the test
  /// server.
  package func takeDifferences() async -> [String] {
    await wait { $0.underWay == 0 }
    return state.withLock { state in
      defer { (state.differences, state.answered) = ([], []) }
      return state.differences
    }
  }
}
