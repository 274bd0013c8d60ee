import CCurl
package import HTTPWire

// NTLM and Negotiate authenticate a connection in several steps, which libcurl performs: one transfer is several
// requests. Each such transfer has a connection of its own, because no other request may use an authenticated
// connection. A proxy may also authenticate in steps.
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
    // Another request will use this handle.
    for option in [CURLOPT_USERNAME, CURLOPT_PASSWORD] { easy.set(option, nil) }
    applied.login = nil
    return CurlFailure.unsupported("This kind of authentication", code)
  }

  /// Holds a head back if it may be that of a step in between. Returns whether it does.
  func holds(_ head: ResponseHead) -> Bool {
    let isInBetween = LoginExchange.isIntermediate(
      head.status, hasLogin: request?.login != nil, negotiatesWithProxy: negotiatesWithProxy,
      expectsContinue: request?.fields.contains { FieldName.equal($0.name, "Expect") } == true)
    if isInBetween { login.hold(head) }
    return isInBetween
  }

  /// Delivers the head that was held, which is that of the response. Returns false when it cannot be taken.
  func releaseHead() -> Bool {
    guard let head = login.release() else { return true }
    return headReceived(head)
  }
}

/// The steps of one transfer in which libcurl answers a challenge, or repeats a request without `Expect`. Pure.
///
/// The head of each step is held back until it is known whether libcurl sends another request.
package struct LoginExchange: Sendable {
  /// A server that never ends the steps would keep libcurl busy forever. Then the last refusal is the response.
  private static let limit = 6

  package private(set) var heldHead: ResponseHead?
  private var heldCount = 0
  /// Whether libcurl may send the next request of the exchange.
  package private(set) var awaitsNextRequest = false

  package init() {}

  package var isHolding: Bool { heldHead != nil }
  package var isTooLong: Bool { heldCount > Self.limit }

  /// Whether libcurl may answer a response by itself.
  package static func isIntermediate(
    _ status: Int, hasLogin: Bool, negotiatesWithProxy: Bool, expectsContinue: @autoclosure () -> Bool
  ) -> Bool {
    switch status {
    case 401: hasLogin
    case 407: negotiatesWithProxy
    case 417: expectsContinue()
    default: false
    }
  }

  package mutating func hold(_ head: ResponseHead) {
    heldHead = head
    awaitsNextRequest = true
    heldCount += 1
  }

  /// Returns the head that was held, and forgets it.
  package mutating func release() -> ResponseHead? {
    defer { heldHead = nil }
    return heldHead
  }

  /// Notes that libcurl sends another request on the connection. Returns whether it is one of the exchange.
  package mutating func requestBegins() -> Bool {
    defer { awaitsNextRequest = false }
    return awaitsNextRequest
  }

  /// Notes that libcurl begins the exchange again.
  package mutating func restart() { awaitsNextRequest = false }

  /// Forgets the head that is held if `line` begins another response. Returns whether it does.
  package mutating func responseBegins(at line: UnsafeRawBufferPointer) -> Bool {
    guard isHolding, line.starts(with: "HTTP/".utf8) else { return false }
    heldHead = nil
    return true
  }
}
