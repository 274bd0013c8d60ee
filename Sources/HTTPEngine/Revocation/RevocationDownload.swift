import Dispatch
package import FoundationEssentials
import HTTPSystem
package import HTTPWire

/// Downloads about revocation over HTTP. They block the calling thread, which must not be the thread of a loop.
package struct RevocationDownload: RevocationDownloads {
  /// The time limit of one request, in milliseconds.
  package static let timeLimit = 10_000
  private static let responseLimit = 1 << 16
  package static let listLimit = 16 << 20

  private let options: TransportOptions
  private let proxies: ProxyTable?
  private let listSize: Int
  private let time: Int

  /// Creates downloads with the settings of a session.
  ///
  /// - Parameters:
  ///   - options:    The options, of which only those about the way to servers are used.
  ///   - proxies:    The proxies of the session, which must not be bypassed; `nil` uses the environment of the process.
  ///   - sizeLimit:  The size of the largest list, in bytes.
  ///   - timeLimit:  The time limit of each request, in milliseconds.
  package init(
    _ options: TransportOptions = TransportOptions(), proxies: ProxyTable? = nil, sizeLimit: Int = listLimit,
    timeLimit: Int = timeLimit
  ) {
    self.options = options
    self.proxies = proxies
    listSize = sizeLimit
    time = timeLimit
  }

  package func response(from url: String, to request: Data) -> Data? {
    fetch(url, body: request, sizeLimit: Self.responseLimit)
  }

  package func list(at url: String) -> Data? { fetch(url, body: nil, sizeLimit: listSize) }

  /// The transport of all downloads of the process, with a separate loop. The loop of a session that waits for an
  /// evaluation could not carry them.
  private static let transport = HTTPTransport()
  private static let mostRedirects = 3

  private func fetch(_ url: String, body: Data?, sizeLimit: Int) -> Data? {
    guard !url.utf8.contains(0), let origin = Origin(url: url), origin.scheme == "http" else { return nil }
    let profile = profile(to: origin, sizeLimit: sizeLimit)
    let request = WireRequest(url: url, origin: origin, profile: profile) { parts in
      parts.deadline = .now + .milliseconds(time)
      guard let body else { return }
      parts.method = "POST"
      parts.isIdempotent = true
      parts.fields = [HTTPHeader(name: "Content-Type", value: "application/ocsp-request")]
      parts.body = .bytes(body)
    }
    let answer = Answer()
    // On the thread of the loop, because the threads of other tasks may all wait here.
    Task(executorPreference: Self.transport.loop) { answer.give(await follow(request, sizeLimit: sizeLimit)) }
    return answer.wait()
  }

  /// Returns the body of the response, after redirects; `nil` if there is none.
  ///
  /// Only HTTP is allowed, also after redirects. TLS would need the verification of another chain first, and the
  /// answers are signed.
  private func follow(_ first: WireRequest, sizeLimit: Int) async -> Data? {
    var request = first
    for redirectCount in 0...Self.mostRedirects {
      guard let response = try? await Self.transport.send(request, observer: QuietObserver()) else {
        return nil
      }
      let answered = Redirect.Request(
        url: request.url, origin: request.origin, method: request.method, hasBody: request.body.count > 0)
      let decision = Redirect.decide(
        status: response.head.status, location: response.head.block.value(of: "Location"), request: answered,
        redirectCount: redirectCount, limit: Self.mostRedirects)
      switch decision {
      case .notARedirect: return response.head.status == 200 ? response.body ?? Data() : nil
      case .refuse: return nil
      case .follow(let plan):
        guard plan.origin.scheme == "http" else { return nil }
        let profile = profile(to: plan.origin, sizeLimit: sizeLimit)
        request = request.redirected { parts in
          parts.profile = profile
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
    /// The body of the download, for its loop and the evaluator.
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

  /// Returns the profile of requests to an origin, which go the same ways as the requests of the session.
  private func profile(to origin: Origin, sizeLimit: Int) -> ConnectionProfile {
    var options = TransportOptions()
    options.bodySizeLimit = Int64(sizeLimit)
    options.decodesContent = false
    options.refusesPrivateAddresses = self.options.refusesPrivateAddresses
    options.unixSocket = self.options.proxySocket(to: origin, proxies)
    options.hostOverrides = self.options.hostOverrides
    options.localInterface = self.options.localInterface
    options.addressFamily = self.options.addressFamily
    options.happyEyeballsDelay = self.options.happyEyeballsDelay
    // The name service uses TLS.
    options.nameServiceURL = self.options.nameServiceURL
    options.trustStore = self.options.trustStore
    options.certificateRevocationLists = self.options.certificateRevocationLists
    options.minimumTLSVersion = self.options.minimumTLSVersion
    options.maximumTLSVersion = self.options.maximumTLSVersion
    options.tls12Ciphers = self.options.tls12Ciphers
    options.tls13CipherSuites = self.options.tls13CipherSuites
    options.tlsKeyLogFile = self.options.tlsKeyLogFile
    return ConnectionProfile(options: options, systemProxies: proxies)
  }
}
