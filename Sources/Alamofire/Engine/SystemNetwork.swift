import Foundation
import HTTPSystem
package import HTTPWire

/// The network of this machine according to the kernel.
package struct SystemNetwork: NetworkSource {
  private let query: NetworkQuery?

  /// Makes a source that asks by a query.
  ///
  /// - Parameter query: `nil` asks by a socket of its own each time; nothing is open in between.
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
