public import Foundation
public import FoundationNetworking
public import HTTPWire
import Synchronization

extension AlamofireExtension where ExtendedType: URLSessionConfiguration {
  /// A fresh copy of the system's default configuration, with `HTTPHeaders.default` as its header fields.
  ///
  /// ```swift
  /// let configuration = URLSessionConfiguration.af.default
  /// configuration.timeoutIntervalForRequest = 10  // seconds
  /// ```
  public static var `default`: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.default
    configuration.headers = .default
    return configuration
  }

  /// A fresh configuration that keeps cache, cookies and credentials in memory, with `HTTPHeaders.default` as its
  /// header fields. Each such configuration has its own ``HTTPCache`` of 4 MiB.
  public static var ephemeral: URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = HTTPCache(memoryCapacity: 4_194_304, diskCapacity: 0, directory: nil)
    configuration.headers = .default
    return configuration
  }
}

extension URLSessionConfiguration {
  /// Whether requests wait for a network instead of failing. Default: `false`.
  ///
  /// If no route leads to the host, the request waits, and its delegate and the monitors are called once
  /// (`urlSession(_:taskIsWaitingForConnectivity:)`). The request is sent when there is a network, and fails with
  /// `URLError.timedOut` after `timeoutIntervalForResource`; `timeoutIntervalForRequest` is paused. As for
  /// ``OfflineRetrier``, links and routes of the kernel make a network. A host that does not respond, and a lost
  /// connection, are errors.
  ///
  /// Foundation on Linux has no such property, so it belongs to this object and to the sessions that are created from
  /// it. Set it again on a copy.
  ///
  /// ```swift
  /// let configuration = URLSessionConfiguration.af.default
  /// configuration.waitsForConnectivity = true
  /// let session = Session(configuration: configuration)
  /// ```
  public var waitsForConnectivity: Bool {
    get { ConfigurationAdditions.shared[self].waitsForConnectivity }
    set { ConfigurationAdditions.shared.update(self) { $0.waitsForConnectivity = newValue } }
  }
}

extension URLSessionConfiguration {
  /// The header fields that every request of a session gets, unless the request has them itself
  /// (`httpAdditionalHeaders`). Reading gives them in no particular order, and none when they are not
  /// all text; writing replaces all of them.
  public var headers: HTTPHeaders {
    get { (httpAdditionalHeaders as? [String: String]).map(HTTPHeaders.init) ?? HTTPHeaders() }
    set { httpAdditionalHeaders = newValue.dictionary }
  }
}

extension URLSessionConfiguration {
  /// Whether the system launches a program for the end of its background transfers. Default: `true` for configurations
  /// of `background(withIdentifier:)`, else `false`.
  ///
  /// The property keeps its value and has no effect, because nothing launches programs for their transfers on Linux.
  /// Like ``waitsForConnectivity`` it belongs to this object and to the sessions created from it.
  ///
  /// ```swift
  /// let configuration = URLSessionConfiguration.background(withIdentifier: "com.example.sync")
  /// configuration.sessionSendsLaunchEvents = false
  /// ```
  public var sessionSendsLaunchEvents: Bool {
    get { ConfigurationAdditions.shared[self].sendsLaunchEvents ?? (identifier != nil) }
    set { ConfigurationAdditions.shared.update(self) { $0.sendsLaunchEvents = newValue } }
  }

  // Disfavored, because Foundation has a property of this name that can only be read. Otherwise a file that imports
  // FoundationNetworking could not read it.
  /// The container that background transfers of an app extension share with the app. Default: `nil`.
  ///
  /// The property keeps its value and has no effect, because there are no containers on Linux. Like
  /// ``waitsForConnectivity`` it belongs to this object and to the sessions created from it. A file that imports
  /// FoundationNetworking itself sets this property and reads Foundation's, which is always `nil`.
  ///
  /// ```swift
  /// let configuration = URLSessionConfiguration.background(withIdentifier: "com.example.sync")
  /// configuration.sharedContainerIdentifier = "group.com.example.app"
  /// ```
  @_disfavoredOverload
  public var sharedContainerIdentifier: String? {
    get { ConfigurationAdditions.shared[self].sharedContainer }
    set { ConfigurationAdditions.shared.update(self) { $0.sharedContainer = newValue } }
  }

  /// Makes a copy with the properties that Foundation on Linux does not have.
  func duplicated() -> URLSessionConfiguration {
    guard let copy = copy() as? URLSessionConfiguration else { return self }
    let values = ConfigurationAdditions.shared[self]
    if values != .none { ConfigurationAdditions.shared.update(copy) { $0 = values } }
    return copy
  }
}

/// Properties of configurations that Foundation on Linux does not have. The properties are stored separately, because
/// configurations have no storage for them.
final class ConfigurationAdditions: Sendable {
  static let shared = ConfigurationAdditions()

  struct Values: Equatable {
    static let none = Values()

    var waitsForConnectivity = false
    var sendsLaunchEvents: Bool?
    var sharedContainer: String?
  }

  private struct Entry {
    weak var configuration: URLSessionConfiguration?
    var values: Values
  }

  /// The properties that Foundation lacks, by configuration, for any thread.
  private let entries = Mutex<[ObjectIdentifier: Entry]>([:])

  subscript(_ configuration: URLSessionConfiguration) -> Values {
    entries.withLock { entries in
      guard let entry = entries[ObjectIdentifier(configuration)] else { return .none }
      return entry.configuration === configuration ? entry.values : .none
    }
  }

  func update(_ configuration: URLSessionConfiguration, _ change: (inout Values) -> Void) {
    entries.withLock { entries in
      // Entries of released configurations are removed here.
      entries = entries.filter { $0.value.configuration != nil }
      let key = ObjectIdentifier(configuration)
      var values = entries[key]?.values ?? .none
      change(&values)
      entries[key] = values == .none ? nil : Entry(configuration: configuration, values: values)
    }
  }
}

extension URLSessionConfiguration {
  // The member of an older generation takes precedence where both are visible.
  /// Makes a configuration of a background session, whose downloads and uploads survive the end of the process.
  ///
  /// Each transfer is written to a journal before it begins. If the process ends, by whatever cause, the next session
  /// with the same identifier continues the unfinished transfers: see ``Session/restoredRequests``. Without such a
  /// session in any process, the transfers do not make progress. One session at a time may use an identifier; the
  /// transfers of another one fail with `URLError.backgroundSessionInUseByAnotherProcess`.
  ///
  /// The journal is a folder of files that only their owner can read, in `$XDG_STATE_HOME/alamofire/background`, or in
  /// `~/.local/state/alamofire/background`. The journal contains the URL and the header fields that the program has
  /// set, but nothing that adapters, cookies and credentials add. It also contains the response as received, with the
  /// cookies that it sets, until the response handlers have returned.
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

extension HTTPHeaders {
  /// The fields that every request of a default session has: `Accept-Encoding`, `Accept-Language` and `User-Agent`, in
  /// this order. Created once, on first use.
  public static let `default`: HTTPHeaders = [
    .defaultAcceptEncoding, .defaultAcceptLanguage, .defaultUserAgent,
  ]
}

extension HTTPHeader {
  /// `Accept-Encoding` (RFC 9110 §12.5.3) with the codings that can be decoded here, for example
  /// `br;q=1.0, gzip;q=0.9, deflate;q=0.8`. Created once, on first use.
  public static let defaultAcceptEncoding = HTTPHeader.acceptEncoding(
    ranked(ContentCodings.supported))

  /// `Accept-Language` (RFC 9110 §12.5.4) with up to six of the user's languages, for example `de-DE;q=1.0, en;q=0.9`.
  /// Created once, on first use.
  public static let defaultAcceptLanguage = HTTPHeader.acceptLanguage(
    ranked(Locale.preferredLanguages.prefix(6)))

  /// `User-Agent` (RFC 9110 §10.1.5) that names the program, its bundle, the system and this library, for example
  /// `tool/2.1 (org.example.tool; build:7; Linux) Alamofire/1.2.3`. Created once, on first use.
  ///
  /// Version, bundle and build come from the bundle of the program. Most programs on Linux have none, and then the
  /// field is `tool (Linux) Alamofire/1.2.3`. To name a version, set your own field with `userAgent(_:)`. The version
  /// of the kernel is not sent, because it tells an attacker which faults the machine has.
  public static let defaultUserAgent = HTTPHeader.userAgent(
    userAgent(info: Bundle.main.infoDictionary ?? [:], arguments: ProcessInfo.processInfo.arguments))

  /// Returns values with falling qualities (RFC 9110 §12.4.2): the first 1.0, and a tenth less each, down to 0.1.
  package static func ranked(_ values: some Collection<String>) -> String {
    values.enumerated()
      .map { index, value in
        let quality = index == 0 ? "1.0" : "0.\(max(10 - index, 1))"
        return "\(value);q=\(quality)"
      }
      .joined(separator: ", ")
  }

  package static func userAgent(info: [String: Any], arguments: [String]) -> String {
    func value(_ key: String) -> String? {
      (info[key] as? String).map(token).flatMap { $0.isEmpty ? nil : $0 }
    }
    let launched = arguments.first?.split(separator: "/").last.map { token(String($0)) }
    let program = (value("CFBundleExecutable") ?? launched).map { name in
      name + (value("CFBundleShortVersionString").map { "/\($0)" } ?? "")
    }
    let bundle = [value("CFBundleIdentifier"), value("CFBundleVersion").map { "build:\($0)" }, "Linux"]
    let comment = "(\(bundle.compactMap { $0 }.joined(separator: "; ")))"
    let library = "Alamofire/\(AFInfo.version)"
    // The field begins with a product.
    return program.map { "\($0) \(comment) \(library)" } ?? "\(library) \(comment)"
  }

  /// Replaces characters that are invalid in the name of a product (RFC 9110 §5.6.2). The file name of a program can
  /// contain any character, such as a line break.
  private static func token(_ text: String) -> String {
    String(text.map { HeaderFieldRules.isToken(String($0)) ? $0 : "_" })
  }
}

/// The content codings (RFC 9110 §8.4.1) that a response may use.
package enum ContentCodings {
  /// The content codings of the default `Accept-Encoding` that the engine supports, preferred ones first. The engine
  /// decodes others (`zstd`) too, and a request can accept them.
  package static let supported = ["br", "gzip", "deflate"].filter { ContentCoding(rawValue: $0) != nil }
}

/// Facts about the library itself.
public enum AFInfo {
  /// The version of this library (Semantic Versioning), which is unrelated to upstream Alamofire's. Only this line and
  /// the CHANGELOG contain the version.
  public static let version = "0.1.0"
}
