import Foundation

/// apache2 with mod_auth_digest and mod_auth_basic.
final class ApacheServer: Sendable {
  static let program = "/usr/sbin/apache2"
  private static let modules = "/usr/lib/apache2/modules"

  private static let starting = Task { try await ApacheServer() }

  /// The server of all tests, started by the first use.
  static var shared: ApacheServer {
    get async throws { try await starting.value }
  }

  let port: UInt16
  private let process: ServerProcess

  private init() async throws {
    let folder = try ServerProcess.makeFolder("apache")
    port = try Loopback.freePorts(1)[0]
    let file = folder.appendingPathComponent("apache.conf")
    try Self.write(to: folder, port: port, file)
    process = try ServerProcess([Self.program, "-f", file.path, "-DFOREGROUND"], in: folder)
    try await process.untilAnswering([port])
  }

  func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }

  private static func write(to folder: URL, port: UInt16, _ file: URL) throws {
    let root = folder.appendingPathComponent("root")
    for name in ["digest/deep", "short", "brief", "basic"] {
      try FileManager.default.createDirectory(
        at: root.appendingPathComponent(name), withIntermediateDirectories: true)
      try Data("in \(name)".utf8).write(to: root.appendingPathComponent("\(name)/page"))
    }
    // The output of htdigest and htpasswd for anna with the password "sésame".
    let users = folder.appendingPathComponent("digest.users")
    try Data("anna:digest:b659a2156330f4d8c7bc7f36cc9bd2d6\n".utf8).write(to: users)
    try Data("anna:$apr1$abcd1234$VCGEtGtjQINnG.8XescfR/\n".utf8)
      .write(to: folder.appendingPathComponent("basic.users"))
    let names = [
      "mpm_event", "authn_core", "authn_file", "authz_core", "authz_user", "auth_basic", "auth_digest", "dir",
    ]
    func digest(_ path: String, _ more: String) -> String {
      """
      <Location \(path)>
        AuthType Digest
        AuthName "digest"
        AuthDigestDomain \(path)/
        AuthUserFile \(users.path)
        Require valid-user
        \(more)
      </Location>
      """
    }
    let text = """
      \(basis(in: folder, port: port, modules: names))
      \(digest("/digest", ""))
      \(digest("/short", "AuthDigestNonceLifetime 20"))
      \(digest("/brief", "AuthDigestNonceLifetime 8"))
      <Location /basic>
        AuthType Basic
        AuthName "basic"
        AuthUserFile \(folder.path)/basic.users
        Require valid-user
      </Location>

      """
    try Data(text.utf8).write(to: file)
  }

  /// Returns the common part of all configurations. The server writes to `folder` and serves `root` in it.
  static func basis(in folder: URL, port: UInt16, modules names: [String]) -> String {
    """
    ServerRoot \(folder.path)
    ServerName localhost
    PidFile \(folder.path)/apache.pid
    DefaultRuntimeDir \(folder.path)
    Listen 127.0.0.1:\(port)
    ErrorLog \(folder.path)/error.log
    \(names.map { "LoadModule \($0)_module \(modules)/mod_\($0).so" }.joined(separator: "\n"))
    \(geteuid() == 0 ? "User www-data\nGroup www-data" : "")
    DocumentRoot \(folder.path)/root
    <Directory \(folder.path)/root>
      Require all granted
    </Directory>
    """
  }
}
