import Foundation
import HTTPEngine
package import HTTPWire

/// The network of this machine, as the kernel tells of it.
package struct SystemNetwork: NetworkSource {
  private let query: NetworkQuery?

  /// - Parameter query: `nil` asks by a socket of its own each time; nothing is open in between.
  private init(query: NetworkQuery?) {
    self.query = query
  }

  /// Holds no descriptor while nobody listens.
  package init() { self.init(query: nil) }

  /// Stays in the network namespace of the calling thread, from wherever it is asked; keeps a descriptor for it.
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

/// Tells of changes until it is stopped or released.
private final class SystemNetworkWatch: NetworkWatch {
  // Unchecked: Dispatch allows to cancel a source from any thread.
  private nonisolated(unsafe) let source: any DispatchSourceRead

  init(_ socket: NetlinkSocket, on queue: DispatchQueue, _ changed: @escaping @Sendable () -> Void) {
    source = DispatchSource.makeReadSource(fileDescriptor: socket.descriptor, queue: queue)
    source.setEventHandler {
      socket.drain()
      changed()
    }
    // The socket must stay open as long as Dispatch looks at it.
    source.setCancelHandler { withExtendedLifetime(socket) {} }
    source.resume()
  }

  deinit { source.cancel() }

  func stop() { source.cancel() }
}
