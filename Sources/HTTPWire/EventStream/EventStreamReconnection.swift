/// Decides when, where and with which fields a stream of events is requested again (WHATWG HTML §9.2.3). Pure: the
/// owner has the clock and waits.
package struct EventStreamReconnection: Sendable, Equatable {
  /// The times between two connections.
  package struct Policy: Sendable, Equatable {
    /// The delay until the server sends a field `retry`.
    package var initialDelay = Duration.seconds(3)
    /// The longest delay. A longer `retry` of the server is shortened to it.
    package var maximumDelay = Duration.seconds(300)
    /// The factor by which each failure in a row widens the range of random delays.
    package var factor = 2.0

    package init() {}
  }

  /// The decision about a response.
  package enum Decision: Sendable, Equatable {
    case read
    /// The server ended the stream for good with status 204.
    case stop
    case fail(EventStreamError)
  }

  private static let shortestRange = Duration.milliseconds(100)

  private let policy: Policy
  private var serverDelay: Duration?
  private var failureCount = 0
  /// The URL of the next request.
  package private(set) var url: String
  private var hasTemporaryRedirect = false
  /// The ID of the last event, which `Last-Event-ID` repeats.
  package private(set) var lastEventID: String

  package init(url: String, lastEventID: String = "", policy: Policy = Policy()) {
    self.policy = policy
    self.lastEventID = lastEventID
    self.url = url
  }

  /// The fields of the next request.
  package var fields: [HTTPHeader] {
    var fields = [
      HTTPHeader.accept("text/event-stream"), HTTPHeader(name: "Cache-Control", value: "no-store"),
    ]
    // An ID cannot contain a line break, but other control characters.
    if !lastEventID.isEmpty, HeaderFieldRules.isFieldValue(lastEventID) {
      fields.append(HTTPHeader(name: "Last-Event-ID", value: lastEventID))
    }
    return fields
  }

  /// Takes note that the current request was redirected. Permanent redirects (301, 308) also hold for the next
  /// connection, unless a temporary one comes before them.
  package mutating func redirected(to target: String, status: Int) {
    let isPermanent = status == 301 || status == 308
    hasTemporaryRedirect = hasTemporaryRedirect || !isPermanent
    if !hasTemporaryRedirect { url = target }
  }

  /// Decides about the response behind all redirects.
  package func decision(about head: ResponseHead) -> Decision {
    if head.status == 204 { return .stop }
    guard head.status == 200 else { return .fail(.status(head.status)) }
    let contentType = head.block.values(of: "Content-Type").last
    guard let contentType, let type = MediaType(contentType), FieldName.equal(type.type, "text"),
      FieldName.equal(type.subtype, "event-stream")
    else { return .fail(.contentType(contentType)) }
    return .read
  }

  /// Takes note of an event, which ends the series of failures.
  package mutating func eventReceived() { failureCount = 0 }

  /// Takes over the last event ID and the field `retry` of a connection, and returns the delay to the next one.
  ///
  /// - Parameters:
  ///   - reader: The reader of the connection; `nil` if it had no response.
  ///   - random: A random number from 0 to 1.
  /// - Returns: The delay of the server and a random addition, whose range doubles with each failure in a row. Because
  ///   of it the clients of a server that restarts do not return at the same time.
  package mutating func connectionEnded(_ reader: EventStreamReader?, random: Double) -> Duration {
    if let reader {
      lastEventID = reader.lastEventID
      if let retry = reader.retry { serverDelay = .milliseconds(retry) }
    }
    hasTemporaryRedirect = false
    let shortest = min(max(.zero, serverDelay ?? policy.initialDelay), policy.maximumDelay)
    // A server that asks for no delay is not asked in a loop.
    var range = max(shortest, Self.shortestRange)
    for _ in 0..<failureCount where range < policy.maximumDelay { range = range * max(1, policy.factor) }
    failureCount += 1
    return shortest + min(range, policy.maximumDelay - shortest) * min(1, max(0, random))
  }
}
