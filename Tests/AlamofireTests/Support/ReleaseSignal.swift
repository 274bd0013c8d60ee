import Alamofire
import Foundation
import FoundationNetworking

/// Opens a latch when its last reference is released. Closures capture it and objects hold it, so that a test need not
/// poll for the release of their owner.
final class ReleaseSignal: Sendable {
  /// Opened at the release.
  let latch: Latch

  init(_ latch: Latch) { self.latch = latch }

  deinit { latch.open() }
}

/// A redirect handler that follows, and is released with its session.
struct ReleaseSignalRedirector: RedirectHandler {
  let releaseSignal: ReleaseSignal

  func task(
    _ task: URLSessionTask, willBeRedirectedTo request: URLRequest, for response: HTTPURLResponse,
    completion: @escaping @Sendable (URLRequest?) -> Void
  ) { completion(request) }
}

extension Request {
  /// Waits until the handlers of the request were called, when its sequences end.
  func finished() async {
    for await _ in urlRequests() {}
  }
}
