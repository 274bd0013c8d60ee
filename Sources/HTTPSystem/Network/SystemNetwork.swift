package import Dispatch
package import HTTPWire

/// The network of this machine according to the kernel.
package struct SystemNetwork: NetworkSource {
  private let query: NetworkQuery?

  /// Makes a source that asks by a query.
  ///
  /// - Parameter query: `nil` opens a socket for each query; no socket stays open in between.
  private init(query: NetworkQuery?) {
    self.query = query
  }

  /// Makes a source that holds a descriptor only while a watch is active.
  package init() { self.init(query: nil) }

  /// Returns a source for the network namespace of the calling thread, whichever thread uses it later. It holds a
  /// descriptor.
  package static func ofCallingThread() -> SystemNetwork? {
    NetworkQuery().map { SystemNetwork(query: $0) }
  }

  package var isAvailable: Bool { query != nil || NetworkQuery() != nil }

  package func state() -> NetworkState? { (query ?? NetworkQuery())?.state() }

  package func route(to address: IPAddress) -> RouteAnswer {
    (query ?? NetworkQuery())?.route(to: address) ?? .unreachable
  }

  package func addresses(of host: String, literalsOnly: Bool) -> [IPAddress] {
    HostLookup.addresses(of: host, literalsOnly: literalsOnly)
  }

  package func watch(on queue: DispatchQueue, _ changed: @escaping @Sendable () -> Void)
    -> (any NetworkWatch)?
  {
    NetlinkSocket(isListening: true).map { SystemNetworkWatch($0, on: queue, changed) }
  }
}

/// Reports changes until it is stopped or released.
private final class SystemNetworkWatch: NetworkWatch {
  // Unchecked: Dispatch allows to cancel a source from any thread.
  private nonisolated(unsafe) let source: any DispatchSourceRead

  init(_ socket: NetlinkSocket, on queue: DispatchQueue, _ changed: @escaping @Sendable () -> Void) {
    source = DispatchSource.makeReadSource(fileDescriptor: socket.descriptor, queue: queue)
    source.setEventHandler {
      socket.drain()
      changed()
    }
    // The socket must stay open while Dispatch polls it.
    source.setCancelHandler { withExtendedLifetime(socket) {} }
    source.resume()
  }

  deinit { source.cancel() }

  func stop() { source.cancel() }
}

/// The source from which reachability learns of the network: the system, or the script of a test.
package protocol NetworkSource: Sendable {
  /// Whether the system reports the state of its network.
  var isAvailable: Bool { get }
  /// Returns the current state of the network; `nil` if the system does not report it.
  func state() -> NetworkState?
  /// Returns the route of a packet to an address.
  func route(to address: IPAddress) -> RouteAnswer
  /// Returns the addresses of a host; may take long, unless only literal ones are accepted.
  func addresses(of host: String, literalsOnly: Bool) -> [IPAddress]
  /// Calls `changed` on `queue` after every change; returns `nil` if the system does not report changes.
  func watch(on queue: DispatchQueue, _ changed: @escaping @Sendable () -> Void) -> (any NetworkWatch)?
}

/// A watch of changes that ends when it is stopped or released.
package protocol NetworkWatch: AnyObject, Sendable {
  func stop()
}

package extension TransportFailure {
  /// Returns a failure that says that the machine is offline, if it is; otherwise this one. Asks the kernel only after
  /// a failure that may have this cause.
  ///
  /// - Parameter host: The host of the request.
  func explained(host: String, by source: some NetworkSource = SystemNetwork()) -> TransportFailure {
    guard let host = unreachedHost(of: host) else { return self }
    switch kind {
    case .cannotFindHost, .cannotFindProxy: break
    case .cannotConnectToHost, .cannotConnectToProxy:
      // A server that refuses a connection has been reached.
      if source.addresses(of: host, literalsOnly: true).isEmpty { return self }
    default: return self
    }
    guard let network = source.state(), !network.isConnected(to: host, isProxy: isAboutProxy, by: source)
    else { return self }
    return TransportFailure(
      .notConnected, "\(message) This machine has no connection to a network.",
      metrics: metrics)
  }

  /// Whether the host that could not be reached is a proxy.
  var isAboutProxy: Bool { kind == .cannotFindProxy || kind == .cannotConnectToProxy }

  /// Returns the host that this machine could not reach, for a request to `host`; `nil` if there is none.
  func unreachedHost(of host: String) -> String? {
    switch unreached {
    case .origin: host
    case .other(let other): other
    case .none: nil
    }
  }
}

package extension NetworkState {
  /// Whether there is a way for packets: to the network at large, or to a host that is given by its address.
  ///
  /// - Parameter isProxy: Whether the host is a proxy. A network without a default route may have its own.
  func isConnected(to host: String, isProxy: Bool, by source: some NetworkSource) -> Bool {
    if pathToAnywhere() != .unreachable { return true }
    let addresses = source.addresses(of: host, literalsOnly: true)
    // Nothing is known of the way to a host that is given by its name.
    if isProxy, addresses.isEmpty { return reachesOtherMachines }
    return path(to: addresses.map(source.route)) != .unreachable
  }
}
