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

  /// Ends the suspension. Returns false if there is none. A sink that is still full stops the exchange again.
  package mutating func resume() -> Bool {
    guard isSuspended else { return false }
    isSuspended = false
    proceed()
    return true
  }

  package mutating func stopReceiving(_ reason: ReceivingWait) { receiving = reason }
  package mutating func stopSending(_ reason: SendingWait) { sending = reason }

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
