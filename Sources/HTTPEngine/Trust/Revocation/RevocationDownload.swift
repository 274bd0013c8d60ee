import Dispatch
package import FoundationEssentials
package import HTTPWire

/// Requests to OCSP responders and for lists. The requests block the calling thread, which must not be that of a
/// loop.
package enum RevocationDownload {
  /// The time limit of one request, in milliseconds.
  package static let timeLimit = 10_000
  private static let responseLimit = 1 << 16
  package static let listLimit = 16 << 20

  /// Returns the response of a responder; `nil` if there is none.
  package static func response(
    from url: String, to request: Data, publicOnly: Bool, proxies: ProxyTable? = nil,
    timeLimit: Int = timeLimit
  ) -> Data? {
    let limits = Limits(size: responseLimit, time: timeLimit, publicOnly: publicOnly, proxies: proxies)
    return fetch(url, body: request, limits)
  }

  /// Returns the list at `url`; `nil` if there is none.
  package static func list(
    at url: String, publicOnly: Bool, proxies: ProxyTable? = nil, sizeLimit: Int = listLimit,
    timeLimit: Int = timeLimit
  ) -> Data? {
    let limits = Limits(size: sizeLimit, time: timeLimit, publicOnly: publicOnly, proxies: proxies)
    return fetch(url, body: nil, limits)
  }

  fileprivate struct Limits {
    let size: Int
    let time: Int
    /// Whether private addresses are refused.
    let publicOnly: Bool
    /// The proxies; `nil` uses the environment of the process.
    let proxies: ProxyTable?
  }

  /// The transport of all downloads of the process, with a loop of its own: the loop of a session that waits for an
  /// evaluation could not carry them.
  private static let transport = HTTPTransport()
  private static let mostRedirects = 3

  private static func fetch(_ url: String, body: Data?, _ limits: Limits) -> Data? {
    guard !url.utf8.contains(0), let origin = Origin(url: url), origin.scheme == "http" else { return nil }
    let request = WireRequest(url: url, origin: origin, profile: limits.profile) { parts in
      parts.deadline = .now + .milliseconds(limits.time)
      guard let body else { return }
      parts.method = "POST"
      parts.fields = [HTTPHeader(name: "Content-Type", value: "application/ocsp-request")]
      parts.body = .bytes(body)
    }
    let answer = Answer()
    // On the thread of the loop, because the threads of other tasks may all wait here.
    Task(executorPreference: transport.loop) { answer.give(await follow(request)) }
    return answer.wait()
  }

  /// Returns the body of the response, after redirects; `nil` if there is none.
  ///
  /// Only HTTP is allowed, also after redirects. TLS would need the verification of another chain first, and the
  /// answers are signed.
  private static func follow(_ first: WireRequest) async -> Data? {
    var request = first
    for hopCount in 0...mostRedirects {
      guard let response = try? await transport.send(request, observer: QuietObserver()) else { return nil }
      let answered = Redirect.Request(
        url: request.url, origin: request.origin, method: request.method, hasBody: request.body.count > 0)
      let decision = Redirect.decide(
        status: response.head.status, location: response.head.block.value(of: "Location"), request: answered,
        hopCount: hopCount, limit: mostRedirects)
      switch decision {
      case .notARedirect: return response.head.status == 200 ? response.body ?? Data() : nil
      case .refuse: return nil
      case .follow(let plan):
        guard plan.origin.scheme == "http" else { return nil }
        request = request.changing { parts in
          parts.url = plan.url
          parts.origin = plan.origin
          parts.method = plan.method
          parts.fields = plan.fields(from: parts.fields)
          if !plan.resendsBody { parts.body = .none }
        }
      }
    }
    return nil
  }

  /// The body of one download, for the thread that waits for it.
  private final class Answer: Sendable {
    private let body = TrackedMutex<Data?>(nil)
    private let hasCome = DispatchSemaphore(value: 0)

    func give(_ body: Data?) {
      self.body.withLock { $0 = body }
      hasCome.signal()
    }

    func wait() -> Data? {
      hasCome.wait()
      return body.withLock { $0 }
    }
  }
}

extension RevocationDownload.Limits {
  /// The settings of the requests, which use the proxies of the session because they must not bypass them.
  fileprivate var profile: ConnectionProfile {
    var options = TransportOptions()
    options.bodySizeLimit = Int64(size)
    options.decodesContent = false
    options.refusesPrivateAddresses = publicOnly
    return ConnectionProfile(options: options, systemProxies: proxies)
  }
}
