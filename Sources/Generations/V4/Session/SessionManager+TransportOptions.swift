public import Alamofire
import Foundation
public import FoundationNetworking

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
