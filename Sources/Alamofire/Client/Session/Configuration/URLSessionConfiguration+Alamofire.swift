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
