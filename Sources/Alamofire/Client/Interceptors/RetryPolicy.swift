public import Foundation
import FoundationNetworking
public import HTTPWire

/// Retries requests that may be sent twice, after temporary failures, with increasing delays.
///
/// A request is retried at most ``retryLimit`` times, if its method is one of ``retryableHTTPMethods``. The status of
/// its response must be one of ``retryableHTTPStatusCodes``, or its error must be or wrap a `URLError` with one of
/// ``retryableURLErrorCodes``. A status is a failure only with `validate()`, or if the body cannot be read.
///
/// The delay is ``exponentialBackoffBase`` to the power of the number of retries so far, times
/// ``exponentialBackoffScale``: 0.5, 1, 2, 4 … seconds; at most a year.
///
/// ```swift
/// let session = Session(interceptor: RetryPolicy(retryLimit: 4, maximumRetryAfter: 60, jitter: .full))
/// ```
///
/// Two things go beyond the usual policy and are off by default: full ``jitter``, and waiting as long as the
/// server asks in `Retry-After`.
open class RetryPolicy: RequestInterceptor, @unchecked Sendable {
  // Unchecked, because the compiler checks no class that can be subclassed: its own properties are constants.
  /// Whether a delay is spread at random.
  public enum Jitter: Sendable {
    /// Delays are exactly as computed.
    case none
    /// Each delay is random, from zero to the computed one, so that clients that failed together do not retry
    /// together. The time of `Retry-After` is always waited for in full, and the random part is added to it.
    case full
  }

  /// The maximum number of retries of a request.
  public let retryLimit: UInt
  /// The factor of the delay with each retry; at least 2.
  public let exponentialBackoffBase: UInt
  /// The first delay, in seconds.
  public let exponentialBackoffScale: Double
  /// The methods of requests that are sent again.
  public let retryableHTTPMethods: Set<HTTPMethod>
  /// The status codes after which a request is sent again.
  public let retryableHTTPStatusCodes: Set<Int>
  /// The codes of a `URLError` after which a request is sent again.
  public let retryableURLErrorCodes: Set<URLError.Code>
  /// The longest `Retry-After` in seconds that is waited for; `nil` if the field is ignored.
  public let maximumRetryAfter: TimeInterval?
  /// Whether delays are randomized.
  public let jitter: Jitter

  /// Makes a policy. Values out of range are clamped; none of them traps.
  ///
  /// - Parameters:
  ///   - retryLimit: The maximum number of retries of a request. Default: 2.
  ///   - exponentialBackoffBase: The factor of the delay with each retry. Default: 2, which is also the minimum.
  ///   - exponentialBackoffScale: The first delay, in seconds. Default: 0.5. Negative values and not-a-numbers give
  ///     no delay, infinity a year.
  ///   - retryableHTTPMethods: The methods of requests that are sent again. Default: ``defaultRetryableHTTPMethods``.
  ///   - retryableHTTPStatusCodes: The status codes after which a request is sent again. Default:
  ///     ``defaultRetryableHTTPStatusCodes``.
  ///   - retryableURLErrorCodes: The codes of a `URLError` after which a request is sent again. Default:
  ///     ``defaultRetryableURLErrorCodes``.
  public init(
    retryLimit: UInt = RetryPolicy.defaultRetryLimit,
    exponentialBackoffBase: UInt = RetryPolicy.defaultExponentialBackoffBase,
    exponentialBackoffScale: Double = RetryPolicy.defaultExponentialBackoffScale,
    retryableHTTPMethods: Set<HTTPMethod> = RetryPolicy.defaultRetryableHTTPMethods,
    retryableHTTPStatusCodes: Set<Int> = RetryPolicy.defaultRetryableHTTPStatusCodes,
    retryableURLErrorCodes: Set<URLError.Code> = RetryPolicy.defaultRetryableURLErrorCodes
  ) {
    self.retryLimit = retryLimit
    self.exponentialBackoffBase = max(2, exponentialBackoffBase)
    self.exponentialBackoffScale = exponentialBackoffScale
    self.retryableHTTPMethods = retryableHTTPMethods
    self.retryableHTTPStatusCodes = retryableHTTPStatusCodes
    self.retryableURLErrorCodes = retryableURLErrorCodes
    maximumRetryAfter = nil
    jitter = .none
  }

  // Disfavored, so that a call without its own two parameters is not ambiguous.
  /// Makes a policy that respects `Retry-After` or spreads its delays. Values out of range are clamped.
  ///
  /// - Parameters:
  ///   - retryLimit: The maximum number of retries of a request. Default: 2.
  ///   - exponentialBackoffBase: The factor of the delay with each retry. Default and minimum: 2.
  ///   - exponentialBackoffScale: The first delay, in seconds. Default: 0.5.
  ///   - retryableHTTPMethods: The methods of requests that are sent again. Default: the idempotent ones.
  ///   - retryableHTTPStatusCodes: The status codes after which a request is sent again.
  ///   - retryableURLErrorCodes: The codes of a `URLError` after which a request is sent again.
  ///   - maximumRetryAfter: The longest `Retry-After` (RFC 9110 §10.2.3), in seconds, that is waited for; the field
  ///     may also be a date. If the server asks for more, the request is not retried. The delay is the longer of this
  ///     time and the computed one. Default: `nil`, the field is ignored.
  ///   - jitter: Whether delays are randomized. Default: ``Jitter/none``.
  @_disfavoredOverload
  public init(
    retryLimit: UInt = RetryPolicy.defaultRetryLimit,
    exponentialBackoffBase: UInt = RetryPolicy.defaultExponentialBackoffBase,
    exponentialBackoffScale: Double = RetryPolicy.defaultExponentialBackoffScale,
    retryableHTTPMethods: Set<HTTPMethod> = RetryPolicy.defaultRetryableHTTPMethods,
    retryableHTTPStatusCodes: Set<Int> = RetryPolicy.defaultRetryableHTTPStatusCodes,
    retryableURLErrorCodes: Set<URLError.Code> = RetryPolicy.defaultRetryableURLErrorCodes,
    maximumRetryAfter: TimeInterval? = nil, jitter: Jitter = .none
  ) {
    self.retryLimit = retryLimit
    self.exponentialBackoffBase = max(2, exponentialBackoffBase)
    self.exponentialBackoffScale = exponentialBackoffScale
    self.retryableHTTPMethods = retryableHTTPMethods
    self.retryableHTTPStatusCodes = retryableHTTPStatusCodes
    self.retryableURLErrorCodes = retryableURLErrorCodes
    self.maximumRetryAfter = maximumRetryAfter
    self.jitter = jitter
  }

  /// Answers ``RetryResult/retryWithDelay(_:)`` while the limit is not reached and
  /// ``shouldRetry(request:dueTo:)`` says so, else ``RetryResult/doNotRetry``.
  @preconcurrency
  open func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    let count = request.retryCount
    guard count < retryLimit, shouldRetry(request: request, dueTo: error) else {
      return completion(.doNotRetry)
    }
    let retryAfter = secondsAsked(by: request.response)
    if let retryAfter, let maximumRetryAfter, !(retryAfter <= maximumRetryAfter) {
      return completion(.doNotRetry)
    }
    let backoff = Backoff(
      base: exponentialBackoffBase, scale: exponentialBackoffScale, isJittered: jitter == .full)
    completion(
      .retryWithDelay(backoff.delay(retryCount: count, retryAfter: retryAfter, random: .random(in: 0...1))))
  }

  /// Whether a failed request is worth another attempt, however many there were. A request that could not be created
  /// has no method, and is never worth one.
  open func shouldRetry(request: Request, dueTo error: any Error) -> Bool {
    guard let method = request.request?.method, retryableHTTPMethods.contains(method) else { return false }
    if let status = request.response?.statusCode, retryableHTTPStatusCodes.contains(status) { return true }
    let failure = error as? URLError ?? error.asAFError?.underlyingError as? URLError
    return failure.map { retryableURLErrorCodes.contains($0.code) } ?? false
  }

  private func secondsAsked(by response: HTTPURLResponse?) -> TimeInterval? {
    guard maximumRetryAfter != nil, let response,
      let value = response.value(forHTTPHeaderField: "Retry-After")
    else { return nil }
    let now = HTTPDate(secondsSince1970: Int64(Date().timeIntervalSince1970))
    return RetryAfter.seconds(of: value, date: response.value(forHTTPHeaderField: "Date"), now: now)
  }
}

extension RequestRetrier where Self == RetryPolicy {
  /// A ``RetryPolicy`` with its defaults.
  public static var retryPolicy: RetryPolicy { RetryPolicy() }

  /// Makes a ``RetryPolicy``; the parameters are the initialiser's.
  public static func retryPolicy(
    retryLimit: UInt = RetryPolicy.defaultRetryLimit,
    exponentialBackoffBase: UInt = RetryPolicy.defaultExponentialBackoffBase,
    exponentialBackoffScale: Double = RetryPolicy.defaultExponentialBackoffScale,
    retryableHTTPMethods: Set<HTTPMethod> = RetryPolicy.defaultRetryableHTTPMethods,
    retryableHTTPStatusCodes: Set<Int> = RetryPolicy.defaultRetryableHTTPStatusCodes,
    retryableURLErrorCodes: Set<URLError.Code> = RetryPolicy.defaultRetryableURLErrorCodes
  ) -> RetryPolicy {
    RetryPolicy(
      retryLimit: retryLimit, exponentialBackoffBase: exponentialBackoffBase,
      exponentialBackoffScale: exponentialBackoffScale, retryableHTTPMethods: retryableHTTPMethods,
      retryableHTTPStatusCodes: retryableHTTPStatusCodes, retryableURLErrorCodes: retryableURLErrorCodes)
  }

  /// Makes a ``RetryPolicy`` that respects `Retry-After` or spreads its delays; the parameters are the initialiser's.
  @_disfavoredOverload
  public static func retryPolicy(
    retryLimit: UInt = RetryPolicy.defaultRetryLimit,
    exponentialBackoffBase: UInt = RetryPolicy.defaultExponentialBackoffBase,
    exponentialBackoffScale: Double = RetryPolicy.defaultExponentialBackoffScale,
    retryableHTTPMethods: Set<HTTPMethod> = RetryPolicy.defaultRetryableHTTPMethods,
    retryableHTTPStatusCodes: Set<Int> = RetryPolicy.defaultRetryableHTTPStatusCodes,
    retryableURLErrorCodes: Set<URLError.Code> = RetryPolicy.defaultRetryableURLErrorCodes,
    maximumRetryAfter: TimeInterval? = nil, jitter: RetryPolicy.Jitter = .none
  ) -> RetryPolicy {
    RetryPolicy(
      retryLimit: retryLimit, exponentialBackoffBase: exponentialBackoffBase,
      exponentialBackoffScale: exponentialBackoffScale, retryableHTTPMethods: retryableHTTPMethods,
      retryableHTTPStatusCodes: retryableHTTPStatusCodes, retryableURLErrorCodes: retryableURLErrorCodes,
      maximumRetryAfter: maximumRetryAfter, jitter: jitter)
  }
}

extension RetryPolicy {
  /// 2.
  public static let defaultRetryLimit: UInt = 2

  /// 2.
  public static let defaultExponentialBackoffBase: UInt = 2

  /// Half a second.
  public static let defaultExponentialBackoffScale: Double = 0.5

  /// The idempotent methods (RFC 9110 §9.2.2): DELETE, GET, HEAD, OPTIONS, PUT, TRACE.
  public static let defaultRetryableHTTPMethods: Set<HTTPMethod> = [
    .delete, .get, .head, .options, .put, .trace,
  ]

  /// 408, 500, 502, 503 and 504.
  public static let defaultRetryableHTTPStatusCodes: Set<Int> = [408, 500, 502, 503, 504]

  /// The codes of failures that are often temporary: a timeout, a lost connection, an unknown host, a missing route, an
  /// interrupted transfer.
  ///
  /// As in upstream, the list also has failures that another attempt often meets again: a response that violates HTTP
  /// (`badServerResponse`), a failed handshake (`secureConnectionFailed`), and a certificate that is not valid at the
  /// present time. A cancellation, an invalid URL, an untrusted certificate, a missing file and too many redirects are
  /// not included.
  public static let defaultRetryableURLErrorCodes: Set<URLError.Code> = [
    .backgroundSessionInUseByAnotherProcess,
    .backgroundSessionWasDisconnected,
    .badServerResponse,
    .callIsActive,
    .cannotConnectToHost,
    .cannotFindHost,
    .cannotLoadFromNetwork,
    .dataNotAllowed,
    .dnsLookupFailed,
    .downloadDecodingFailedMidStream,
    .downloadDecodingFailedToComplete,
    .internationalRoamingOff,
    .networkConnectionLost,
    .notConnectedToInternet,
    .secureConnectionFailed,
    .serverCertificateHasBadDate,
    .serverCertificateNotYetValid,
    .timedOut,
  ]
}

/// A retry policy that retries only requests whose connection was lost.
///
/// A ``RetryPolicy`` without status codes, and with `URLError.networkConnectionLost` as its only code.
///
/// ```swift
/// let session = Session(interceptor: ConnectionLostRetryPolicy(retryLimit: 1))
/// ```
open class ConnectionLostRetryPolicy: RetryPolicy, @unchecked Sendable {
  // Unchecked, as ``RetryPolicy`` is: it adds nothing that is stored.

  /// Makes a policy.
  ///
  /// - Parameters:
  ///   - retryLimit: The maximum number of retries of a request. Default: 2.
  ///   - exponentialBackoffBase: The factor of the delay with each retry. Default and minimum: 2.
  ///   - exponentialBackoffScale: The first delay, in seconds. Default: 0.5.
  ///   - retryableHTTPMethods: The methods of requests that are sent again. Default: the idempotent ones.
  public init(
    retryLimit: UInt = RetryPolicy.defaultRetryLimit,
    exponentialBackoffBase: UInt = RetryPolicy.defaultExponentialBackoffBase,
    exponentialBackoffScale: Double = RetryPolicy.defaultExponentialBackoffScale,
    retryableHTTPMethods: Set<HTTPMethod> = RetryPolicy.defaultRetryableHTTPMethods
  ) {
    super.init(
      retryLimit: retryLimit, exponentialBackoffBase: exponentialBackoffBase,
      exponentialBackoffScale: exponentialBackoffScale, retryableHTTPMethods: retryableHTTPMethods,
      retryableHTTPStatusCodes: [], retryableURLErrorCodes: [.networkConnectionLost])
  }

  /// Makes a policy that spreads its delays.
  ///
  /// - Parameters:
  ///   - retryLimit: The maximum number of retries of a request. Default: 2.
  ///   - exponentialBackoffBase: The factor of the delay with each retry. Default and minimum: 2.
  ///   - exponentialBackoffScale: The first delay, in seconds. Default: 0.5.
  ///   - retryableHTTPMethods: The methods of requests that are sent again. Default: the idempotent ones.
  ///   - jitter: Whether delays are randomized.
  public init(
    retryLimit: UInt = RetryPolicy.defaultRetryLimit,
    exponentialBackoffBase: UInt = RetryPolicy.defaultExponentialBackoffBase,
    exponentialBackoffScale: Double = RetryPolicy.defaultExponentialBackoffScale,
    retryableHTTPMethods: Set<HTTPMethod> = RetryPolicy.defaultRetryableHTTPMethods,
    jitter: Jitter
  ) {
    super.init(
      retryLimit: retryLimit, exponentialBackoffBase: exponentialBackoffBase,
      exponentialBackoffScale: exponentialBackoffScale, retryableHTTPMethods: retryableHTTPMethods,
      retryableHTTPStatusCodes: [], retryableURLErrorCodes: [.networkConnectionLost], jitter: jitter)
  }
}

extension RequestRetrier where Self == ConnectionLostRetryPolicy {
  /// A ``ConnectionLostRetryPolicy`` with its defaults.
  public static var connectionLostRetryPolicy: ConnectionLostRetryPolicy { ConnectionLostRetryPolicy() }

  /// Makes a ``ConnectionLostRetryPolicy``; the parameters are the initialiser's.
  public static func connectionLostRetryPolicy(
    retryLimit: UInt = RetryPolicy.defaultRetryLimit,
    exponentialBackoffBase: UInt = RetryPolicy.defaultExponentialBackoffBase,
    exponentialBackoffScale: Double = RetryPolicy.defaultExponentialBackoffScale,
    retryableHTTPMethods: Set<HTTPMethod> = RetryPolicy.defaultRetryableHTTPMethods
  ) -> ConnectionLostRetryPolicy {
    ConnectionLostRetryPolicy(
      retryLimit: retryLimit, exponentialBackoffBase: exponentialBackoffBase,
      exponentialBackoffScale: exponentialBackoffScale, retryableHTTPMethods: retryableHTTPMethods)
  }

  /// Makes a ``ConnectionLostRetryPolicy`` that spreads its delays; the parameters are the initialiser's.
  public static func connectionLostRetryPolicy(
    retryLimit: UInt = RetryPolicy.defaultRetryLimit,
    exponentialBackoffBase: UInt = RetryPolicy.defaultExponentialBackoffBase,
    exponentialBackoffScale: Double = RetryPolicy.defaultExponentialBackoffScale,
    retryableHTTPMethods: Set<HTTPMethod> = RetryPolicy.defaultRetryableHTTPMethods,
    jitter: RetryPolicy.Jitter
  ) -> ConnectionLostRetryPolicy {
    ConnectionLostRetryPolicy(
      retryLimit: retryLimit, exponentialBackoffBase: exponentialBackoffBase,
      exponentialBackoffScale: exponentialBackoffScale, retryableHTTPMethods: retryableHTTPMethods,
      jitter: jitter)
  }
}

/// The delay before a retry. Pure: the random number is a parameter.
package struct Backoff: Sendable {
  package let base: UInt
  package let scale: Double
  package let isJittered: Bool

  package init(base: UInt, scale: Double, isJittered: Bool) {
    self.base = base
    self.scale = scale
    self.isJittered = isJittered
  }

  /// The maximum delay in seconds: a year.
  package static let longest: TimeInterval = 31_536_000

  /// Returns the delay in seconds after `retryCount` retries: `base` to the power of `retryCount`, times `scale`.
  /// With jitter it is a part of that, chosen by `random` (0 to 1). `retryAfter`, the delay of a `Retry-After`
  /// field, is the minimum. Jitter is added to it, so that clients with the same field do not retry at the same time.
  ///
  /// The result is finite, from 0 to ``longest``. A scale that is negative or not a number gives no delay.
  package func delay(retryCount: Int, retryAfter: TimeInterval? = nil, random: Double) -> TimeInterval {
    let minimum = clamped(retryAfter ?? 0)
    // An infinite power times a scale of zero is not a number, which gives no delay.
    let full = clamped(pow(Double(base), Double(max(0, retryCount))) * scale)
    return isJittered ? clamped(minimum + full * random) : max(minimum, full)
  }

  private func clamped(_ seconds: TimeInterval) -> TimeInterval {
    seconds > 0 ? min(seconds, Self.longest) : 0
  }
}
