import FoundationEssentials
import HTTPWire

/// What the variables of the process said about proxies when it first asked: others may set variables meanwhile, and
/// looking for them anew would cost each request.
struct ProxyEnvironment: Sendable {
  static let shared = ProxyEnvironment()

  let table: ProxyTable
  let isDirect: Bool

  private init() {
    table = ProxyTable(environment: ProcessInfo.processInfo.environment)
    isDirect = table.isDirect
  }
}
