import Alamofire
import Synchronization

/// A third-party proxy. It accepts all clients, or only anna with the password "s3same".
final class ProxyProcess: Sendable {
  enum Program: String, CaseIterable {
    case squid = "/usr/sbin/squid"
    case tinyproxy = "/usr/bin/tinyproxy"
    case microsocks = "/usr/bin/microsocks"
  }

  static let user = "anna"
  static let password = "s3same"

  let port: UInt16
  /// The port of squid over TLS.
  let securePort: UInt16
  /// The file with the authority of the certificate of `securePort`.
  let authority: String
  private let process: ServerProcess

  private struct Key: Hashable {
    let program: Program
    let asks: Bool
  }

  private static let started = Mutex<[Key: Task<ProxyProcess, any Error>]>([:])

  /// Returns the proxy of this kind that all tests share, started by the first use. The end of the process ends it.
  static func shared(_ program: Program, asks: Bool) async throws -> ProxyProcess {
    let task = started.withLock { started in
      let key = Key(program: program, asks: asks)
      let task = started[key] ?? Task { try await ProxyProcess(program, asks: asks) }
      started[key] = task
      return task
    }
    return try await task.value
  }

  private init(_ program: Program, asks: Bool) async throws {
    let folder = try ServerProcess.makeFolder("proxy")
    let certificates = try await Certificates(in: folder)
    authority = certificates.authority
    let ports = try Loopback.freePorts(2)
    (port, securePort) = (ports[0], ports[1])
    let command: [String]
    switch program {
    case .squid:
      try Self.writeSquid(folder, ports, certificates, asks: asks)
      command = [program.rawValue, "-N", "-d", "1", "-f", folder.path + "/proxy.conf"]
    case .tinyproxy:
      try Self.writeTinyproxy(folder, ports[0], asks: asks)
      command = [program.rawValue, "-d", "-c", folder.path + "/proxy.conf"]
    case .microsocks:
      command =
        [program.rawValue, "-i", "127.0.0.1", "-p", "\(ports[0])"]
        + (asks ? ["-u", Self.user, "-P", Self.password] : [])
    }
    process = try ServerProcess(command, in: folder)
    try await process.untilAnswering(program == .squid ? ports : [ports[0]])
  }

  private static func writeTinyproxy(_ folder: URL, _ port: UInt16, asks: Bool) throws {
    let text = """
      Port \(port)
      Listen 127.0.0.1
      Timeout 60
      Allow 127.0.0.1
      LogFile "\(folder.path)/proxy.log"
      PidFile "\(folder.path)/proxy.pid"
      \(asks ? "BasicAuth \(user) \(password)" : "")

      """
    try Data(text.utf8).write(to: folder.appendingPathComponent("proxy.conf"))
  }

  private static func writeSquid(_ folder: URL, _ ports: [UInt16], _ certificates: Certificates, asks: Bool)
    throws
  {
    // The output of htpasswd and htdigest for the user.
    try Data("anna:$apr1$abcd1234$xctCg3wogxDa1R5aa8Erb.\n".utf8).write(
      to: folder.appendingPathComponent("basic.users"))
    try Data("anna:proxy:388d144367ee745b96d43d760d189665\n".utf8).write(
      to: folder.appendingPathComponent("digest.users"))
    // squid drops its privileges before it writes here.
    try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder.path)
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: certificates.key)
    let programs = "/usr/lib/squid"
    let text = """
      http_port 127.0.0.1:\(ports[0])
      https_port 127.0.0.1:\(ports[1]) tls-cert=\(certificates.certificate) tls-key=\(certificates.key)
      auth_param digest program \(programs)/digest_file_auth -c \(folder.path)/digest.users
      auth_param digest realm proxy
      auth_param digest children 1
      auth_param basic program \(programs)/basic_ncsa_auth \(folder.path)/basic.users
      auth_param basic realm proxy
      auth_param basic children 1
      acl known proxy_auth REQUIRED
      http_access allow \(asks ? "known" : "all")
      http_access deny all
      access_log none
      \(squidBasis(in: folder))

      """
    try Data(text.utf8).write(to: folder.appendingPathComponent("proxy.conf"))
  }

  /// Returns the common part of all squid configurations. squid writes to `folder`, caches nothing, and ends at once.
  static func squidBasis(in folder: URL) -> String {
    """
    cache deny all
    cache_log \(folder.path)/cache.log
    pid_filename \(folder.path)/proxy.pid
    coredump_dir \(folder.path)
    pinger_enable off
    icp_port 0
    shutdown_lifetime 0 seconds
    visible_hostname localhost
    """
  }
}
