import Alamofire
import Foundation
import FoundationNetworking

extension TransportOptions {
  /// The options with the behavior of both older generations. A GET may have a body, and the factory methods make the
  /// URL request on the caller's thread.
  var forOlderGenerations: TransportOptions {
    var options = self
    options.allowsBodyInGETRequests = true
    options.makesRequestsAtOnce = true
    return options
  }
}

extension URLSessionConfiguration {
  /// Makes a configuration that differs from the default one only by the identifier of a background session.
  static func plainBackground(withIdentifier identifier: String) -> URLSessionConfiguration {
    NamedConfiguration.make(identifier)
  }

  /// The configuration, or a copy whose sessions write no journal if it is one of a background session.
  var withoutJournal: URLSessionConfiguration {
    guard let identifier, !(self is NamedConfiguration) else { return self }
    let copy = NamedConfiguration.make(identifier)
    copy.adopt(self)
    copy.waitsForConnectivity = waitsForConnectivity
    copy.sessionSendsLaunchEvents = sessionSendsLaunchEvents
    copy.sharedContainerIdentifier = sharedContainerIdentifier
    return copy
  }
}

/// A configuration with an identifier, whose sessions write no journal.
///
/// A session with the current generation's background configuration continues the transfers of an earlier process. The
/// managers of the older generations could not pass those requests on to the program.
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

  // Foundation's own function returns an object of the superclass.
  override func copy(with zone: NSZone? = nil) -> Any {
    let copy = Self.made(named: name)
    copy.adopt(self)
    return copy
  }

  /// Takes over the properties of Foundation's class.
  func adopt(_ other: URLSessionConfiguration) {
    requestCachePolicy = other.requestCachePolicy
    timeoutIntervalForRequest = other.timeoutIntervalForRequest
    timeoutIntervalForResource = other.timeoutIntervalForResource
    networkServiceType = other.networkServiceType
    allowsCellularAccess = other.allowsCellularAccess
    isDiscretionary = other.isDiscretionary
    connectionProxyDictionary = other.connectionProxyDictionary
    httpShouldSetCookies = other.httpShouldSetCookies
    httpCookieAcceptPolicy = other.httpCookieAcceptPolicy
    httpAdditionalHeaders = other.httpAdditionalHeaders
    httpMaximumConnectionsPerHost = other.httpMaximumConnectionsPerHost
    httpCookieStorage = other.httpCookieStorage
    urlCredentialStorage = other.urlCredentialStorage
    urlCache = other.urlCache
    protocolClasses = other.protocolClasses
  }
}

/// Calls an initialiser that Foundation calls deprecated, and has no other of; the warning would be an error.
private protocol DeprecatedMaking {
  init(name: String)
}

extension DeprecatedMaking {
  fileprivate static func made(named name: String) -> Self { Self(name: name) }
}

/// Asks a closure of the user's whether a server is trusted.
struct ClosureTrustEvaluator: ServerTrustEvaluating {
  private struct Refusal: LocalizedError {
    let host: String
    var errorDescription: String? { "The custom evaluation refused \(host)." }
  }

  private let accepts: Boxed<(ServerTrust, String) -> Bool>

  init(_ accepts: @escaping (ServerTrust, String) -> Bool) { self.accepts = Boxed(accepts) }

  func evaluate(_ trust: ServerTrust, forHost host: String) throws {
    guard accepts.value(trust, host) else { throw Refusal(host: host) }
  }
}

/// Asks the user's manager of policies about each host.
final class PolicyTrustManager: ServerTrustManager, @unchecked Sendable {
  // Unchecked, as its superclass is: its own properties are constants.
  private let evaluator: Boxed<(String) -> (any ServerTrustEvaluating)?>

  /// Makes a manager that asks a closure.
  ///
  /// - Parameter evaluator: Returns the evaluator of a host; `nil` leaves the decision to the trust store.
  init(_ evaluator: @escaping (String) -> (any ServerTrustEvaluating)?) {
    self.evaluator = Boxed(evaluator)
    super.init(allHostsMustBeEvaluated: false, evaluators: [:])
  }

  override func serverTrustEvaluator(forHost host: String) throws -> (any ServerTrustEvaluating)? {
    evaluator.value(host)
  }
}

/// Values by host, in any spelling of the host. These generations have no wildcards.
struct HostTable<Value>: Sendable {
  /// Carries a value through the core's manager. It accepts no server.
  private struct Carrier: ServerTrustEvaluating {
    let value: Boxed<Value>

    func evaluate(_ trust: ServerTrust, forHost host: String) throws {
      throw URLError(.secureConnectionFailed)
    }
  }

  private let manager: ServerTrustManager

  init(_ values: [String: Value]) {
    let carriers = values.filter { !$0.key.hasPrefix("*") }.mapValues { Carrier(value: Boxed($0)) }
    manager = ServerTrustManager(allHostsMustBeEvaluated: false, evaluators: carriers)
  }

  subscript(host: String) -> Value? {
    let carrier = try? manager.serverTrustEvaluator(forHost: host)
    return (carrier as? Carrier)?.value.value
  }
}

/// The file of a form that is too large for memory.
///
/// Each has a folder of its own, which only its owner can read. A folder for all forms would belong to the first user
/// of the machine who makes it, and that user could read or replace the forms of others.
struct FormFile {
  let url: URL

  /// Makes the folder.
  ///
  /// - Parameter name: The beginning of its name.
  init(_ name: String) throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("\(name)-\(UUID().uuidString)", isDirectory: true)
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    url = folder.appendingPathComponent("multipart.form.data")
  }

  /// Removes the file with its folder. Does nothing the second time.
  func remove() { try? FileManager.default.removeItem(at: url.deletingLastPathComponent()) }
}
