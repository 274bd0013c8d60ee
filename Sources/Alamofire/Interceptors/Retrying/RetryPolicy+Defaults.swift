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

  /// The codes of failures that may pass by themselves: a connection, a name or a route that is not there
  /// at the moment, a transfer that broke off, a handshake that failed, a clock that may be set.
  ///
  /// Left out is what another attempt would meet again: a cancellation, an address that makes no sense, a
  /// certificate that is not trusted, a file that is not there, too many redirects.
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
