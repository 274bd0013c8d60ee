/// The requests that a session's transport has at one moment, and its connections. A value: it does not change.
///
/// ```swift
/// print(await session.transportSnapshot())
/// ```
public struct TransportSnapshot: Sendable, Equatable {
  /// The reason for which a request waits.
  public enum WaitReason: Sendable, Equatable, CaseIterable {
    /// All connections to the host are in use (`httpMaximumConnectionsPerHost`).
    case connections
    /// The limit `RequestLimits.perHost` of requests in flight to the host.
    case requestsOfHost
    /// The limit `RequestLimits.perSession` of requests in flight.
    case requestsOfSession
    /// `RequestLimits.ratePerHost` allows no request yet.
    case rate
    /// The request is suspended.
    case suspended
  }

  /// A request that was not sent yet.
  public struct WaitingRequest: Sendable, Equatable {
    /// The method.
    public let method: String
    /// The URL, without user and password.
    public let url: String
    /// The priority, from 0 to 1.
    public let priority: Float
    /// The reason for which the request waits.
    public let reason: WaitReason

    package init(method: String, url: String, priority: Float, reason: WaitReason) {
      self.method = method
      self.url = url
      self.priority = priority
      self.reason = reason
    }
  }

  /// A request in flight: it connects, is sent, or receives its response.
  public struct RunningRequest: Sendable, Equatable {
    /// The method.
    public let method: String
    /// The URL, without user and password.
    public let url: String
    /// The number of bytes of the body that were sent.
    public let bytesSent: Int64
    /// The number of bytes of the response's body that were received.
    public let bytesReceived: Int64
    /// Whether the request is suspended and transfers no bytes.
    public let isSuspended: Bool
    /// Whether the request waits because its bandwidth or the session's is exhausted.
    public let isThrottled: Bool

    package init(
      method: String, url: String, bytesSent: Int64, bytesReceived: Int64, isSuspended: Bool,
      isThrottled: Bool
    ) {
      self.method = method
      self.url = url
      self.bytesSent = bytesSent
      self.bytesReceived = bytesReceived
      self.isSuspended = isSuspended
      self.isThrottled = isThrottled
    }
  }

  /// The requests and connections of one origin.
  public struct Host: Sendable, Equatable {
    /// The origin, such as `https://example.com:443`.
    public let origin: String
    /// The waiting requests, in the order in which they will be sent, suspended ones last.
    public let waiting: [WaitingRequest]
    /// The requests in flight, in the order of their creation.
    public let running: [RunningRequest]
    /// The number of open connections that have carried a request, directly or through a proxy.
    public let openConnections: Int
    /// The number of open connections that carry no request at the moment.
    public let idleConnections: Int

    package init(
      origin: String, waiting: [WaitingRequest], running: [RunningRequest], openConnections: Int,
      idleConnections: Int
    ) {
      self.origin = origin
      self.waiting = waiting
      self.running = running
      self.openConnections = openConnections
      self.idleConnections = idleConnections
    }
  }

  /// The origins with requests or connections, in alphabetical order.
  public let hosts: [Host]

  package init(hosts: [Host] = []) { self.hosts = hosts }

  /// The number of waiting requests.
  public var waitingCount: Int { hosts.reduce(0) { $0 + $1.waiting.count } }
  /// The number of requests in flight.
  public var runningCount: Int { hosts.reduce(0) { $0 + $1.running.count } }
}

extension TransportSnapshot: CustomStringConvertible {
  /// One line for each host and each of its requests.
  public var description: String {
    guard !hosts.isEmpty else { return "no requests, no connections" }
    return hosts.map(\.description).joined(separator: "\n")
  }
}

extension TransportSnapshot.Host: CustomStringConvertible {
  /// The origin and its counts, then one line for each request.
  public var description: String {
    let counts =
      "\(running.count) running, \(waiting.count) waiting, \(openConnections) connections (\(idleConnections) idle)"
    let lines =
      ["\(origin): \(counts)"] + running.map { "  running \($0.description)" }
      + waiting.map { "  waiting \($0.description)" }
    return lines.joined(separator: "\n")
  }
}

extension TransportSnapshot.RunningRequest: CustomStringConvertible {
  /// The request and its progress.
  public var description: String {
    let state = isSuspended ? ", suspended" : isThrottled ? ", bandwidth exhausted" : ""
    return "\(method) \(shown(url)) (\(bytesSent) bytes sent, \(bytesReceived) received\(state))"
  }
}

extension TransportSnapshot.WaitingRequest: CustomStringConvertible {
  /// The request, its priority and the reason.
  public var description: String { "\(method) \(shown(url)) (priority \(priority), \(reason))" }
}

/// Returns a URL without its secrets, on one line.
private func shown(_ url: String) -> String { ReadableText.line(Redaction.standard.url(url)) }

extension TransportSnapshot.WaitReason: CustomStringConvertible {
  /// The reason in words.
  public var description: String {
    switch self {
    case .connections: "all connections are in use"
    case .requestsOfHost: "limit of the host"
    case .requestsOfSession: "limit of the session"
    case .rate: "rate of the host"
    case .suspended: "suspended"
    }
  }
}

extension Origin: CustomStringConvertible {
  /// Scheme, host and port as in a URL.
  package var description: String {
    host.contains(":") ? "\(scheme)://[\(host)]:\(port)" : "\(scheme)://\(host):\(port)"
  }
}
