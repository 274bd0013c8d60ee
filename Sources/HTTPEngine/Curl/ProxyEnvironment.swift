import Glibc

/// Whether the variables that name a proxy are set, as the process found them when it first asked.
struct ProxyEnvironment: Sendable {
  static let shared = ProxyEnvironment()

  let isSet: Bool

  private init() {
    // `HTTP_PROXY` is no such variable: in a CGI program a client could set it.
    let names = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    isSet = names.contains { name in getenv(name).map { $0.pointee != 0 } ?? false }
  }
}
