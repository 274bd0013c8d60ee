public import Alamofire
import Synchronization

/// The options of today's generation: versions of HTTP, proxies, trust store, host overrides and so on.
public typealias TransportOptions = Alamofire::TransportOptions

private let defaults = Mutex(TransportOptions())

extension SessionManager {
  /// The options of today's generation for managers that are made from now on, ``default`` included: set them before
  /// it is used for the first time. May be used from any thread.
  ///
  /// Code of the fourth generation need not know them. Where they speak of bodies in a GET, and of when requests are
  /// made, managers do what that generation did.
  ///
  /// ```swift
  /// SessionManager.defaultTransportOptions.httpVersions = .http1Only
  /// ```
  public static var defaultTransportOptions: TransportOptions {
    get { defaults.withLock { $0 } }
    set { defaults.withLock { $0 = newValue } }
  }
}
