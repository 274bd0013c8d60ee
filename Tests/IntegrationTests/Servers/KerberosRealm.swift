import Foundation

/// A Kerberos realm with one user, anna, and an Apache server that accepts its tickets.
final class KerberosRealm: Sendable {
  static let programs = [
    "/usr/sbin/krb5kdc", "/usr/sbin/kdb5_util", "/usr/sbin/kadmin.local", "/usr/bin/kinit",
  ]

  /// The environment of a process that has the ticket of anna.
  let environment: [String: String]
  private let port: UInt16
  private let center: ServerProcess
  private let server: ServerProcess

  init() async throws {
    let folder = try ServerProcess.makeFolder("realm")
    let ports = try Loopback.freePorts(2)
    port = ports[1]
    let paths = Paths(folder: folder.path)
    environment = paths.environment
    try paths.write(center: ports[0])
    try await Self.found(paths)
    center = try ServerProcess(
      [
        "/usr/bin/env", "KRB5_CONFIG=\(paths.client)", "KRB5_KDC_PROFILE=\(paths.center)",
        "/usr/sbin/krb5kdc", "-n",
      ],
      in: folder)
    try await center.untilAnswering([ports[0]])
    try await Self.run(["/usr/bin/kinit", "-k", "-t", paths.userKeys, "anna"], paths)

    let place = try ServerProcess.makeFolder("realm-apache")
    try Self.writeApache(to: place, port: ports[1], paths)
    server = try ServerProcess(
      [
        "/usr/bin/env", "KRB5_CONFIG=\(paths.client)", "KRB5RCACHEDIR=\(paths.replays)",
        ApacheServer.program, "-f", place.path + "/apache.conf", "-DFOREGROUND",
      ], in: place)
    try await server.untilAnswering([ports[1]])
  }

  /// Returns a URL with the name of the host, because a ticket is for a name and not for an address.
  func url(_ path: String) -> String { "http://localhost:\(port)\(path)" }

  // MARK: Files

  private struct Paths {
    let folder: String
    var client: String { folder + "/krb5.conf" }
    var center: String { folder + "/kdc.conf" }
    var userKeys: String { folder + "/anna.keytab" }
    var serverKeys: String { folder + "/server.keytab" }
    /// The replay cache of the server.
    var replays: String { folder + "/replays" }
    var environment: [String: String] {
      ["KRB5_CONFIG": client, "KRB5_KDC_PROFILE": center, "KRB5CCNAME": "FILE:\(folder)/tickets"]
    }

    func write(center port: UInt16) throws {
      let client = """
        [libdefaults]
         default_realm = TEST
         dns_lookup_kdc = false
         dns_lookup_realm = false
         dns_canonicalize_hostname = false
         rdns = false
        [realms]
         TEST = {
          kdc = 127.0.0.1:\(port)
         }
        [domain_realm]
         localhost = TEST

        """
      let center = """
        [kdcdefaults]
         kdc_listen = 127.0.0.1:\(port)
         kdc_tcp_listen = 127.0.0.1:\(port)
        [realms]
         TEST = {
          database_name = \(folder)/principal
          key_stash_file = \(folder)/stash
          acl_file = \(folder)/acl
         }

        """
      try Data(client.utf8).write(to: URL(fileURLWithPath: self.client))
      try Data(center.utf8).write(to: URL(fileURLWithPath: self.center))
    }
  }

  /// Makes the database, and the keys of the user and of the server.
  private static func found(_ paths: Paths) async throws {
    try await run(["/usr/sbin/kdb5_util", "create", "-s", "-P", "master", "-r", "TEST"], paths)
    for (name, keys) in [("anna", paths.userKeys), ("HTTP/localhost", paths.serverKeys)] {
      try await run(["/usr/sbin/kadmin.local", "-q", "addprinc -randkey \(name)"], paths)
      try await run(["/usr/sbin/kadmin.local", "-q", "ktadd -k \(keys) \(name)"], paths)
    }
    // Apache drops its privileges.
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: paths.folder)
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: paths.serverKeys)
    try FileManager.default.createDirectory(atPath: paths.replays, withIntermediateDirectories: false)
    try FileManager.default.setAttributes([.posixPermissions: 0o1777], ofItemAtPath: paths.replays)
  }

  private static func run(_ words: [String], _ paths: Paths) async throws {
    let run = try await CommandRun(words, environment: paths.environment)
    guard run.status == 0 else {
      throw ServerFailure(description: "\(words[0]) ended with \(run.status): \(run.errors)")
    }
  }

  private static func writeApache(to folder: URL, port: UInt16, _ paths: Paths) throws {
    let root = folder.appendingPathComponent("root")
    try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
    for name in ["in", "open"] { try Data(name.utf8).write(to: root.appendingPathComponent(name)) }
    let names = ["mpm_event", "authn_core", "authz_core", "authz_user", "auth_basic", "auth_gssapi", "dir"]
    let text = """
      \(ApacheServer.basis(in: folder, port: port, modules: names))
      <Location /in>
        AuthType GSSAPI
        AuthName "realm"
        GssapiCredStore keytab:\(paths.serverKeys)
        Require valid-user
      </Location>

      """
    try Data(text.utf8).write(to: folder.appendingPathComponent("apache.conf"))
  }
}
