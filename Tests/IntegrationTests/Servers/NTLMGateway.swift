import Foundation

/// squid as a reverse proxy and as a proxy, with NTLM authentication and a log.
final class NTLMGateway: Sendable {
  private let port: UInt16
  let proxyPort: UInt16
  private let process: ServerProcess

  /// Starts the gateway, and returns when it accepts connections.
  ///
  /// - Parameter server: The port of the server behind it, over plain HTTP.
  init(to server: UInt16) async throws {
    let folder = try ServerProcess.makeFolder("gateway")
    let ports = try Loopback.freePorts(2)
    (port, proxyPort) = (ports[0], ports[1])
    // squid drops its privileges before it writes here.
    try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder.path)
    let text = """
      http_port 127.0.0.1:\(ports[0]) accel defaultsite=localhost
      http_port 127.0.0.1:\(ports[1])
      cache_peer 127.0.0.1 parent \(server) 0 no-query originserver
      auth_param ntlm program /usr/lib/squid/ntlm_fake_auth
      auth_param ntlm children 2
      auth_param ntlm keep_alive on
      acl known proxy_auth REQUIRED
      http_access allow known
      http_access deny all
      logformat requests %>p %>Hs %un
      access_log stdio:\(folder.path)/access.log requests
      \(ProxyProcess.squidBasis(in: folder))

      """
    try Data(text.utf8).write(to: folder.appendingPathComponent("squid.conf"))
    process = try ServerProcess(
      [ProxyProcess.Program.squid.rawValue, "-N", "-d", "1", "-f", folder.path + "/squid.conf"], in: folder)
    try await process.untilAnswering(ports)
  }

  func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }

  /// One logged request.
  struct LoggedRequest: Equatable {
    /// The port of the client, which identifies its connection.
    let port: Int
    let status: Int
    /// The user; `nil` without authentication. The log has more than the name, because of squid's helper.
    let user: String?
  }

  /// Waits for `count` requests with authentication, and returns all logged requests in order.
  func loggedRequests(authenticated count: Int) async -> [LoggedRequest] {
    let file = process.folder.appendingPathComponent("access.log")
    var loggedRequests: [LoggedRequest] = []
    _ = await eventually(within: .seconds(60)) {
      let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
      loggedRequests = text.split(separator: "\n").compactMap { line in
        let parts = line.split(separator: " ")
        guard parts.count == 3, let port = Int(parts[0]), let status = Int(parts[1]), status > 0
        else { return nil }
        return LoggedRequest(port: port, status: status, user: parts[2] == "-" ? nil : String(parts[2]))
      }
      return loggedRequests.count { $0.user != nil && $0.status != 401 } >= count
    }
    return loggedRequests
  }
}
