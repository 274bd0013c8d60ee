import Glibc

/// The file with the secrets of TLS connections, for the analysis of recorded traffic.
enum TLSKeyLog {
  /// The file that the environment of the process names for every program with TLS, as it was when it was first asked
  /// for: reading the environment while another thread changes it is not safe.
  private static let usual: String? = getenv("SSLKEYLOGFILE").flatMap { name in
    let file = String(cString: name)
    return file.isEmpty ? nil : file
  }

  /// Appends one line to a file and to the one that the environment names.
  static func append(_ line: UnsafePointer<CChar>, to file: String?) {
    if let file { write(line, to: file) }
    if let usual, usual != file { write(line, to: usual) }
  }

  /// Appends one line to the file.
  private static func write(_ line: UnsafePointer<CChar>, to file: String) {
    let descriptor = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return }
    // One write, so that lines of several processes do not mix.
    let text = String(cString: line) + "\n"
    _ = text.utf8CString.withUnsafeBufferPointer { Glibc.write(descriptor, $0.baseAddress, $0.count - 1) }
    close(descriptor)
  }
}
