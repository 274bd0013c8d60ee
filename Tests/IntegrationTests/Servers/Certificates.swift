import Foundation

/// A certificate authority, and a certificate of 127.0.0.1 and localhost that it signed.
struct Certificates {
  /// The certificate of the authority, PEM.
  let authority: String
  /// The certificate of the server, PEM.
  let certificate: String
  /// The key of the server, PEM.
  let key: String
  /// Certificate and key of a client, Ada, in one file (PKCS#12, passphrase "tea").
  let client: String

  /// Makes the certificates with `openssl` in `folder`.
  init(in folder: URL) async throws {
    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }
    authority = path("ca.pem")
    certificate = path("server.pem")
    key = path("server.key")
    client = path("ada.p12")
    let names = "subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth\n"
    try Data(names.utf8).write(to: URL(fileURLWithPath: path("names.txt")))
    let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    try await Self.openssl(
      ["req", "-x509", "-days", "2", "-subj", "/CN=Authority of the tests", "-keyout", path("ca.key")]
        + ["-out", authority] + curve)
    try await Self.openssl(
      ["req", "-subj", "/CN=localhost", "-keyout", key, "-out", path("server.csr")] + curve)
    try await Self.openssl(
      ["x509", "-req", "-days", "2", "-in", path("server.csr"), "-extfile", path("names.txt")]
        + ["-CA", authority, "-CAkey", path("ca.key"), "-set_serial", "1", "-out", certificate])
    try await Self.openssl(
      ["req", "-subj", "/CN=Ada", "-keyout", path("ada.key"), "-out", path("ada.csr")] + curve)
    try await Self.openssl(
      ["x509", "-req", "-days", "2", "-in", path("ada.csr"), "-CA", authority, "-CAkey", path("ca.key")]
        + ["-set_serial", "2", "-out", path("ada.pem")])
    try await Self.openssl(
      ["pkcs12", "-export", "-in", path("ada.pem"), "-inkey", path("ada.key"), "-passout", "pass:tea"]
        + ["-out", client])
  }

  private static func openssl(_ arguments: [String]) async throws {
    let run = try await CommandRun(["openssl"] + arguments)
    guard run.status == 0 else { throw ServerFailure(description: "openssl failed: \(run.errors)") }
  }
}
