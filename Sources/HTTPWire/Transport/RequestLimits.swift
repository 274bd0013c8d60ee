extension TransportOptions {
  /// The limits of the number of requests. A request that exceeds one waits in the queue of its session.
  ///
  /// ```swift
  /// var options = TransportOptions()
  /// options.requestLimits.perHost = 4
  /// options.requestLimits.perSession = 20
  /// options.requestLimits.ratePerHost = .init(perSecond: 10, burst: 5)
  /// let session = Session(transportOptions: options)
  /// ```
  ///
  /// Of the requests that may be sent, the one with the highest priority is next, and the oldest one of equal priority.
  /// A host is an origin: scheme, host and port. Limits below one count as one.
  public struct RequestLimits: Sendable, Hashable {
    /// A rate of requests.
    public struct Rate: Sendable, Hashable {
      /// The number of requests in a second, on average.
      public var perSecond: Double
      /// The number of requests that may be sent at once after a time without requests.
      public var burst: Int

      /// Makes a rate. Rates that are not positive count as one request in a day.
      public init(perSecond: Double, burst: Int = 1) {
        self.perSecond = perSecond
        self.burst = burst
      }
    }

    /// The number of requests to one host that are in flight at a time, over all of its connections. Default: `nil`,
    /// only `httpMaximumConnectionsPerHost` limits them.
    public var perHost: Int?
    /// The number of requests of the session that are in flight at a time. A request cannot have another limit than its
    /// session. Default: `nil`, no limit.
    public var perSession: Int?
    /// The rate at which requests to one host begin. Redirects, challenges and retries count. Default: `nil`, no limit.
    public var ratePerHost: Rate?

    /// Makes limits.
    public init(perHost: Int? = nil, perSession: Int? = nil, ratePerHost: Rate? = nil) {
      self.perHost = perHost
      self.perSession = perSession
      self.ratePerHost = ratePerHost
    }
  }
}

extension TransportOptions {
  /// Limits of the speed at which bodies are sent and received, in bytes in a second.
  ///
  /// ```swift
  /// var options = TransportOptions()
  /// options.sessionBandwidth = .init(download: 1_000_000, upload: 250_000)
  /// let session = Session(transportOptions: options)
  /// ```
  ///
  /// The bytes are those on the wire, before they are decoded. Heads and bodies of requests of up to 16 KiB do not
  /// count. Buffers of the system may receive more before the server has to wait. Limits below one count
  /// as one.
  public struct Bandwidth: Sendable, Hashable {
    /// The limit of bodies of responses. Default: `nil`, no limit.
    public var download: Int?
    /// The limit of bodies of requests. Default: `nil`, no limit.
    public var upload: Int?

    /// Makes limits.
    public init(download: Int? = nil, upload: Int? = nil) {
      self.download = download
      self.upload = upload
    }

    package var isLimited: Bool { download != nil || upload != nil }
  }
}

/// The limits of the requests to one host; requests with the same ones share a queue.
package struct HostLimits: Sendable, Hashable {
  /// The number of requests in flight.
  package let inFlight: Int
  package let rate: TransportOptions.RequestLimits.Rate?

  /// Returns `nil` if there are no limits.
  package init?(_ limits: TransportOptions.RequestLimits) {
    guard limits.perHost != nil || limits.ratePerHost != nil else { return nil }
    inFlight = limits.perHost.map { max(1, $0) } ?? .max
    rate = limits.ratePerHost
  }
}
