import Glibc

/// The file with the secrets of TLS connections, for the analysis of recorded traffic.
enum TLSKeyLog {
  /// Appends one line to the file.
  static func append(_ line: UnsafePointer<CChar>, to file: String) {
    let descriptor = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return }
    // One write, so that lines of several processes do not mix.
    let text = String(cString: line) + "\n"
    _ = text.utf8CString.withUnsafeBufferPointer { write(descriptor, $0.baseAddress, $0.count - 1) }
    close(descriptor)
  }
}
