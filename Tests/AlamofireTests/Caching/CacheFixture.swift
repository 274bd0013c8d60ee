import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// A session with a fake transport and a cache in memory. The test sets the clock of the cache.
struct CacheFixture {
  final class Clock: Sendable {
    private let seconds = Mutex<Int64>(1_800_000_000)
    var now: Int64 { seconds.withLock { $0 } }
    func advance(_ count: Int64) { seconds.withLock { $0 += count } }
  }

  let clock = Clock()
  let cache: HTTPCache
  let fake: FakeTransport
  let session: Session

  /// Makes a session with a cache. The default is no monitor, because notifications observe all requests once another
  /// test uses one of their names, and partial responses to observed requests are not stored.
  init(
    _ fake: FakeTransport, policy: URLRequest.CachePolicy = .useProtocolCachePolicy,
    observers: SessionObservers = SessionObservers(eventMonitors: []),
    options: TransportOptions = TransportOptions(),
    sharing other: CacheFixture? = nil
  ) {
    let clock = other?.clock ?? clock
    self.fake = fake
    cache = other?.cache ?? HTTPCache(clock: { clock.now })
    session = Session.retained(
      fake: fake, configuration: .cached(by: cache, policy), options: options, observers: observers)
  }

  /// Sends a request, and returns its body and the source of each hop.
  func get(
    _ path: String = "x", headers: HTTPHeaders? = nil, method: HTTPMethod = .get,
    policy: URLRequest.CachePolicy = .useProtocolCachePolicy
  ) async -> Received {
    let request = session.request("http://a.test/\(path)", method: method, headers: headers) {
      $0.cachePolicy = policy
    }
    return Received(await request.end())
  }

  struct Received: Equatable, CustomStringConvertible {
    let status: Int?
    let body: String
    /// `n` for the network, `c` for the cache.
    let hops: String
    let fields: [String: String]
    let code: URLError.Code?

    init(_ response: AFDataResponse<Data?>) {
      status = response.response?.statusCode
      body = String(decoding: response.data ?? Data(), as: UTF8.self)
      hops = (response.metrics?.transactionMetrics ?? []).map {
        switch $0.resourceFetchType {
        case .networkLoad: "n"
        case .localCache: "c"
        case .unknown, .serverPush: "?"
        }
      }.joined()
      fields = response.response?.allHeaderFields as? [String: String] ?? [:]
      code = (response.error?.underlyingError as? URLError)?.code
    }

    var description: String { "\(status.map { "\($0)" } ?? "nothing") \(body) \(hops)" }
  }
}

/// A POST whose head has arrived, and whose body is held back.
struct OpenPost {
  let request: DataRequest
  private let isShown = Latch()
  private let mayEnd = Latch()

  /// Sends the request.
  ///
  /// - Parameter disposition: Whether the body is read at last, or the request cancelled.
  init(_ session: Session, ending disposition: Request.ResponseDisposition = .allow) {
    request = session.request("http://a.test/x", method: .post)
    request.onHTTPResponse(on: .global()) { [isShown, mayEnd] _, decide in
      isShown.open()
      Task {
        await mayEnd.wait()
        decide(disposition)
      }
    }
    request.resume()
  }

  func headReceived() async { await isShown.wait() }
  func finish() { mayEnd.open() }
}

extension FakeReply {
  /// Returns a response with cache directives and an entity tag.
  static func cacheable(_ body: String, _ control: String, tag: String? = nil, _ more: (String, String)...)
    -> FakeReply
  {
    .status(
      200, body,
      headers: [("Cache-Control", control)] + (tag.map { [("ETag", "\"\($0)\"")] } ?? []) + more)
  }
}
