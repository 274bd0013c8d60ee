import Foundation
public import HTTPWire

/// Retries requests whose connection was lost, and nothing else.
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

  /// Makes a ``ConnectionLostRetryPolicy``; the parameters are those of its initialiser.
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

  /// Makes a ``ConnectionLostRetryPolicy`` that spreads its delays; the parameters are those of its initialiser.
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
