public import FoundationNetworking

extension URLSessionConfiguration {
  // The member of an older generation takes precedence where both are visible.
  /// A configuration with the name of a background session, which Foundation does not have on Linux.
  ///
  /// Until transfers that survive the end of the process exist, a session that is made with it behaves like one with
  /// `URLSessionConfiguration.default`. The name is its `identifier`, also that of its copies.
  ///
  /// ```swift
  /// let session = Session(configuration: .background(withIdentifier: "com.example.sync"))
  /// ```
  @_disfavoredOverload
  public class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
    NamedConfiguration.make(identifier)
  }
}

extension AlamofireExtension where ExtendedType: URLSessionConfiguration {
  /// Returns a configuration as `URLSessionConfiguration.background(withIdentifier:)` does, with the header fields of
  /// `HTTPHeaders.default`.
  public static func background(withIdentifier identifier: String) -> URLSessionConfiguration {
    let configuration = NamedConfiguration.make(identifier)
    configuration.headers = .default
    return configuration
  }
}

/// A configuration with an identifier. It is a subclass because Foundation's initialiser with a name is unavailable.
private final class NamedConfiguration: URLSessionConfiguration, DeprecatedMaking, @unchecked Sendable {
  // Unchecked, as its superclass is: its own property is constant.
  private let name: String

  @available(*, deprecated, message: "As the initialiser of the superclass.")
  init(name: String) {
    self.name = name
    super.init()
  }

  static func make(_ name: String) -> NamedConfiguration { made(named: name) }

  override var identifier: String? {
    get { name }
    set {}
  }

  override func copy(with zone: NSZone? = nil) -> Any {
    let copy = Self.make(name)
    copy.requestCachePolicy = requestCachePolicy
    copy.timeoutIntervalForRequest = timeoutIntervalForRequest
    copy.timeoutIntervalForResource = timeoutIntervalForResource
    copy.networkServiceType = networkServiceType
    copy.allowsCellularAccess = allowsCellularAccess
    copy.isDiscretionary = isDiscretionary
    copy.connectionProxyDictionary = connectionProxyDictionary
    copy.httpShouldSetCookies = httpShouldSetCookies
    copy.httpCookieAcceptPolicy = httpCookieAcceptPolicy
    copy.httpAdditionalHeaders = httpAdditionalHeaders
    copy.httpMaximumConnectionsPerHost = httpMaximumConnectionsPerHost
    copy.httpCookieStorage = httpCookieStorage
    copy.urlCredentialStorage = urlCredentialStorage
    copy.urlCache = urlCache
    copy.protocolClasses = protocolClasses
    return copy
  }
}

/// Calls an initialiser that Foundation calls deprecated, and has no other of; the warning would be an error.
private protocol DeprecatedMaking {
  init(name: String)
}

extension DeprecatedMaking {
  fileprivate static func made(named name: String) -> Self { Self(name: name) }
}
