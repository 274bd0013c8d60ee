import ChildProcesses
import Foundation
package import HTTPTestServer
import Synchronization

/// What stands before a real httpbin: a test server takes requests over TLS and records them, and this leads those for
/// httpbin.org there. Answers come back byte for byte.
///
/// Many samples look at no answer. So each request for httpbin.org goes to a test server as well, and ``verdict()`` tells
/// whether the two have understood the same.
package final class HTTPBinFront: Sendable {
  private struct State {
    var port: UInt16 = 0
    var underWay = 0
    var differences: [String] = []
    var waiter: CheckedContinuation<Void, Never>?
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
    defer { finish(difference) }
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

  private func finish(_ difference: String?) {
    let waiter = state.withLock { state in
      state.underWay -= 1
      state.differences += [difference].compactMap(\.self)
      return state.underWay == 0 ? state.waiter.take() : nil
    }
    waiter?.resume()
  }

  /// Waits until every request that has come is answered, and returns where httpbin has understood something else than
  /// the test server since the last time. One task asks at a time.
  package func verdict() async -> [String] {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if state.underWay > 0 { state.waiter = continuation }
        return state.underWay == 0
      }
      if isOver { continuation.resume() }
    }
    return state.withLock { state in
      defer { state.differences = [] }
      return state.differences
    }
  }
}
