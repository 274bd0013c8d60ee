public import Alamofire
import Foundation
public import FoundationNetworking

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

/// The options of today's generation: versions of HTTP, proxies, trust store, host overrides and so on.
public typealias TransportOptions = Alamofire::TransportOptions

/// The default manager and options of the program, each under its own lock.
private enum SharedManagers {
  /// The shared manager, created on first use.
  static let manager = Mutex<SessionManager?>(nil)
  /// The options of future managers, for any thread.
  static let options = Mutex(TransportOptions())
}

extension SessionManager {
  /// The manager of the whole program, which the functions of ``Alamofire`` use. Its requests carry
  /// ``defaultHTTPHeaders``.
  ///
  /// Alamofire 4 has no setter for this property. If the program does not retain the earlier manager, its requests end.
  /// May be used from any thread.
  public static var `default`: SessionManager {
    get {
      if let manager = SharedManagers.manager.withLock({ $0 }) { return manager }
      let configuration = URLSessionConfiguration.default
      configuration.httpAdditionalHeaders = SessionManager.defaultHTTPHeaders
      let made = SessionManager(configuration: configuration)
      // If several threads created one, the first one is used.
      return SharedManagers.manager.withLock { manager in
        let first = manager ?? made
        manager = first
        return first
      }
    }
    set {
      // The one before is released outside of the lock.
      _ = SharedManagers.manager.withLock { manager in
        defer { manager = newValue }
        return manager
      }
    }
  }

  /// The options for managers that are created from now on without any. An addition to the fourth generation; code for
  /// that generation need not know it. May be used from any thread.
  ///
  /// ```swift
  /// SessionManager.defaultTransportOptions.httpVersions = .http1Only
  /// ```
  public static var defaultTransportOptions: TransportOptions {
    get { SharedManagers.options.withLock { $0 } }
    set { SharedManagers.options.withLock { $0 = newValue } }
  }
}

extension URLSessionConfiguration {
  /// Makes a configuration with the name of a background session. A manager with this configuration behaves like one
  /// with `URLSessionConfiguration.default`: its transfers end with the process.
  public class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
    plainBackground(withIdentifier: identifier)
  }
}
