import Glibc

/// The place of the system's trusted certificates. libcurl is built with the place of one distribution, but a program
/// may run on another one. OpenSSL's environment variables take precedence over both.
package struct TrustLocation: Sendable, Hashable {
  let file: String?
  let folder: String?

  package init(file: String?, folder: String?) {
    self.file = file
    self.folder = folder
  }

  static let system = TrustLocation.find()

  /// Whether the place has a file with bytes, or a folder with files.
  var hasCertificates: Bool {
    var facts = stat()
    if let file, stat(file, &facts) == 0, facts.st_size > 0 { return true }
    guard let folder, let stream = opendir(folder) else { return false }
    defer { closedir(stream) }
    // Each folder has `.` and `..`.
    return readdir(stream) != nil && readdir(stream) != nil && readdir(stream) != nil
  }

  private static func find() -> TrustLocation {
    let file = getenv("SSL_CERT_FILE").map { String(cString: $0) }
    let folder = getenv("SSL_CERT_DIR").map { String(cString: $0) }
    if file != nil || folder != nil { return TrustLocation(file: file, folder: folder) }
    let files = [
      "/etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Arch
      "/etc/pki/tls/certs/ca-bundle.crt",  // Fedora, RHEL
      "/etc/ssl/ca-bundle.pem",  // openSUSE
      "/etc/ssl/cert.pem",  // Alpine
    ]
    return TrustLocation(file: files.first { access($0, R_OK) == 0 }, folder: nil)
  }
}
