import COpenSSL
import Glibc
import HTTPSystem
import HTTPWire

/// An open connection that carries exchanges. Belongs to the loop's thread, and lasts until it is closed.
///
/// A connection and the exchanges on it refer to each other. The exchange releases the connection when it ends, so that
/// an idle connection does not retain a request.
protocol Connection: AnyObject {
  var facts: ConnectionFacts { get }
  /// Whether the connection carries several exchanges at a time.
  var multiplexes: Bool { get }
  /// The time at which the connection became idle, by ``LoopState/elapsed``.
  var idleSince: UInt64 { get }
  /// The time by that clock until which the idle connection is used again.
  var idleLimit: UInt64 { get }

  /// Continues to move the bytes of an exchange that had to wait.
  func goOn(with exchange: Exchange)
  /// Sends the content of a request after waiting for the answer to `Expect: 100-continue` has timed out.
  func continueExpired(_ exchange: Exchange)
  /// Releases an exchange that ends before its response is complete.
  func abandon(_ exchange: Exchange)
  /// Whether the response of an exchange is complete, so that only its request is still being sent.
  func isAnswered(_ exchange: Exchange) -> Bool
  /// Notes that an exchange is about to be abandoned because of a time limit.
  func noteTimeout(of exchange: Exchange)
  /// Does what an earlier turn of the loop has left.
  func continueTurn()
  func close()
}

/// The properties that the connections of one pool have in common. Two requests share a connection only if their keys
/// are equal.
struct ConnectionKey: Hashable {
  /// The origin of the requests. Where a proxy forwards them, its own origin stands here, because its connections carry
  /// requests to every server.
  let origin: Origin
  let route: Route
  /// Whether the connections lead to an alternative service, which has to speak HTTP/2.
  let isAlternative: Bool
  /// Connections of another partition have another identity, or were accepted by another evaluator.
  let partition: Int
  let settings: TLSSettings
  /// Whether the server's question for a client identity is answered.
  let choosesIdentity: Bool
  let versions: TransportOptions.HTTPVersions
  let localInterface: ByteText?
  let addressFamily: TransportOptions.AddressFamily
  let refusesPrivateAddresses: Bool
  /// The name service by which the server is found, and the way to it; `nil` if its name is not looked up there.
  let nameService: NameServiceRoute?

  /// Makes the key of a request.
  ///
  /// - Parameter needsHTTP1: Whether HTTP/2 cannot carry the request, although it is demanded for others.
  init(
    _ origin: Origin, _ route: Route, _ profile: ConnectionProfile, isAlternative: Bool,
    needsHTTP1: Bool = false
  ) {
    self.isAlternative = isAlternative
    let options = profile.options
    if route.forwards, let proxy = route.proxy {
      self.origin = proxy.origin
    } else {
      self.origin = origin
    }
    self.route = route
    partition = profile.partition
    settings = TLSSettings(options, isForProxy: false)
    choosesIdentity = profile.choosesIdentity
    // Where HTTP/2 is demanded, an idle connection of HTTP/1.1 must not carry the next request.
    versions = needsHTTP1 && !route.forwards ? .http1Only : options.httpVersions
    localInterface = options.localInterface.map { ByteText($0) }
    addressFamily = options.addressFamily
    refusesPrivateAddresses = options.refusesPrivateAddresses
    nameService = NameServiceRoute(profile).flatMap { route.namedEndpoint == nil ? nil : $0 }
  }

  var isSecure: Bool { origin.scheme == "https" }
}

/// A name service and the way to it, because a service may answer by the address that asks.
struct NameServiceRoute: Hashable {
  let url: String
  let origin: Origin
  private let localInterface: ByteText?
  private let hostOverride: TransportOptions.HostOverride?
  /// The Unix-domain socket at which the proxy to the service is reached. The proxy itself is in the partition.
  private let proxySocket: ByteText?

  /// Returns `nil` if a profile has no name service with a valid URL.
  init?(_ profile: ConnectionProfile) {
    let options = profile.options
    guard let url = options.nameServiceURL, let origin = Origin(url: url) else { return nil }
    self.url = url
    self.origin = origin
    localInterface = options.localInterface.map { ByteText($0) }
    hostOverride = options.hostOverrides.first { $0.leads(origin) }
    proxySocket = options.proxySocket(to: origin, profile.proxies).map { ByteText($0) }
  }
}

/// The facts about an open connection, for the metrics of the exchanges that it carries. It never changes.
final class ConnectionFacts: Sendable {
  /// The end of each step of connecting, on the monotonic clock in nanoseconds; 0 if the step did not happen.
  struct Times: Sendable {
    var lookupEnd: UInt64 = 0
    var connectEnd: UInt64 = 0
    var secureEnd: UInt64 = 0
  }

  let times: Times
  /// The facts that the metrics of each exchange hold.
  let details: ConnectionDetails
  let localPort: Int32
  let remotePort: Int32
  /// Whether a proxy stands between the two ends.
  let isProxied: Bool

  init(of pipe: any Pipe, _ tls: TLSConnection?, _ times: Times, isProxied: Bool) {
    self.times = times
    self.isProxied = isProxied
    let local = Self.end(of: pipe.descriptor, isRemote: false)
    let remote = Self.end(of: pipe.descriptor, isRemote: true)
    (localPort, remotePort) = (local.port, remote.port)
    details = ConnectionDetails(
      localAddress: local.address, remoteAddress: remote.address, tlsVersion: tls?.version,
      tlsCipher: tls?.cipher)
  }

  /// Returns the address and the port of one end of a socket; an empty text for a Unix-domain socket.
  private static func end(of descriptor: Int32, isRemote: Bool) -> (address: String, port: Int32) {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let address = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        let status =
          isRemote
          ? getpeername(descriptor, address, &length) : getsockname(descriptor, address, &length)
        return status == 0 ? HostLookup.address(address) : nil
      }
    }
    guard let address else { return ("", 0) }
    // Both address families have the port at the same offset.
    let port = withUnsafeBytes(of: &storage) { $0.load(fromByteOffset: 2, as: UInt16.self) }
    return (address.text, Int32(UInt16(bigEndian: port)))
  }
}
