import Alamofire
public import Foundation

extension SessionManager {
  /// The fields `Accept-Encoding`, `Accept-Language` and `User-Agent` of ``default``. Created once.
  ///
  /// ```swift
  /// var headers = SessionManager.defaultHTTPHeaders
  /// headers["DNT"] = "1 (Do Not Track Enabled)"
  /// let configuration = URLSessionConfiguration.default
  /// configuration.httpAdditionalHeaders = headers
  /// let manager = SessionManager(configuration: configuration)
  /// ```
  public static let defaultHTTPHeaders: HTTPHeaders = [
    "Accept-Encoding": "gzip;q=1.0, compress;q=0.5",
    "Accept-Language": Alamofire::HTTPHeader.defaultAcceptLanguage.value,
    "User-Agent": Alamofire::HTTPHeader.defaultUserAgent.value,
  ]

  /// From how many bytes on a form goes by way of a file: ten million. Shorter ones are encoded in memory.
  public static let multipartFormDataEncodingMemoryThreshold: UInt64 = 10_000_000

  /// The result of encoding a form.
  public enum MultipartFormDataEncodingResult {
    /// The upload has been created. `streamingFromDisk` says whether it is sent from `streamFileURL`.
    ///
    /// The file is removed before the handlers are called, unless the request may be sent again: for credentials that
    /// the server has asked for, or for a later `validate()` if the manager has a retrier. It is then removed with the
    /// request, so do not keep such requests for long.
    case success(request: UploadRequest, streamingFromDisk: Bool, streamFileURL: URL?)
    /// The form could not be encoded, or the request could not be created.
    case failure(any Error)
  }
}
