/// The client of an NTLM login (MS-NLMP), which answers with NTLMv2 only, also where a challenge has no target
/// information. Pure: the caller reads the clock and draws the random bytes.
package struct NTLMClient: Sendable {
  /// The cause for which a challenge has no answer.
  package enum Failure: Error, Sendable, Equatable {
    /// The bytes of the server are not a challenge.
    case challenge
    /// The system refuses MD5, for example where FIPS holds.
    case hash
    /// The user name, the domain or the service name has more than 1,024 bytes.
    case credential
  }

  static let signature = Array("NTLMSSP\0".utf8)
  /// The version that the messages give (Windows 7, revision 15 of NTLM); servers do not decide by it.
  private static let version: [UInt8] = [6, 1, 0xB1, 0x1D, 0, 0, 0, 15]
  /// The workstation name that every client sends, so that servers do not learn the name of the machine.
  private static let workstation = "WORKSTATION"
  private static let longestText = 1_024

  private let user: String
  private let domain: String
  private let password: String
  private let service: String
  private let hashes: any HashFunctions

  /// Makes the client of a user.
  ///
  /// - Parameters:
  ///   - credential: Its user may be `DOMAIN\user`, `DOMAIN/user`, or `user@domain`, which is the whole name.
  ///   - service: The service principal name, such as `HTTP/www.example.com`, for servers that verify it.
  package init(credential: PasswordCredential, service: String = "", hashes: any HashFunctions) {
    (domain, user) = Self.parts(of: credential.user)
    password = credential.password
    self.service = service
    self.hashes = hashes
  }

  private static func parts(of name: String) -> (domain: String, user: String) {
    // A slash is in no user name of Windows.
    guard let mark = name.firstIndex(of: "\\") ?? name.firstIndex(of: "/") else { return ("", name) }
    return (String(name[..<mark]), String(name[name.index(after: mark)...]))
  }

  /// The first message (MS-NLMP 2.2.1.1), which is the same for all users.
  package static let negotiateMessage: [UInt8] = {
    var message = signature
    message.appendLittleEndian(UInt32(1))
    message.appendLittleEndian(NTLMFlags.offered.rawValue)
    // Neither the domain nor the workstation is given.
    message += [UInt8](repeating: 0, count: 16)
    return message + version
  }()

  /// Returns the answer to a challenge (MS-NLMP 2.2.1.3).
  ///
  /// - Parameters:
  ///   - challenge: The message of the server.
  ///   - clientChallenge: Random bits.
  ///   - time: The time in units of 100 ns since 1601, for servers that do not send theirs.
  package func answer(
    to challenge: [UInt8], clientChallenge: UInt64, time: UInt64
  ) throws(Failure) -> [UInt8] {
    guard let challenge = NTLMChallenge(challenge) else { throw .challenge }
    guard [user, domain, service].allSatisfy({ $0.utf8.count <= Self.longestText }) else { throw .credential }
    guard let keys = NTLMKeys(user: user, domain: domain, password: password, hashes: hashes) else {
      throw .hash
    }
    var (nonce, clock): ([UInt8], [UInt8]) = ([], [])
    nonce.appendLittleEndian(clientChallenge.byteSwapped)
    clock.appendLittleEndian(time)
    let serverTime = challenge.targetInfo?.timestamp
    let info =
      serverTime == nil
      ? challenge.targetInfo : challenge.targetInfo?.answered(targetName: NTLMKeys.utf16(service))
    guard
      let response = keys.response(
        to: challenge.serverChallenge, time: serverTime ?? clock, clientChallenge: nonce,
        targetInfo: info?.bytes ?? []),
      let short = keys.shortResponse(to: challenge.serverChallenge, clientChallenge: nonce)
    else { throw .hash }
    var message = AuthenticateMessage(flags: Self.flags(challenge.flags))
    message.texts = [domain, user, Self.workstation]
    guard serverTime != nil else { return message.bytes(short: short, response: response.bytes) }
    // A server that sends its time wants no short response (MS-NLMP 3.1.5.1.2).
    message.hasIntegrityCode = true
    var bytes = message.bytes(short: [UInt8](repeating: 0, count: 24), response: response.bytes)
    guard
      let code = keys.authenticationCode(
        of: Self.negotiateMessage + challenge.message + bytes, key: response.sessionKey)
    else { throw .hash }
    bytes.replaceSubrange(AuthenticateMessage.integrityCode, with: code)
    return bytes
  }

  /// Returns the time for ``answer(to:clientChallenge:time:)``.
  ///
  /// - Parameter seconds: Seconds since 1970, not before 1601.
  package static func time(unixSeconds seconds: Int64) -> UInt64 {
    let sum = seconds.addingReportingOverflow(11_644_473_600)
    if sum.overflow { return .max }
    guard sum.partialValue > 0 else { return 0 }
    let product = UInt64(sum.partialValue).multipliedReportingOverflow(by: 10_000_000)
    return product.overflow ? .max : product.partialValue
  }

  /// Returns the flags that hold: offered ones that the server accepts, the one for the target information, and one
  /// encoding.
  private static func flags(_ accepted: NTLMFlags) -> NTLMFlags {
    let flags = NTLMFlags.offered.union(.targetInfo).intersection(accepted)
    return flags.subtracting(flags.contains(.unicode) ? .oem : [])
  }

  /// The last message, before its bytes are laid out.
  private struct AuthenticateMessage {
    /// The position of the integrity code.
    static let integrityCode = 72..<88

    let flags: NTLMFlags
    /// Domain, user and workstation.
    var texts: [String] = []
    var hasIntegrityCode = false

    /// Lays the message out; the integrity code is zero.
    func bytes(short: [UInt8], response: [UInt8]) -> [UInt8] {
      let encoded = texts.map { flags.contains(.unicode) ? NTLMKeys.utf16($0) : Array($0.utf8) }
      var head = NTLMClient.signature
      head.appendLittleEndian(UInt32(3))
      var payload: [UInt8] = []
      let start = hasIntegrityCode ? Self.integrityCode.upperBound : 64
      // The last one is the encrypted session key, which exists only after a key exchange.
      for part in [short, response] + encoded + [[]] {
        for _ in 0..<2 { head.appendLittleEndian(UInt16(truncatingIfNeeded: part.count)) }
        head.appendLittleEndian(UInt32(truncatingIfNeeded: start + payload.count))
        payload += part
      }
      // Without the code, the message has no field for the version.
      let written = hasIntegrityCode ? flags : flags.subtracting(.version)
      head.appendLittleEndian(written.rawValue)
      if hasIntegrityCode {
        head += written.contains(.version) ? NTLMClient.version : [UInt8](repeating: 0, count: 8)
        head += [UInt8](repeating: 0, count: 16)
      }
      return head + payload
    }
  }
}

/// The flags that both sides of NTLM negotiate (MS-NLMP 2.2.2.5).
struct NTLMFlags: OptionSet, Sendable {
  let rawValue: UInt32

  static let unicode = NTLMFlags(rawValue: 0x0000_0001)
  /// Texts in the code page of the server.
  static let oem = NTLMFlags(rawValue: 0x0000_0002)
  static let requestTarget = NTLMFlags(rawValue: 0x0000_0004)
  static let ntlm = NTLMFlags(rawValue: 0x0000_0200)
  static let alwaysSign = NTLMFlags(rawValue: 0x0000_8000)
  static let extendedSessionSecurity = NTLMFlags(rawValue: 0x0008_0000)
  static let targetInfo = NTLMFlags(rawValue: 0x0080_0000)
  static let version = NTLMFlags(rawValue: 0x0200_0000)
  static let key128 = NTLMFlags(rawValue: 0x2000_0000)
  static let key56 = NTLMFlags(rawValue: 0x8000_0000)

  /// The flags of the first message. Servers may insist on keys of 128 bits and on extended session security, although
  /// HTTP neither signs nor encrypts with the keys. A key exchange is never offered, so the session key is the one
  /// that both sides derive.
  ///
  /// The target information is not asked for: servers that have it send it anyway, and others repeat the flag without
  /// having it.
  static let offered: NTLMFlags = [
    .unicode, .oem, .requestTarget, .ntlm, .alwaysSign, .extendedSessionSecurity, .version, .key128, .key56,
  ]
}

/// The challenge of an NTLM server: its CHALLENGE_MESSAGE (MS-NLMP 2.2.1.2). Offsets and lengths of the message are
/// checked, so bytes that are not such a message just give `nil`.
package struct NTLMChallenge: Sendable, Equatable {
  /// More than any server has to say. The answer repeats the target information, which has a 16-bit length.
  static let longestMessage = 16_384

  /// The whole message, which the integrity code of the answer covers.
  let message: [UInt8]
  let flags: NTLMFlags
  /// Eight bytes.
  let serverChallenge: [UInt8]
  /// `nil` for a server that sends none.
  package let targetInfo: NTLMTargetInfo?

  package init?(_ message: [UInt8]) {
    guard message.count >= 32, message.count <= Self.longestMessage,
      message.starts(with: NTLMClient.signature), Self.number(message, at: 8) == 2
    else { return nil }
    self.message = message
    flags = NTLMFlags(rawValue: Self.number(message, at: 20))
    serverChallenge = Array(message[24..<32])
    // The message of an old server ends here, with or without eight reserved bytes.
    guard flags.contains(.targetInfo), message.count >= 48 else {
      targetInfo = nil
      return
    }
    let length = Int(Self.number(message, at: 40) & 0xFFFF)
    let offset = Int(Self.number(message, at: 44))
    if length == 0 {
      targetInfo = nil
      return
    }
    guard offset >= 48, offset <= message.count, length <= message.count - offset,
      let info = NTLMTargetInfo(message[offset..<offset + length])
    else { return nil }
    targetInfo = info
  }

  /// Reads a number of four bytes, which the caller knows to be there.
  private static func number(_ bytes: [UInt8], at offset: Int) -> UInt32 {
    (0..<4).reduce(0) { $0 | UInt32(bytes[offset + $1]) << UInt32($1 * 8) }
  }
}

/// The target information of a challenge: a list of attributes, each with an identifier (MS-NLMP 2.2.2.1, AV_PAIR).
package struct NTLMTargetInfo: Sendable, Equatable {
  package struct Attribute: Sendable, Equatable {
    package var identifier: UInt16
    package var value: [UInt8]
  }

  /// Identifiers of attributes.
  enum Identifier {
    static let end: UInt16 = 0
    static let flags: UInt16 = 6
    static let timestamp: UInt16 = 7
    static let targetName: UInt16 = 9
    static let channelBindings: UInt16 = 10
  }

  /// The attributes in their order, without the one that marks the end.
  package private(set) var attributes: [Attribute] = []

  /// Reads a list; `nil` if an attribute is incomplete. If the last attribute ends with the bytes, no mark is needed.
  package init?(_ bytes: some Collection<UInt8>) {
    var rest = Array(bytes)[...]
    while !rest.isEmpty {
      guard let identifier = Self.number(&rest), let length = Self.number(&rest) else { return nil }
      if identifier == Identifier.end { return }
      guard rest.count >= Int(length) else { return nil }
      attributes.append(Attribute(identifier: identifier, value: Array(rest.prefix(Int(length)))))
      rest = rest.dropFirst(Int(length))
    }
  }

  private static func number(_ bytes: inout ArraySlice<UInt8>) -> UInt16? {
    guard bytes.count >= 2, let low = bytes.popFirst(), let high = bytes.popFirst() else { return nil }
    return UInt16(high) << 8 | UInt16(low)
  }

  /// The eight bytes of the server's clock. A server that sends them expects an integrity code.
  var timestamp: [UInt8]? {
    attributes.first { $0.identifier == Identifier.timestamp && $0.value.count == 8 }?.value
  }

  /// Returns a copy with the attributes of a client that sends an integrity code (MS-NLMP 3.1.5.1.2).
  ///
  /// - Parameter targetName: The service principal name, in UTF-16.
  func answered(targetName: [UInt8]) -> NTLMTargetInfo {
    var copy = self
    let flags = attributes.first { $0.identifier == Identifier.flags && $0.value.count == 4 }
    var value = flags?.value ?? [0, 0, 0, 0]
    value[0] |= 2
    copy.set(Identifier.flags, value)
    copy.set(Identifier.channelBindings, [UInt8](repeating: 0, count: 16))
    copy.set(Identifier.targetName, targetName)
    return copy
  }

  private mutating func set(_ identifier: UInt16, _ value: [UInt8]) {
    attributes.removeAll { $0.identifier == identifier }
    attributes.append(Attribute(identifier: identifier, value: value))
  }

  /// The list with the mark of its end.
  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    for attribute in attributes {
      bytes.appendLittleEndian(attribute.identifier)
      bytes.appendLittleEndian(UInt16(truncatingIfNeeded: attribute.value.count))
      bytes += attribute.value
    }
    return bytes + [0, 0, 0, 0]
  }
}

/// The keys and responses of NTLMv2 (MS-NLMP 3.3.2). Older versions, which are broken, are never used.
package struct NTLMKeys: Sendable {
  private let hashes: any HashFunctions
  /// The hash of user, domain and password (`NTOWFv2`).
  package let responseKey: [UInt8]

  /// Derives the key of a user; `nil` where the system refuses MD5.
  package init?(user: String, domain: String, password: String, hashes: any HashFunctions) {
    self.hashes = hashes
    let passwordHash = MD4.hash(Self.utf16(password))
    let name = Self.utf16(Self.uppercased(user) + domain)
    guard let key = Self.authenticationCode(of: name, key: passwordHash, hashes) else { return nil }
    responseKey = key
  }

  /// Returns the response to a challenge and the session key; `nil` where the system refuses MD5.
  ///
  /// - Parameters:
  ///   - time: Eight bytes.
  ///   - clientChallenge: Eight bytes.
  ///   - targetInfo: The target information with the mark of its end.
  package func response(
    to serverChallenge: [UInt8], time: [UInt8], clientChallenge: [UInt8], targetInfo: [UInt8]
  ) -> (bytes: [UInt8], sessionKey: [UInt8])? {
    var statement: [UInt8] = [1, 1, 0, 0, 0, 0, 0, 0]
    statement += time
    statement += clientChallenge
    statement += [0, 0, 0, 0]
    statement += targetInfo
    statement += [0, 0, 0, 0]
    guard let proof = authenticationCode(of: serverChallenge + statement, key: responseKey),
      let sessionKey = authenticationCode(of: proof, key: responseKey)
    else { return nil }
    return (proof + statement, sessionKey)
  }

  /// Returns the response for servers that look only at the shorter one (`LMv2`).
  package func shortResponse(to serverChallenge: [UInt8], clientChallenge: [UInt8]) -> [UInt8]? {
    authenticationCode(of: serverChallenge + clientChallenge, key: responseKey).map { $0 + clientChallenge }
  }

  /// Returns HMAC-MD5 (RFC 2104).
  package func authenticationCode(of message: [UInt8], key: [UInt8]) -> [UInt8]? {
    Self.authenticationCode(of: message, key: key, hashes)
  }

  private static func authenticationCode(
    of message: [UInt8], key: [UInt8], _ hashes: any HashFunctions
  ) -> [UInt8]? {
    let padding = [UInt8](repeating: 0, count: max(0, 64 - key.count))
    let key =
      key.count > 64 ? hashes.hash(.md5, key).map { $0 + [UInt8](repeating: 0, count: 48) } : key + padding
    guard let key, let inner = hashes.hash(.md5, key.map { $0 ^ 0x36 } + message) else { return nil }
    return hashes.hash(.md5, key.map { $0 ^ 0x5C } + inner)
  }

  package static func utf16(_ text: String) -> [UInt8] {
    text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
  }

  /// Returns a name in capitals, converted character by character as on Windows. "ß" stays, because it has no single
  /// capital, and no character becomes an ASCII letter.
  package static func uppercased(_ name: String) -> String {
    var result = String.UnicodeScalarView()
    for scalar in name.unicodeScalars {
      let mapping = scalar.properties.uppercaseMapping.unicodeScalars
      if let capital = mapping.first, mapping.count == 1, scalar.isASCII || !capital.isASCII {
        result.append(capital)
      } else {
        result.append(scalar)
      }
    }
    return String(result)
  }
}

/// The hash function MD4 (RFC 1320), from which NTLM derives its keys. OpenSSL 3 has it in its legacy provider only.
package enum MD4 {
  /// Returns the hash of some bytes: 16 bytes.
  package static func hash(_ message: [UInt8]) -> [UInt8] {
    var padded = message
    padded.append(0x80)
    while padded.count % 64 != 56 { padded.append(0) }
    padded.appendLittleEndian(UInt64(message.count) &* 8)
    var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476]
    for start in stride(from: 0, to: padded.count, by: 64) {
      let words = (0..<16).map { index in
        (0..<4).reduce(UInt32(0)) { $0 | UInt32(padded[start + index * 4 + $1]) << UInt32($1 * 8) }
      }
      mix(&state, with: words)
    }
    var hash: [UInt8] = []
    for word in state { hash.appendLittleEndian(word) }
    return hash
  }

  /// The order of the words and the rotations of the three rounds (RFC 1320 §3.4).
  private static let rounds: [(constant: UInt32, rotations: [UInt32], order: [Int])] = [
    (0, [3, 7, 11, 19], Array(0..<16)),
    (0x5A82_7999, [3, 5, 9, 13], [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]),
    (0x6ED9_EBA1, [3, 9, 11, 15], [0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15]),
  ]

  private static func mix(_ state: inout [UInt32], with words: [UInt32]) {
    var (a, b, c, d) = (state[0], state[1], state[2], state[3])
    for (number, round) in rounds.enumerated() {
      for (step, index) in round.order.enumerated() {
        let sum = a &+ mixed(b, c, d, inRound: number) &+ words[index] &+ round.constant
        let rotation = round.rotations[step % 4]
        (a, b, c, d) = (d, sum << rotation | sum >> (32 - rotation), b, c)
      }
    }
    state[0] &+= a
    state[1] &+= b
    state[2] &+= c
    state[3] &+= d
  }

  private static func mixed(_ x: UInt32, _ y: UInt32, _ z: UInt32, inRound round: Int) -> UInt32 {
    switch round {
    case 0: x & y | ~x & z
    case 1: x & y | x & z | y & z
    default: x ^ y ^ z
    }
  }
}

extension [UInt8] {
  /// Appends the bytes of a number, the lowest first.
  package mutating func appendLittleEndian(_ number: some FixedWidthInteger & UnsignedInteger) {
    Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
  }
}
