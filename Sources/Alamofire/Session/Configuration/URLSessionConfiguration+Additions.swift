public import FoundationNetworking
import Synchronization

extension URLSessionConfiguration {
  /// Whether the system launches a program for the end of its background transfers. Default: `true` for configurations
  /// of `background(withIdentifier:)`, else `false`.
  ///
  /// The property keeps its value and has no effect, because nothing launches programs for their transfers on Linux.
  /// Like ``waitsForConnectivity`` it belongs to this object and to the sessions made with it.
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
  /// ``waitsForConnectivity`` it belongs to this object and to the sessions made with it. A file that imports
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

/// Properties of configurations that Foundation on Linux does not have. The properties are stored beside the
/// configurations, which have no storage for them.
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
