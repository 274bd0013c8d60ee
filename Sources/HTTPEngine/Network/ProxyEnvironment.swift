import FoundationEssentials
import HTTPWire

/// The proxies in the environment of the process at the first request. The environment is read once, because reading it
/// for each request would cost time, and other threads may change it.
struct ProxyEnvironment: Sendable {
  static let shared = ProxyEnvironment()

  let table: ProxyTable
  let isDirect: Bool

  private init() {
    table = ProxyTable(environment: ProcessInfo.processInfo.environment)
    isDirect = table.isDirect
  }

  /// Returns the proxy of a table for requests to an origin. Without a table, or if it refers to the environment, the
  /// proxy is that of the environment.
  func choice(for origin: Origin, in table: ProxyTable?) -> ProxyTable.Choice {
    let choice = table?.choice(for: origin) ?? .environment
    return choice == .environment ? self.table.choice(for: origin) : choice
  }
}
