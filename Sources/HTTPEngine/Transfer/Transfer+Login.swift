import CCurl
import HTTPWire

// NTLM and Negotiate authenticate a connection in several steps, which libcurl goes by itself: one transfer here is
// several requests there. The connection is made for it, and closed behind it: nobody else's request goes out on a
// connection that speaks in a name. A proxy may ask in steps, too.
extension Transfer {
  func applyLogin(_ login: ConnectionLogin?) -> TransportFailure? {
    if let credential = login?.credential,
      credential.user.utf8.contains(0) || credential.password.utf8.contains(0)
    {
      return TransportFailure(
        .userAuthenticationRequired, "The user name or the password contains a NUL, which cannot be sent.")
    }
    if login != nil { setFresh(true) }
    guard login != applied.login else { return nil }
    applied.login = login
    let mask =
      switch login?.scheme {
      case .ntlm: ccurl_auth_ntlm
      case .negotiate: ccurl_auth_negotiate
      case .basic, .digest, nil: ccurl_auth_basic
      }
    let codes = [
      easy.set(CURLOPT_HTTPAUTH, Int(bitPattern: mask)),
      easy.set(CURLOPT_USERNAME, login?.credential.user),
      easy.set(CURLOPT_PASSWORD, login?.credential.password),
    ]
    guard let code = codes.first(where: { $0 != CURLE_OK }) else { return nil }
    // Another request will have this handle.
    for option in [CURLOPT_USERNAME, CURLOPT_PASSWORD] { easy.set(option, nil) }
    applied.login = nil
    return CurlFailure.unsupported("This kind of authentication", code)
  }

  /// Whether a head may be one of a step in between, which nobody is told of.
  func holds(_ head: ResponseHead) -> Bool {
    guard
      (head.status == 401 && request?.login != nil) || (head.status == 407 && negotiatesWithProxy)
        || (head.status == 417 && request?.fields.contains { FieldName.equal($0.name, "Expect") } == true)
    else { return false }
    heldHead = head
    attempts.awaitsNextLeg = true
    heldCount += 1
    return true
  }

  /// A server that never comes to an end of the steps would have libcurl go on with them for ever: then the last
  /// refusal is the response.
  var heldTooOften: Bool { heldCount > 6 }

  /// Another response begins behind a head that was held: the next step.
  func beginAnew(at line: UnsafeRawBufferPointer) {
    guard line.starts(with: "HTTP/".utf8) else { return }
    heldHead = nil
    restartAssembly()
  }

  /// The head that was held is that of the response. Returns false when it cannot be taken.
  func releaseHead() -> Bool {
    guard let head = heldHead else { return true }
    heldHead = nil
    return headReceived(head)
  }
}
