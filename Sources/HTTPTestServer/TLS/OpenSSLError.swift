import COpenSSL

extension ServerError {
  /// Returns the errors in OpenSSL's queue of this thread as one error, and empties the queue.
  static func openSSL(_ attempt: String) -> ServerError {
    var messages: [String] = []
    var code = ERR_get_error()
    while code != 0 {
      messages.append(
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
          guard let base = buffer.baseAddress else { return "" }
          ERR_error_string_n(code, base, buffer.count)
          return String(cString: base)
        })
      code = ERR_get_error()
    }
    return .tls(messages.isEmpty ? attempt : "\(attempt): \(messages.joined(separator: "; "))")
  }
}
