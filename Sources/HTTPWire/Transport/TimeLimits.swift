extension TransportOptions {
  /// The time limits of the phases of a request. A limit that is exceeded ends the request with `URLError.timedOut`;
  /// its `timedOutPhase` and description name the phase.
  ///
  /// ```swift
  /// var options = TransportOptions()
  /// options.timeLimits.nameLookup = .seconds(2)
  /// options.timeLimits.connect = .seconds(3)
  /// options.timeLimits.firstByte = .seconds(10)
  /// let session = Session(transportOptions: options)
  /// ```
  ///
  /// All limits but ``total`` begin again with each redirect, answered challenge and retry. A request on a reused
  /// connection skips look-up, connecting and handshake. Time in the queue of the session belongs to ``total`` alone.
  /// While a request waits for a connection that another request makes, ``total`` and ``idle`` apply. While a request
  /// is suspended, or waits for the source of its body, only ``total`` continues.
  ///
  /// A limit of zero, or a negative one, ends the request when its phase begins. In a `URLSessionConfiguration` and a
  /// `URLRequest`, zero means no limit.
  public struct TimeLimits: Sendable, Equatable {
    /// A phase of a request that can have a time limit.
    public enum Phase: String, Sendable, Equatable, CaseIterable {
      /// The look-up of the host's name.
      case nameLookup
      /// Connecting to an address of the host, or of its proxy.
      case connect
      /// The TLS handshake with the server.
      case tlsHandshake
      /// Sending the request.
      case requestSend
      /// The time from the end of the request to the first byte of the response.
      case firstByte
      /// Silence in both directions, or all of connecting.
      case idle
      /// An attempt of the request, from the transport to the end of the response.
      case total
    }

    /// The limit of a name look-up: for the host, its proxy, or the target of an override. Addresses and cached names
    /// are not looked up. Default: `nil`, no limit.
    public var nameLookup: Duration?
    /// The limit of connecting, from the first socket to the TLS handshake or the request, over all addresses of the
    /// host. Connecting includes the proxy's answer and the TLS handshake with the proxy. Default: `nil`, no limit.
    public var connect: Duration?
    /// The limit of the TLS handshake with the server, including the evaluation of its certificates by the trust store
    /// or pins. The time in which the caller's code evaluates them does not count. Default: `nil`, no limit.
    public var tlsHandshake: Duration?
    /// The limit of sending a request, from the first byte of its head to the last byte of its body. A byte counts as
    /// sent when the system has accepted it. The first byte of a response ends the phase too. Default: `nil`, no limit.
    public var requestSend: Duration?
    /// The limit of the wait for the response, from the last byte of the request to the first byte of a response. An
    /// informational response counts. Default: `nil`, no limit.
    public var firstByte: Duration?
    /// The limit of silence in both directions, and of the time from the look-up to the end of the handshake, in which
    /// bytes may move. It applies instead of `timeoutIntervalForRequest` and of the request's
    /// `timeoutInterval`. Default: `nil`, the `timeoutInterval` applies unless it is exactly 60 seconds, and otherwise
    /// `timeoutIntervalForRequest`.
    public var idle: Duration?
    /// The limit of an attempt, instead of `timeoutIntervalForResource`. It begins when the request is adapted and its
    /// body is made, covers queues, redirects and challenges, and ends with the response. Each retry has the whole time
    /// again. Adapters, validators, retry delays and serializers do not count; to limit everything, cancel the task
    /// that awaits the request. Default: `nil`, `timeoutIntervalForResource` applies.
    public var total: Duration?

    /// Makes limits of the given phases.
    public init(
      nameLookup: Duration? = nil, connect: Duration? = nil, tlsHandshake: Duration? = nil,
      requestSend: Duration? = nil, firstByte: Duration? = nil, idle: Duration? = nil, total: Duration? = nil
    ) {
      self.nameLookup = nameLookup
      self.connect = connect
      self.tlsHandshake = tlsHandshake
      self.requestSend = requestSend
      self.firstByte = firstByte
      self.idle = idle
      self.total = total
    }

    /// The limit of a phase.
    public subscript(phase: Phase) -> Duration? {
      switch phase {
      case .nameLookup: nameLookup
      case .connect: connect
      case .tlsHandshake: tlsHandshake
      case .requestSend: requestSend
      case .firstByte: firstByte
      case .idle: idle
      case .total: total
      }
    }
  }
}

extension TransportOptions.TimeLimits {
  /// The name of the setting that limits the total time.
  package var totalSetting: String { total == nil ? "timeoutIntervalForResource" : "timeLimits.total" }
  /// The name of the setting that limits the time without a byte.
  package var idleSetting: String { idle == nil ? "timeoutIntervalForRequest" : "timeLimits.idle" }
}

extension TransportOptions.TimeLimits.Phase {
  /// Returns the failure message of a request with a phase that has lasted longer than `limit`.
  package func message(host: String, limit: Duration) -> String {
    let event =
      switch self {
      case .nameLookup: "The name of \(host) was not found"
      case .connect: "\(host) could not be connected to"
      case .tlsHandshake: "The TLS handshake with \(host) was not complete"
      case .requestSend: "\(host) did not take the whole request"
      case .firstByte: "\(host) did not begin to respond"
      case .idle: "No byte was sent to \(host) or received from it"
      case .total: "The transfer from \(host) was not complete"
      }
    return "\(event) within \(limit.shownSeconds) (timeLimits.\(rawValue))."
  }
}

extension Duration {
  /// The duration as text, in seconds with at most three digits after the point.
  package var shownSeconds: String {
    "\(Double(wholeMilliseconds) / 1000) seconds"
  }
}

/// The limits of the phases of a transfer in nanoseconds; `.max` means no limit.
package struct PhaseLimits: Sendable, Equatable {
  package let nameLookup: UInt64
  package let connect: UInt64
  package let tlsHandshake: UInt64
  package let requestSend: UInt64
  package let firstByte: UInt64

  /// Returns `nil` if no phase within a transfer has a limit. ``WireRequest`` has the limits of silence and of the
  /// whole request.
  package init?(_ limits: TransportOptions.TimeLimits) {
    func nanoseconds(_ limit: Duration?) -> UInt64 {
      guard let limit else { return .max }
      // Treat longer limits as unlimited, because the clock must not overflow.
      return limit < .seconds(1_000_000_000) ? limit.wholeNanoseconds : .max
    }
    nameLookup = nanoseconds(limits.nameLookup)
    connect = nanoseconds(limits.connect)
    tlsHandshake = nanoseconds(limits.tlsHandshake)
    requestSend = nanoseconds(limits.requestSend)
    firstByte = nanoseconds(limits.firstByte)
    guard min(nameLookup, connect, tlsHandshake, requestSend, firstByte) < .max else { return nil }
  }

  subscript(phase: TransportOptions.TimeLimits.Phase) -> UInt64 {
    switch phase {
    case .nameLookup: nameLookup
    case .connect: connect
    case .tlsHandshake: tlsHandshake
    case .requestSend: requestSend
    case .firstByte: firstByte
    case .idle, .total: .max
    }
  }
}

/// A time of the monotonic clock, by which requests end.
///
/// The compiler does not know the size of `ContinuousClock.Instant`, but of this type. Therefore values that contain a
/// time are copied at little cost.
package struct MonotonicTime: Hashable, Sendable {
  @usableFromInline package let nanoseconds: UInt64

  @inlinable package init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

  /// Returns the time after a duration, at most the end of the clock. A negative duration counts as none.
  package static func + (time: MonotonicTime, duration: Duration) -> MonotonicTime {
    let sum = time.nanoseconds.addingReportingOverflow(duration.wholeNanoseconds)
    return MonotonicTime(nanoseconds: sum.overflow ? .max : sum.partialValue)
  }

  /// Returns the duration until another time, which is negative if that time is earlier.
  package func duration(to other: MonotonicTime) -> Duration {
    let isLater = other >= self
    let distance = isLater ? other.nanoseconds - nanoseconds : nanoseconds - other.nanoseconds
    let duration = Duration.nanoseconds(Int64(clamping: distance))
    return isLater ? duration : .zero - duration
  }
}

extension MonotonicTime: Comparable {
  @inlinable package static func < (first: MonotonicTime, second: MonotonicTime) -> Bool {
    first.nanoseconds < second.nanoseconds
  }
}
