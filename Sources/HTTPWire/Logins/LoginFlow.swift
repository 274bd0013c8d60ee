import FoundationEssentials

/// The rounds of a login by NTLM or Negotiate (RFC 4559), which authenticate one connection. The owner sends the
/// requests and makes the tokens: for NTLM with ``NTLMClient``, for Negotiate with GSSAPI. Pure.
///
/// A response is held by the owner until the flow has said whether it is delivered.
package struct LoginFlow: Sendable {
  /// The server that asks for the login.
  package enum Role: Sendable {
    /// 401 with `WWW-Authenticate`, answered with `Authorization`.
    case origin
    /// 407 with `Proxy-Authenticate`, answered with `Proxy-Authorization`.
    case proxy
  }

  package enum LoginStep: Sendable, Equatable {
    /// Send the request with this value of the field; `nil` sends none. Without its body, the request has
    /// `Content-Length: 0`.
    case send(field: String?, withBody: Bool)
    /// Make the token that answers these bytes, which are empty for the first one; then call ``answered(_:)``.
    case ask(challenge: [UInt8])
    /// The last response is the response to the request.
    case deliver
  }

  /// More rounds than any login has. A server that never ends them would keep the connection busy.
  package static let mostRounds = 6
  /// The longest token in base64 characters. Kerberos tickets have up to 64 KiB.
  static let longestToken = 131_072

  private enum State: Sendable {
    /// No request was sent.
    case idle
    /// The owner makes a token.
    case asked
    /// The response to a request is awaited.
    case sent(withBody: Bool, hasToken: Bool)
    case over
  }

  package let scheme: AuthenticationScheme
  private let role: Role
  private let hasBody: Bool
  private var state = State.idle
  private var rounds = 0
  /// The number of tokens since the login began, or began again.
  private var tokens = 0
  /// Whether the server has sent a token.
  private var hasMessage = false
  private var hasRestarted = false
  package var isOver: Bool { if case .over = state { true } else { false } }

  /// Whether the last token, or the one that is made, answers a challenge. Since a challenge belongs to its connection,
  /// the token is worthless on another one.
  package var needsConnection: Bool {
    switch state {
    case .asked: tokens > 0
    case .sent(_, let hasToken): hasToken && tokens > 1
    case .idle, .over: false
    }
  }

  /// Makes the flow of a request.
  ///
  /// - Parameters:
  ///   - scheme: ``AuthenticationScheme/ntlm`` or ``AuthenticationScheme/negotiate``.
  ///   - hasBody: Whether the request has a body, and a method for which NTLM sends its first message without it.
  package init(_ scheme: AuthenticationScheme, of role: Role, hasBody: Bool) {
    self.scheme = scheme
    self.role = role
    self.hasBody = hasBody
  }

  /// Begins the login.
  package mutating func begin() -> LoginStep {
    guard case .idle = state else { return end() }
    return ask([])
  }

  /// Takes the token that was asked for; `nil` if there is none. Without a first token the request is sent without
  /// credentials.
  package mutating func answered(_ token: [UInt8]?) -> LoginStep {
    guard case .asked = state else { return end() }
    guard let token else { return rounds == 0 ? send(nil, withBody: true) : end() }
    rounds += 1
    tokens += 1
    let name = scheme == .ntlm ? "NTLM" : "Negotiate"
    // The first message of NTLM is never accepted, so that a body would be sent in vain.
    return send("\(name) \(Data(token).base64EncodedString())", withBody: scheme != .ntlm || tokens > 1)
  }

  /// Takes the head of a response.
  ///
  /// - Parameter keepsConnection: Whether another request can be sent on the connection.
  package mutating func received(_ head: ResponseHead, keepsConnection: Bool) -> LoginStep {
    guard case .sent(let sentBody, let hasToken) = state else { return end() }
    guard head.status == (role == .origin ? 401 : 407) else {
      // The server wants no login, and has not seen the body yet: this is no answer to the request.
      if !sentBody, hasBody, head.status >= 200, ![401, 407].contains(head.status) {
        return send(nil, withBody: true)
      }
      return end()
    }
    guard hasToken, rounds < Self.mostRounds else { return end() }
    let fieldName: StaticString = role == .origin ? "WWW-Authenticate" : "Proxy-Authenticate"
    let challenges = head.block.challenges(of: fieldName).filter {
      AuthenticationScheme(name: $0.scheme) == scheme
    }
    guard !challenges.isEmpty else { return end() }
    guard let token = challenges.lazy.compactMap(\.token).first else {
      // After a message of the server, this refuses the credential.
      return hasMessage ? end() : restart()
    }
    hasMessage = true
    // The answer to a challenge of NTLM is its last message. One more would count as another wrong password.
    if scheme == .ntlm, tokens > 1 { return end() }
    // A challenge belongs to its connection.
    guard keepsConnection else { return restart() }
    guard token.utf8.count <= Self.longestToken, let bytes = Data(base64Encoded: token), !bytes.isEmpty else {
      return end()
    }
    return ask(Array(bytes))
  }

  /// Takes the end of a connection that ``needsConnection``. Begins again on another one, once.
  package mutating func connectionEnded() -> LoginStep { needsConnection ? restart() : end() }

  /// Begins again, once: some servers request that before they examine the first token, and others close the
  /// connection.
  private mutating func restart() -> LoginStep {
    guard !hasRestarted else { return end() }
    hasRestarted = true
    tokens = 0
    return ask([])
  }

  private mutating func ask(_ challenge: [UInt8]) -> LoginStep {
    state = .asked
    return .ask(challenge: challenge)
  }

  private mutating func send(_ field: String?, withBody: Bool) -> LoginStep {
    state = .sent(withBody: withBody, hasToken: field != nil)
    return .send(field: field, withBody: withBody)
  }

  private mutating func end() -> LoginStep {
    state = .over
    return .deliver
  }
}
