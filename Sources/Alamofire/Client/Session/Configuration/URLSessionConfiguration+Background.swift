public import Foundation
public import FoundationNetworking

extension URLSessionConfiguration {
  // The member of an older generation takes precedence where both are visible.
  /// Makes a configuration of a background session, whose downloads and uploads survive the end of the process.
  ///
  /// Each transfer is written to a journal before it begins. If the process ends, by whatever cause, the next session
  /// with the same identifier continues the unfinished transfers: see ``Session/restoredRequests``. Without such a
  /// session in any process, the transfers do not make progress. One session at a time may use an identifier; the
  /// transfers of another one fail with `URLError.backgroundSessionInUseByAnotherProcess`.
  ///
  /// The journal is a folder that only its owner can read, in `$XDG_STATE_HOME/alamofire/background`, or in
  /// `~/.local/state/alamofire/background`. The journal contains the header fields that the program has set, but not
  /// the ones that adapters, cookies and credentials add.
  ///
  /// ```swift
  /// let session = Session(configuration: .background(withIdentifier: "com.example.sync"))
  /// ```
  @_disfavoredOverload
  public class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
    BackgroundConfiguration.make(identifier)
  }

  /// Makes a configuration of a background session, with the folder of its journal and the destination of its restored
  /// downloads. See ``background(withIdentifier:)``.
  ///
  /// ```swift
  /// let configuration = URLSessionConfiguration.background(withIdentifier: "com.example.sync") { _, response in
  ///   (library.appendingPathComponent(response.suggestedFilename ?? "file"), [.createIntermediateDirectories])
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - identifier: The name of the session.
  ///   - folder: The folder of the journal, which belongs only to this session. Default: one for the identifier.
  ///   - destination: The destination of downloads that an earlier process began. Without one their files are moved to
  ///     the temporary folder.
  public class func background(
    withIdentifier identifier: String, folder: URL? = nil,
    restoredDownloadsTo destination: @escaping DownloadRequest.Destination
  ) -> URLSessionConfiguration {
    BackgroundConfiguration.make(identifier, folder: folder, destination: destination)
  }

  /// Makes a configuration of a background session, with the folder of its journal. See
  /// ``background(withIdentifier:)``.
  public class func background(withIdentifier identifier: String, folder: URL) -> URLSessionConfiguration {
    BackgroundConfiguration.make(identifier, folder: folder)
  }
}

extension AlamofireExtension where ExtendedType: URLSessionConfiguration {
  /// Returns a configuration as `URLSessionConfiguration.background(withIdentifier:)` does, with the header fields of
  /// `HTTPHeaders.default`.
  public static func background(withIdentifier identifier: String) -> URLSessionConfiguration {
    let configuration = BackgroundConfiguration.make(identifier)
    configuration.headers = .default
    return configuration
  }
}

/// A configuration with an identifier. It is a subclass because Foundation's initialiser with a name is unavailable.
final class BackgroundConfiguration: URLSessionConfiguration, DeprecatedMaking, @unchecked Sendable {
  // Unchecked, as its superclass is: its own property is constant.
  /// The properties that Foundation's class does not have.
  struct Description {
    let identifier: String
    var folder: URL?
    var destination: DownloadRequest.Destination?
  }

  private let own: Description

  @available(*, deprecated, message: "As the initialiser of the superclass.")
  init(_ description: Description) {
    own = description
    super.init()
  }

  static func make(
    _ identifier: String, folder: URL? = nil, destination: DownloadRequest.Destination? = nil
  ) -> BackgroundConfiguration {
    made(Description(identifier: identifier, folder: folder, destination: destination))
  }

  /// The destination of downloads that an earlier process began.
  var restoredDownloadDestination: DownloadRequest.Destination? { own.destination }

  /// Opens the journal of the session.
  func makeTransfers() -> BackgroundTransfers {
    BackgroundTransfers(
      identifier: own.identifier, folder: own.folder?.path ?? BackgroundFolder.path(of: own.identifier),
      isDiscretionary: isDiscretionary)
  }

  override var identifier: String? {
    get { own.identifier }
    set {}
  }

  override func copy(with zone: NSZone? = nil) -> Any {
    let copy = Self.made(own)
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
  init(_ description: BackgroundConfiguration.Description)
}

extension DeprecatedMaking {
  fileprivate static func made(_ description: BackgroundConfiguration.Description) -> Self {
    Self(description)
  }
}
