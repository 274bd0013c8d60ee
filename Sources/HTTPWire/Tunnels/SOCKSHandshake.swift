/// The client's side of SOCKS4, SOCKS4a and SOCKS5 (RFC 1928, RFC 1929) until the connection to the target is
/// established. Pure: its owner sends and receives the bytes.
///
/// Bytes after the last reply are not consumed, because they come from the target.
package struct SOCKSHandshake: Sendable {
  /// The host that the proxy connects to.
  package enum Target: Sendable, Equatable {
    /// A name that the proxy looks up; for SOCKS4a and SOCKS5 only.
    case name(String)
    case address(IPAddress)
  }

  package enum SOCKSStep: Sendable, Equatable {
    case send([UInt8])
    case needsMore
    /// The proxy is connected to the target.
    case done
    case fail(Failure)
  }

  package enum Failure: Error, Sendable, Equatable {
    /// The server does not speak this version of SOCKS.
    case notSOCKS
    /// The proxy wants a user and a password, or does not accept the given ones.
    case loginRejected
    /// The user or the password has more than 255 bytes, or a NUL for SOCKS4.
    case invalidCredential
    /// The name of the target is empty, has more than 255 bytes, or has a NUL.
    case invalidName
    /// SOCKS4 has IPv4 addresses only.
    case addressFamily
    /// The proxy could not connect to the target, and has replied with this code.
    case refused(code: UInt8)

    /// Whether the proxy may be able to connect to another address of the same host (RFC 1928 §6). SOCKS4 has one code
    /// for all reasons.
    package var mayDependOnAddress: Bool {
      guard case .refused(let code) = self else { return false }
      return [3, 4, 5, 6, 8, 91].contains(code)
    }

    /// The meaning of the reply of a SOCKS5 proxy (RFC 1928 §6); `nil` without one.
    package var reason: String? {
      guard case .refused(let code) = self else { return nil }
      return switch code {
      case 1: "general failure"
      case 2: "not allowed by its rules"
      case 3: "network unreachable"
      case 4: "host unreachable"
      case 5: "connection refused"
      case 6: "time to live expired"
      case 7: "command not supported"
      case 8: "type of address not supported"
      default: nil
      }
    }
  }

  private enum HandshakeState: Sendable, Equatable { case start, method, login, reply, over }

  private let version: UInt8
  private let acceptsNames: Bool
  private let user: [UInt8]?
  private let password: [UInt8]
  private let target: Target
  private let port: UInt16
  private var state = HandshakeState.start
  /// The bytes of the current message that have arrived.
  private var message: [UInt8] = []
  private var failure: Failure?

  /// Makes a handshake; `nil` for a proxy of HTTP.
  ///
  /// - Parameters:
  ///   - user: `nil` without credentials. SOCKS4 has no password.
  ///   - target: An address for `socks4` and `socks5`, a name or an address for the others.
  package init?(
    _ kind: ProxyServer.Kind, user: String?, password: String?, target: Target, port: UInt16
  ) {
    switch kind {
    case .http, .https: return nil
    case .socks4, .socks4a: version = 4
    case .socks5, .socks5h: version = 5
    }
    acceptsNames = kind != .socks4
    self.user = user == nil && password == nil ? nil : Array((user ?? "").utf8)
    self.password = Array((password ?? "").utf8)
    self.target = target
    self.port = port
  }

  /// Returns the first message.
  package mutating func begin() -> SOCKSStep {
    precondition(state == .start, "the handshake has begun")
    return version == 4 ? beginVersion4() : beginVersion5()
  }

  /// The number of bytes that can be read before bytes of the target may follow.
  package var bytesNeeded: Int {
    switch state {
    case .start, .over: 0
    case .method, .login: 2 - message.count
    case .reply: (version == 4 ? 8 : replyLength) - message.count
    }
  }

  /// Takes bytes of the proxy at `position`, which it moves past them, until a step other than
  /// ``SOCKSStep/needsMore`` follows from them.
  package mutating func read(_ bytes: UnsafeRawBufferPointer, from position: inout Int) -> SOCKSStep {
    if let failure { return .fail(failure) }
    while state != .over {
      guard position < bytes.count else { return .needsMore }
      message.append(bytes[position])
      position += 1
      let step = version == 4 ? readVersion4() : readVersion5()
      if step != .needsMore { return step }
    }
    return .done
  }

  private mutating func end(_ failure: Failure) -> SOCKSStep {
    self.failure = failure
    state = .over
    return .fail(failure)
  }

  private mutating func expect(_ next: HandshakeState, after bytes: [UInt8]) -> SOCKSStep {
    message = []
    state = next
    return .send(bytes)
  }

  private var portBytes: [UInt8] { [UInt8(port >> 8), UInt8(port & 0xFF)] }

  private static func isName(_ name: String) -> Bool {
    (1...255).contains(name.utf8.count) && !name.utf8.contains(0)
  }
}

extension SOCKSHandshake {
  private mutating func beginVersion4() -> SOCKSStep {
    let user = user ?? []
    guard user.count <= 255, !user.contains(0) else { return end(.invalidCredential) }
    let head: [UInt8] = [4, 1] + portBytes
    switch target {
    case .address(let address):
      guard address.family == .v4 else { return end(.addressFamily) }
      return expect(.reply, after: head + address.bytes + user + [0])
    case .name(let name):
      guard acceptsNames, Self.isName(name) else { return end(.invalidName) }
      // An address that cannot exist announces the name (SOCKS4a).
      return expect(.reply, after: head + [0, 0, 0, 1] + user + [0] + Array(name.utf8) + [0])
    }
  }

  private mutating func readVersion4() -> SOCKSStep {
    guard message[0] == 0 else { return end(.notSOCKS) }
    guard message.count >= 2 else { return .needsMore }
    switch message[1] {
    case 90: break
    case 91: return end(.refused(code: 91))
    // The proxy could not verify the user, or found another one.
    case 92, 93: return end(.loginRejected)
    default: return end(.notSOCKS)
    }
    guard message.count == 8 else { return .needsMore }
    state = .over
    return .done
  }

  private mutating func beginVersion5() -> SOCKSStep {
    guard (user?.count ?? 0) <= 255, password.count <= 255 else { return end(.invalidCredential) }
    if case .name(let name) = target, !Self.isName(name) { return end(.invalidName) }
    return expect(.method, after: user == nil ? [5, 1, 0] : [5, 2, 0, 2])
  }

  private mutating func readVersion5() -> SOCKSStep {
    switch state {
    case .start, .over: return .needsMore
    case .method:
      guard message[0] == 5 else { return end(.notSOCKS) }
      guard message.count == 2 else { return .needsMore }
      return methodChosen(message[1])
    case .login:
      // The version of the login (RFC 1929 §2). Some proxies send the version of SOCKS instead.
      guard message[0] == 1 || message[0] == 5 else { return end(.notSOCKS) }
      guard message.count == 2 else { return .needsMore }
      return message[1] == 0 ? request() : end(.loginRejected)
    case .reply:
      guard message[0] == 5 else { return end(.notSOCKS) }
      if message.count >= 2, message[1] != 0 { return end(.refused(code: message[1])) }
      if message.count >= 4, ![1, 3, 4].contains(message[3]) { return end(.notSOCKS) }
      guard message.count >= 5, message.count == replyLength else { return .needsMore }
      state = .over
      return .done
    }
  }

  private mutating func methodChosen(_ method: UInt8) -> SOCKSStep {
    switch (method, user) {
    case (0, _): return request()
    case (2, let user?):
      return expect(
        .login, after: [1, UInt8(user.count)] + user + [UInt8(password.count)] + password)
    default: return end(.loginRejected)
    }
  }

  private mutating func request() -> SOCKSStep {
    let address: [UInt8]
    switch target {
    case .address(let target): address = [target.family == .v4 ? 1 : 4] + target.bytes
    case .name(let name): address = [3, UInt8(name.utf8.count)] + Array(name.utf8)
    }
    return expect(.reply, after: [5, 1, 0] + address + portBytes)
  }

  /// The length of a reply, if it is known yet: it depends on the form of the address in it (RFC 1928 §6).
  private var replyLength: Int {
    guard message.count >= 4 else { return message.count < 2 ? 2 : 4 }
    switch message[3] {
    case 1: return 10
    case 4: return 22
    default: return message.count < 5 ? 5 : 7 + Int(message[4])
    }
  }
}
