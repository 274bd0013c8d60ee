/// Decides whether a request may be sent again after an attempt that got no response (RFC 9110 §9.2.2).
///
/// A request that the server did not process may be sent again whatever its method. When that is not known, only an
/// idempotent request may be, and once.
package struct RepeatDecision: Sendable, Equatable {
  /// The fate of an attempt without a response.
  package enum Evidence: Sendable, Equatable {
    /// No byte of the request was sent.
    case notSent
    /// The server says that it did not process the request: REFUSED_STREAM, a stream above the last one of GOAWAY
    /// (RFC 9113 §8.7), or HTTP_1_1_REQUIRED.
    case refused
    /// The server may have processed the request.
    case unknown
  }

  /// The maximum number of attempts after ones that the server did not process. A server that closes each connection
  /// after a few requests drops most streams of a burst several times; one that always refuses ends the request.
  private static let mostCertainRepeats = 32

  /// The maximum number of attempts after refusals of a server that is busy.
  private static let mostBusyRepeats = 6
  /// The pause before the second attempt after such refusals, in nanoseconds. It doubles with each attempt.
  private static let shortestPause: UInt64 = 100_000_000

  private var certainRepeats = 0
  private var busyRepeats = 0
  /// The pause before the next attempt, in nanoseconds.
  package private(set) var pause: UInt64 = 0
  /// Whether the request was sent again although the server may have processed it.
  package private(set) var hasRepeatedUncertainly = false
  private let method: String
  private let isKnownIdempotent: Bool
  /// Whether the request is idempotent.
  package var isIdempotent: Bool { isKnownIdempotent || Self.isIdempotent(method) }
  /// Whether the request was sent again.
  package var hasRepeated: Bool { certainRepeats > 0 || hasRepeatedUncertainly }

  /// Makes the decision about a new request.
  ///
  /// - Parameter isIdempotent: Whether the request is idempotent whatever its method is.
  package init(method: String, isIdempotent: Bool = false) {
    self.method = method
    isKnownIdempotent = isIdempotent
  }

  /// Returns whether the request may be sent again, and counts the attempt if so.
  ///
  /// - Parameters:
  ///   - usedConnection: Whether the connection had carried another request, so that its end can have another cause
  ///     than the request.
  ///   - isBusy: Whether the server has refused the request because it is busy. The next attempt then waits for
  ///     ``pause``.
  package mutating func mayRepeat(
    after evidence: Evidence, usedConnection: Bool, isBusy: Bool = false
  ) -> Bool {
    pause = 0
    switch evidence {
    case .notSent where !usedConnection: return false
    case .notSent, .refused:
      guard certainRepeats < Self.mostCertainRepeats else { return false }
      if isBusy {
        guard busyRepeats < Self.mostBusyRepeats else { return false }
        if busyRepeats > 0 { pause = Self.shortestPause << UInt64(busyRepeats - 1) }
        busyRepeats += 1
      }
      certainRepeats += 1
      return true
    case .unknown:
      guard isIdempotent, usedConnection, !hasRepeatedUncertainly else { return false }
      hasRepeatedUncertainly = true
      return true
    }
  }

  /// Whether a method is idempotent by RFC 9110 §9.2.2; for other methods this is unknown.
  package static func isIdempotent(_ method: String) -> Bool {
    switch method {
    case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE": true
    default: false
    }
  }
}

/// The reasons for which the bytes of an exchange do not move although its connection could move them. Pure.
///
/// The two directions wait independently of each other: while a source has no bytes, the response is read, and while a
/// sink is full, the request is sent.
package struct ExchangeFlow: Sendable, Equatable {
  /// The reason why the response is not read.
  package enum ReceivingWait: Sendable, Equatable {
    /// The sink has no room for more of the body.
    case sinkFull
    /// The decoder has produced as many bytes as one turn of the loop allows.
    case turnExhausted
    /// The bandwidth is exhausted.
    case throttled
  }

  /// The reason why the content of the request is not sent.
  package enum SendingWait: Sendable, Equatable {
    /// The source has no more bytes at the moment.
    case sourceEmpty
    /// The bandwidth is exhausted.
    case throttled
  }

  /// Whether the caller suspended the exchange, or the observer held it at the head.
  package private(set) var isSuspended = false
  package private(set) var receiving: ReceivingWait?
  package private(set) var sending: SendingWait?

  package init() {}

  package var mayReceive: Bool { !isSuspended && receiving == nil }
  package var maySend: Bool { !isSuspended && sending == nil }
  /// Whether nothing on this side keeps bytes from moving. Only then does the silence of the server count.
  package var isMoving: Bool { !isSuspended && receiving == nil && sending == nil }
  /// Whether bandwidth is what the exchange waits for.
  package var isThrottled: Bool { receiving == .throttled || sending == .throttled }

  package mutating func suspend() { isSuspended = true }

  /// Ends the suspension. Returns false if there is none. The owner asks a sink whether it is still full.
  package mutating func resume() -> Bool {
    guard isSuspended else { return false }
    isSuspended = false
    proceed()
    return true
  }

  package mutating func stopReceiving(_ reason: ReceivingWait) { receiving = reason }
  package mutating func stopSending(_ reason: SendingWait) { sending = reason }

  /// Notes that the rest of the content is not sent, so that nothing is waited for before sending it.
  package mutating func sendingEnded() { sending = nil }

  /// Notes that the sink may have room or the source may have bytes.
  package mutating func proceed() {
    if receiving != .throttled { receiving = nil }
    if sending != .throttled { sending = nil }
  }

  /// Notes that there is bandwidth again.
  package mutating func bandwidthReturned() {
    if receiving == .throttled { receiving = nil }
    if sending == .throttled { sending = nil }
  }
}
