import Foundation

/// Makes a certificate authority that is valid for an hour, and a certificate of 127.0.0.1 that it signed.
enum Certificates {
  /// Writes `ca.pem`, `server.pem` and `server.key`, and returns the path of `ca.pem`.
  static func make(in folder: URL) throws -> String {
    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }
    let extensions = """
      subjectAltName=IP:127.0.0.1,DNS:localhost
      basicConstraints=critical,CA:false
      extendedKeyUsage=serverAuth

      """
    try Data(extensions.utf8).write(to: URL(fileURLWithPath: path("server.ext")))
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    try openssl(
      ["req", "-x509", "-days", "2", "-subj", "/CN=Benchmark authority"] + key
        + ["-keyout", path("ca.key"), "-out", path("ca.pem")])
    try openssl(
      ["req", "-subj", "/CN=localhost"] + key
        + ["-keyout", path("server.key"), "-out", path("server.csr")])
    try openssl([
      "x509", "-req", "-days", "2", "-in", path("server.csr"), "-CA", path("ca.pem"),
      "-CAkey", path("ca.key"), "-CAcreateserial", "-extfile", path("server.ext"), "-out", path("server.pem"),
    ])
    return path("ca.pem")
  }

  private static func openssl(_ arguments: [String]) throws {
    _ = try Command(words: ["openssl"] + arguments).run()
  }
}
