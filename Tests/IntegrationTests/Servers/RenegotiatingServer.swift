import Foundation

/// apache2 with mod_ssl, which asks for a client certificate when it knows the path. Over TLS 1.2 it renegotiates.
final class RenegotiatingServer: Sendable {
  private let port: UInt16
  private let process: ServerProcess
  private let certificates: Certificates

  init() async throws {
    let folder = try ServerProcess.makeFolder("renegotiation")
    certificates = try await Certificates(in: folder)
    port = try Loopback.freePorts(1)[0]
    let root = folder.appendingPathComponent("root")
    for name in ["open", "optional", "required"] {
      try FileManager.default.createDirectory(
        at: root.appendingPathComponent(name), withIntermediateDirectories: true)
      try Data(name.utf8).write(to: root.appendingPathComponent("\(name)/page"))
    }
    let text = """
      \(ApacheServer.basis(in: folder, port: port, modules: ["mpm_event", "authz_core", "dir", "headers", "ssl"]))
      SSLEngine on
      SSLProtocol TLSv1.2
      SSLCertificateFile \(certificates.certificate)
      SSLCertificateKeyFile \(certificates.key)
      SSLCACertificateFile \(certificates.authority)
      Header set X-Client "%{SSL_CLIENT_S_DN_CN}s"
      <Location /optional>
        SSLVerifyClient optional
      </Location>
      <Location /required>
        SSLVerifyClient require
      </Location>

      """
    let file = folder.appendingPathComponent("apache.conf")
    try Data(text.utf8).write(to: file)
    process = try ServerProcess([ApacheServer.program, "-f", file.path, "-DFOREGROUND"], in: folder)
    try await process.untilAnswering([port])
  }

  func url(_ path: String) -> String { "https://localhost:\(port)\(path)" }

  var authority: String { certificates.authority }

  /// The file with the identity of a client; see ``Certificates``.
  var client: URL { URL(fileURLWithPath: certificates.client) }
}
