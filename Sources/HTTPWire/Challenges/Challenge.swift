/// One challenge of a `WWW-Authenticate` or `Proxy-Authenticate` field (RFC 9110 §11.6.1): a scheme and its
/// parameters.
package struct Challenge: Sendable, Equatable {
  package struct Parameter: Sendable, Equatable {
    /// Lower case.
    package let name: String
    /// Without quotation marks and escapes.
    package let value: String

    package init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  /// Lower case: `basic`, `digest`.
  package let scheme: String
  /// The token68 after the scheme, instead of parameters (RFC 9110 §11.2).
  package let token: String?
  package let parameters: [Parameter]

  package init(scheme: String, token: String? = nil, parameters: [Parameter] = []) {
    self.scheme = scheme.lowercased()
    self.token = token
    self.parameters = parameters
  }

  /// The value of a parameter, its name in lower case. A name must not occur twice; of a server that repeats one,
  /// the first counts.
  package subscript(name: String) -> String? {
    parameters.first { $0.name == name }?.value
  }

  /// The protection space (RFC 9110 §11.5).
  package var realm: String? { self["realm"] }

  /// Returns the challenges of several fields in order. A field may contain several challenges; commas separate
  /// challenges as well as their parameters. Invalid ones are ignored.
  package static func all(in fields: [String]) -> [Challenge] {
    var challenges: [Challenge] = []
    for field in fields {
      var scanner = ChallengeScanner(field)
      while challenges.count < mostChallenges, let challenge = scanner.nextChallenge() {
        challenges.append(challenge)
      }
    }
    return challenges
  }

  /// More than any server has to offer.
  static let mostChallenges = 32
}

extension FieldBlock {
  /// Returns the challenges of the field of this name.
  package func challenges(of name: StaticString = "WWW-Authenticate") -> [Challenge] {
    Challenge.all(in: values(of: name))
  }
}

/// Reads challenges and parameters (RFC 9110 §11.2, §11.6.1) from left to right, each byte a bounded number of times.
/// Text that does not follow the grammar is skipped.
struct ChallengeScanner {
  private let bytes: [UInt8]
  private var position = 0

  init(_ text: String) {
    bytes = Array(text.utf8)
  }

  /// Reads the next scheme with all that belongs to it; `nil` at the end.
  mutating func nextChallenge() -> Challenge? {
    while true {
      skipSeparators()
      guard position < bytes.count else { return nil }
      // A parameter or bytes without a scheme before them.
      guard let name = word() else {
        skipOne()
        continue
      }
      if value() != nil { continue }
      return challenge(name)
    }
  }

  /// Reads parameters alone, as in `Authentication-Info` (RFC 7615 §3).
  mutating func parameters() -> [Challenge.Parameter] {
    var parameters: [Challenge.Parameter] = []
    while parameters.count < Self.mostParameters {
      skipSeparators()
      guard position < bytes.count else { break }
      guard let name = word() else {
        skipOne()
        continue
      }
      if let value = value() { parameters.append(.init(name: name.lowercased(), value: value)) }
    }
    return parameters
  }

  /// More than any scheme has.
  private static let mostParameters = 64

  private mutating func challenge(_ scheme: String) -> Challenge {
    let token = token68()
    var parameters: [Challenge.Parameter] = []
    while true {
      let start = position
      skipSeparators()
      guard let name = word() else {
        guard position < bytes.count else { break }
        skipOne()
        continue
      }
      guard let value = value() else {
        // The next scheme.
        position = start
        break
      }
      if parameters.count < Self.mostParameters {
        parameters.append(.init(name: name.lowercased(), value: value))
      }
    }
    return Challenge(scheme: scheme, token: token, parameters: parameters)
  }

  /// Reads the token68 after a scheme, which is neither a parameter nor another scheme: base64 characters up to a
  /// comma.
  private mutating func token68() -> String? {
    var start = position
    while start < bytes.count, Self.isSpace(bytes[start]) { start += 1 }
    guard start > position else { return nil }
    var end = start
    while end < bytes.count, Self.isToken68(bytes[end]) { end += 1 }
    guard end > start else { return nil }
    while end < bytes.count, bytes[end] == UInt8(ascii: "=") { end += 1 }
    var rest = end
    while rest < bytes.count, Self.isSpace(bytes[rest]) { rest += 1 }
    guard rest == bytes.count || bytes[rest] == UInt8(ascii: ",") else { return nil }
    position = rest
    return String(decoding: bytes[start..<end], as: UTF8.self)
  }

  /// Reads a token (RFC 9110 §5.6.2); `nil` when there is none here.
  private mutating func word() -> String? {
    let start = position
    while position < bytes.count, HeaderFieldRules.isTokenByte(bytes[position]) { position += 1 }
    return position > start ? String(decoding: bytes[start..<position], as: UTF8.self) : nil
  }

  /// Reads the value after an equals sign, which may have spaces around it; `nil` without such a sign.
  private mutating func value() -> String? {
    var next = position
    while next < bytes.count, Self.isSpace(bytes[next]) { next += 1 }
    guard next < bytes.count, bytes[next] == UInt8(ascii: "=") else { return nil }
    next += 1
    while next < bytes.count, Self.isSpace(bytes[next]) { next += 1 }
    position = next
    if next < bytes.count, bytes[next] == UInt8(ascii: "\"") { return quoted() }
    // Servers omit quotation marks, so the value ends at a comma or a space.
    while position < bytes.count, bytes[position] != UInt8(ascii: ","), !Self.isSpace(bytes[position]) {
      position += 1
    }
    return String(decoding: bytes[next..<position], as: UTF8.self)
  }

  /// Reads a quoted string (RFC 9110 §5.6.4); one without an end goes to the end of the field.
  private mutating func quoted() -> String {
    var content: [UInt8] = []
    position += 1
    while position < bytes.count {
      var byte = bytes[position]
      position += 1
      if byte == UInt8(ascii: "\"") { break }
      if byte == UInt8(ascii: "\\"), position < bytes.count {
        byte = bytes[position]
        position += 1
      }
      content.append(byte)
    }
    return String(decoding: content, as: UTF8.self)
  }

  /// Skips an invalid byte, or a whole quoted string.
  private mutating func skipOne() {
    guard bytes[position] == UInt8(ascii: "\"") else {
      position += 1
      return
    }
    _ = quoted()
  }

  private mutating func skipSeparators() {
    while position < bytes.count, Self.isSpace(bytes[position]) || bytes[position] == UInt8(ascii: ",") {
      position += 1
    }
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  private static func isToken68(_ byte: UInt8) -> Bool {
    isAlphanumeric(byte) || "-._~+/".utf8.contains(byte)
  }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: false
    }
  }
}

/// The schemes that challenges can be answered with.
package enum AuthenticationScheme: Sendable, Hashable, CaseIterable {
  /// RFC 7617.
  case basic
  /// RFC 7616.
  case digest
  /// Microsoft's, in which a connection is authenticated and not a request.
  case ntlm
  /// RFC 4559; likewise.
  case negotiate

  /// Whether it is the connection that is authenticated, by the transport.
  package var isOfConnection: Bool {
    switch self {
    case .basic, .digest: false
    case .ntlm, .negotiate: true
    }
  }

  package init?(name: String) {
    switch name.lowercased() {
    case "basic": self = .basic
    case "digest": self = .digest
    case "ntlm": self = .ntlm
    case "negotiate": self = .negotiate
    default: return nil
    }
  }

  /// Reads the scheme of the credentials in a field (RFC 9110 §11.4).
  package init?(ofCredentials value: String) {
    let text = value.utf8.drop { $0 == 0x20 || $0 == 0x09 }
    self.init(name: String(Substring(text.prefix { $0 != 0x20 && $0 != 0x09 })))
  }
}

/// A challenge that can be answered, with the right credential.
package struct AuthenticationOffer: Sendable, Equatable {
  package let scheme: AuthenticationScheme
  package let realm: String?
  /// The challenge of the scheme Digest.
  package let digest: DigestChallenge?

  package init?(_ challenge: Challenge) {
    guard let scheme = AuthenticationScheme(name: challenge.scheme) else { return nil }
    self.scheme = scheme
    realm = challenge.realm
    switch scheme {
    case .digest:
      guard let digest = DigestChallenge(challenge) else { return nil }
      self.digest = digest
    case .basic, .ntlm, .negotiate: digest = nil
    }
  }

  /// Returns the challenges that can be answered, the strongest first; equal ones in the order of the server.
  ///
  /// - Parameters:
  ///   - challenges:        The challenges of the server.
  ///   - connectionSchemes: The connection-based schemes that the transport supports.
  ///   - knows:             Whether a hash function is available.
  package static func ranked(
    _ challenges: [Challenge], connectionSchemes: Set<AuthenticationScheme> = [],
    knows: (DigestChallenge.Algorithm) -> Bool = { _ in true }
  ) -> [AuthenticationOffer] {
    let offers = challenges.compactMap { AuthenticationOffer($0) }.filter { offer in
      if let digest = offer.digest { return knows(digest.algorithm) }
      return !offer.scheme.isOfConnection || connectionSchemes.contains(offer.scheme)
    }
    // Swift's sort keeps the order of equals, but does not promise it.
    return offers.enumerated().sorted { left, right in
      let (first, second) = (left.element.strength, right.element.strength)
      return first == second ? left.offset < right.offset : first > second
    }
    .map(\.element)
  }

  /// A password is meant for Digest more than for a ticket; in the clear it goes last.
  private var strength: Int {
    switch scheme {
    case .basic: 0
    case .ntlm: 1
    case .negotiate: 2
    case .digest: 3 + (digest?.algorithm.strength ?? 0)
    }
  }
}

/// The credential with which the transport authenticates the connection of one request, by NTLM or Negotiate. NTLM
/// and Negotiate authenticate a connection and so every request on it.
package struct ConnectionLogin: Sendable, Hashable {
  package let scheme: AuthenticationScheme
  package let credential: PasswordCredential

  package init(scheme: AuthenticationScheme, credential: PasswordCredential) {
    self.scheme = scheme
    self.credential = credential
  }
}
