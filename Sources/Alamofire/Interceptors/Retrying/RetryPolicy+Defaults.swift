public import Foundation
import FoundationNetworking
public import HTTPWire

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

  /// The codes of temporary failures: a lost connection, an unknown host, a missing route, an interrupted transfer, a
  /// failed handshake, a wrong clock.
  ///
  /// Failures that another attempt would meet again are not included: a cancellation, an invalid URL, an untrusted
  /// certificate, a missing file, too many redirects.
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
