import Alamofire
import Foundation
import FoundationNetworking

/// Tells when the last reference to it is gone: for closures to capture and objects to hold, so that a test need
/// not ask again and again whether their owner still exists.
final class Farewell: Sendable {
  /// Opens at the end.
  let latch: Latch

  init(_ latch: Latch) { self.latch = latch }

  deinit { latch.open() }
}

/// Follows, and goes with the inside of its session.
struct FarewellRedirector: RedirectHandler {
  let farewell: Farewell

  func task(
    _ task: URLSessionTask, willBeRedirectedTo request: URLRequest, for response: HTTPURLResponse,
    completion: @escaping @Sendable (URLRequest?) -> Void
  ) { completion(request) }
}

extension Request {
  /// Returns when the request has served its handlers: its sequences end then.
  func finished() async {
    for await _ in urlRequests() {}
  }
}
