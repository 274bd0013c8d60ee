// Exported, so that the files of the tests see the servers without another import.
@_exported import ChildProcesses
import Foundation
import Testing

/// The installed servers. A test that needs a missing one is skipped, or fails if `ALAMOFIRE_REQUIRE_SERVERS` is set.
enum ServerRequirement {
  static let nginx = isMet([NginxServer.program, "/usr/bin/openssl"])
  static let apache = isMet([ApacheServer.program])
  static let proxies = isMet(
    ProxyProcess.Program.allCases.map(\.rawValue) + [NginxServer.program, "/usr/bin/openssl"])
  static let kerberos = isMet([ApacheServer.program] + KerberosRealm.programs)
  static let httpbin = HTTPBinServer.isInstalled
  static let multipartReaders = isMet(
    [PythonEnvironment.program], PythonEnvironment.has("python-multipart"))
  static let archiveReader = isMet([PythonEnvironment.program], PythonEnvironment.has("haralyzer"))
  static let webSocketPeer = isMet(
    WebSocketPeer.Package.allCases.map(\.program) + ["/usr/bin/openssl"], WebSocketPeer.areInstalled)

  static let tusPeer = isMet([], PythonEnvironment.has("tuspyserver"))

  /// Not among the servers that `Scripts/install` installs, so it is never required.
  static let node = FileManager.default.isExecutableFile(atPath: TrailerPeer.program)

  private static func isMet(_ programs: [String], _ condition: @autoclosure () -> Bool = true) -> Bool {
    if ProcessInfo.processInfo.environment["ALAMOFIRE_REQUIRE_SERVERS"] == "1" { return true }
    return programs.allSatisfy(FileManager.default.isExecutableFile) && condition()
  }
}

extension Trait where Self == ConditionTrait {
  static var needsNode: Self {
    .enabled(if: ServerRequirement.node, "node is missing; the package is nodejs")
  }
  static var needsNginx: Self {
    .enabled(if: ServerRequirement.nginx, "nginx or openssl is missing; run Scripts/install test")
  }
  static var needsApache: Self {
    .enabled(if: ServerRequirement.apache, "apache2 is missing; run Scripts/install test")
  }
  static var needsProxies: Self {
    .enabled(
      if: ServerRequirement.proxies, "squid, tinyproxy or microsocks is missing; run Scripts/install test")
  }
  static var needsKerberos: Self {
    .enabled(
      if: ServerRequirement.kerberos, "Kerberos or mod_auth_gssapi is missing; run Scripts/install test")
  }
  static var needsHTTPBin: Self {
    .enabled(if: ServerRequirement.httpbin, "httpbin is missing; run Scripts/install httpbin")
  }
  static var needsMultipartReaders: Self {
    .enabled(
      if: ServerRequirement.multipartReaders,
      "Werkzeug or python-multipart is missing; run Scripts/install httpbin")
  }
  static var needsArchiveReader: Self {
    .enabled(if: ServerRequirement.archiveReader, "haralyzer is missing; run Scripts/install httpbin")
  }
  static var needsTusPeer: Self {
    .enabled(if: ServerRequirement.tusPeer, "tuspyserver is missing; run Scripts/install httpbin")
  }
  static var needsWebSocketPeer: Self {
    .enabled(
      if: ServerRequirement.webSocketPeer,
      "websockets or wsproto of Python is missing; run Scripts/install httpbin")
  }
}
