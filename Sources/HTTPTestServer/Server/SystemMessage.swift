import Glibc

/// The C library's description of an error number.
enum SystemMessage {
  static func text(of code: Int32) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      guard let base = buffer.baseAddress, strerror_r(code, base, buffer.count) == 0 else {
        return "unknown error"
      }
      return String(cString: base)
    }
  }
}
