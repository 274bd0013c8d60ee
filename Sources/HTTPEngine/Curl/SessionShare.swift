import CCurl

/// The TLS sessions of one loop. libcurl before 8.12 keeps them with each easy handle, so a new handle would never resume
/// one. Belongs to one loop thread, which is why it has no locks.
struct SessionShare: ~Copyable {
  private let raw: OpaquePointer?

  /// Makes a share where libcurl needs one; without one, handshakes are complete ones.
  init() {
    guard CurlLibrary.shared.keepsSessionsWithHandles, let raw = ccurl_make_session_share() else {
      self.raw = nil
      return
    }
    self.raw = OpaquePointer(raw)
  }

  func join(_ handle: borrowing EasyHandle) {
    guard let raw else { return }
    ccurl_set_pointer(handle.raw, CURLOPT_SHARE, UnsafeRawPointer(raw))
  }

  /// Frees the sessions; every handle must have left.
  deinit {
    if let raw { curl_share_cleanup(UnsafeMutableRawPointer(raw)) }
  }
}
