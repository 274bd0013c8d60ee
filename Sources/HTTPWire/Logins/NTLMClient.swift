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
  /// The workstation name that every client sends, so that no server learns the name of the machine.
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
      // Without the code there is no position for the version.
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
