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
  /// The URL that the caller asks for; `nil` before the first connection.
  private var requestedURL: String?
  /// The URL to which permanent redirects lead from there.
  private var permanentURL = ""
  private var hasTemporaryRedirect = false
  /// The ID of the last event, which `Last-Event-ID` repeats.
  package private(set) var lastEventID: String
  /// Whether the server has set or reset the last event ID, so that the caller's does not count any more.
  private var hasReceivedID = false

  package init(lastEventID: String = "", policy: Policy = Policy()) {
    self.policy = policy
    self.lastEventID = lastEventID
  }

  /// The fields of the next request.
  package var fields: [HTTPHeader] {
    var fields = [
      HTTPHeader.accept("text/event-stream"), HTTPHeader(name: "Cache-Control", value: "no-cache"),
    ]
    // The first one may be the caller's.
    if !lastEventID.isEmpty, HeaderFieldRules.isFieldValue(lastEventID) {
      fields.append(HTTPHeader(name: "Last-Event-ID", value: lastEventID))
    }
    return fields
  }

  /// Whether a `Last-Event-ID` of the caller must not be sent, because the server has reset the ID.
  package var hasResetID: Bool { hasReceivedID && lastEventID.isEmpty }

  /// Begins a connection. Returns the URL to which permanent redirects of earlier connections led, or `requested`.
  ///
  /// - Parameter requested: The URL that the caller asks for. With another one than before, redirects are forgotten.
  package mutating func target(of requested: String) -> String {
    hasTemporaryRedirect = false
    if requestedURL != requested { (requestedURL, permanentURL) = (requested, requested) }
    return permanentURL
  }

  /// Takes note that the current request was redirected. Permanent redirects (301, 308) also hold for the next
  /// connection, unless a temporary one comes before them. One that changes the method or leaves TLS counts as
  /// temporary, because a request that went there at once would be another one.
  package mutating func redirected(by plan: RedirectPlan, from method: String, status: Int) {
    let isPermanent = status == 301 || status == 308
    if !isPermanent || plan.method != method || plan.leavesSecureScheme { hasTemporaryRedirect = true }
    if !hasTemporaryRedirect { permanentURL = plan.url }
  }

  /// Decides about the response after all redirects.
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

  /// Begins another run of the request, for which earlier failures do not count.
  package mutating func beginAgain() { failureCount = 0 }

  /// Adopts the last event ID and the field `retry` of a connection, and returns the delay to the next one.
  ///
  /// - Parameters:
  ///   - reader: The reader of the connection; `nil` if it had no response.
  ///   - isClean: Whether the server has ended the response.
  ///   - random: A random number from 0 to 1.
  /// - Returns: After a clean end, the delay of the server, give or take a tenth. After a failure, and after the second
  ///   connection in a row without an event, there is a random addition. Its range doubles with each one in a row.
  ///   Because of both, the clients of a restarted server do not return at the same time.
  package mutating func connectionEnded(
    _ reader: EventStreamReader?, isClean: Bool = false, random: Double
  ) -> Duration {
    if let reader {
      lastEventID = reader.lastEventID
      hasReceivedID = hasReceivedID || reader.hasReceivedID
      if let retry = reader.retry { serverDelay = .milliseconds(retry) }
    }
    let random = min(1, max(0, random))
    let shortest = min(max(.zero, serverDelay ?? policy.initialDelay), policy.maximumDelay)
    if isClean, failureCount == 0, shortest > .zero {
      failureCount = 1
      return min(shortest * (0.9 + 0.2 * random), policy.maximumDelay)
    }
    // A server that asks for no delay is not asked in a loop.
    var range = max(shortest, Self.shortestRange)
    for _ in 0..<failureCount where range < policy.maximumDelay { range = range * max(1, policy.factor) }
    failureCount += 1
    return shortest + min(range, policy.maximumDelay - shortest) * random
  }
}
