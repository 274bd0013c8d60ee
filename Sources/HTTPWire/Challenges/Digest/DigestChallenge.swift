import FoundationEssentials

/// A Digest challenge (RFC 7616 §3.3).
package struct DigestChallenge: Sendable, Hashable {
  /// The hash functions of RFC 7616 §6.1, and SHA-512, which is used in practice.
  package enum Algorithm: String, Sendable, Hashable, CaseIterable {
    case md5 = "MD5"
    case sha256 = "SHA-256"
    case sha512Half = "SHA-512-256"
    case sha512 = "SHA-512"

    var strength: Int {
      switch self {
      case .md5: 0
      case .sha256: 1
      case .sha512: 2
      case .sha512Half: 3
      }
    }
  }

  /// The quality of protection (RFC 7616 §3.4.1).
  package enum Quality: String, Sendable, Hashable {
    /// Method and target.
    case auth
    /// Also the content of the request.
    case authInt = "auth-int"
  }

  package let realm: String
  package let nonce: String
  package let opaque: String?
  package let algorithm: Algorithm
  /// The algorithm as the server wrote it; `nil` if it did not.
  package let algorithmName: String?
  /// Whether the password is hashed once for several requests (`-sess`).
  package let isSession: Bool
  /// The offered qualities; empty for a server that supports only RFC 2069.
  package let qualities: Set<Quality>
  /// Whether the nonce has expired, so that the credential may be valid.
  package let isStale: Bool
  /// Whether the name is sent as a hash.
  package let hashesUser: Bool
  package let isUTF8: Bool
  /// The protection space (RFC 7616 §3.3), as the server wrote it.
  package let domain: String?

  /// Reads a challenge; `nil` if it cannot be answered: without a nonce, or with an unknown algorithm or quality.
  package init?(_ challenge: Challenge) {
    guard challenge.scheme == "digest", let nonce = challenge["nonce"], !nonce.isEmpty else { return nil }
    self.nonce = nonce
    realm = challenge.realm ?? ""
    opaque = challenge["opaque"]
    algorithmName = challenge["algorithm"]
    guard let (algorithm, isSession) = Self.algorithm(named: algorithmName ?? "MD5") else { return nil }
    self.algorithm = algorithm
    self.isSession = isSession
    let named = challenge["qop"] ?? ""
    let words = named.split { $0 == "," || $0 == " " || $0 == "\t" }
    qualities = Set(words.compactMap { Quality(rawValue: $0.lowercased()) })
    guard words.isEmpty || !qualities.isEmpty else { return nil }
    // Without a quality no nonce of the client is sent, by which the server could know the session.
    guard !isSession || !qualities.isEmpty else { return nil }
    isStale = Self.isTrue(challenge["stale"])
    hashesUser = Self.isTrue(challenge["userhash"])
    isUTF8 = challenge["charset"].map { $0.lowercased() == "utf-8" } ?? false
    domain = challenge["domain"]
    // All of these are sent back; none may break the line.
    guard [realm, nonce, opaque ?? ""].allSatisfy({ $0.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } }) else {
      return nil
    }
  }

  private static func algorithm(named name: String) -> (Algorithm, Bool)? {
    var name = name.uppercased()
    let isSession = name.hasSuffix("-SESS")
    if isSession { name.removeLast(5) }
    return Algorithm(rawValue: name).map { ($0, isSession) }
  }

  private static func isTrue(_ value: String?) -> Bool { value?.lowercased() == "true" }
}

/// An answer to a Digest challenge (RFC 7616 §3.4; without a quality, RFC 2069 §2.1.2).
package struct DigestAnswer {
  package var challenge: DigestChallenge
  package var credential: PasswordCredential
  package var ticket: DigestTicket
  package var method: String
  /// The target, as in the request line.
  package var target: String
  /// `nil` for servers that know none.
  package var quality: DigestChallenge.Quality?

  package init(
    challenge: DigestChallenge, credential: PasswordCredential, ticket: DigestTicket, method: String,
    target: String, quality: DigestChallenge.Quality?
  ) {
    self.challenge = challenge
    self.credential = credential
    self.ticket = ticket
    self.method = method
    self.target = target
    self.quality = quality
  }

  /// Returns the value of `Authorization`; `nil` when it cannot be computed. The ticket then knows the secret, so that
  /// later answers need not compute it.
  ///
  /// - Parameter bodyHash: The hash of the content, for ``DigestChallenge/Quality/authInt``.
  package mutating func field(with hashes: some HashFunctions, bodyHash: String? = nil) -> String? {
    ticket.secret = ticket.secret ?? secret(with: hashes)
    guard credential.isSendable, let response = response(with: hashes, bodyHash: bodyHash),
      let name = nameParameters(with: hashes)
    else { return nil }
    var field = FieldText("Digest ")
    field.add(name)
    field.add(", realm=", quoted: challenge.realm)
    field.add(", uri=", quoted: target)
    if let algorithm = challenge.algorithmName { field.add(", algorithm=", algorithm) }
    field.add(", nonce=", quoted: ticket.nonce)
    if let quality {
      field.add(", nc=", ticket.countText)
      field.add(", cnonce=", quoted: ticket.cnonce)
      field.add(", qop=", quality.rawValue)
    }
    field.add(", response=", quoted: response)
    if let opaque = challenge.opaque { field.add(", opaque=", quoted: opaque) }
    return field.text
  }

  /// Computes the `response` parameter (RFC 7616 §3.4.1).
  private func response(with hashes: some HashFunctions, bodyHash: String?) -> String? {
    let algorithm = challenge.algorithm
    guard var secret = ticket.secret?.hash else { return nil }
    if challenge.isSession {
      let session = ticket.session
      guard let hash = hashes.text(algorithm, secret, session.nonce, session.cnonce) else { return nil }
      secret = hash
    }
    guard let action = action(with: hashes, bodyHash: bodyHash) else { return nil }
    guard let quality else { return hashes.text(algorithm, secret, ticket.nonce, action) }
    return hashes.text(
      algorithm, secret, ticket.nonce, ticket.countText, ticket.cnonce, quality.rawValue, action)
  }

  private func secret(with hashes: some HashFunctions) -> DigestSecret? {
    hashes.text(challenge.algorithm, credential.user, challenge.realm, credential.password)
      .map { DigestSecret(hash: $0) }
  }

  /// Returns the hash of the method and the target, and of the content where its integrity is protected.
  private func action(with hashes: some HashFunctions, bodyHash: String?) -> String? {
    guard quality == .authInt else { return hashes.text(challenge.algorithm, method, target) }
    return bodyHash.flatMap { hashes.text(challenge.algorithm, method, target, $0) }
  }

  /// Returns the parameters of the name in one of its three forms (RFC 7616 §3.4, §3.4.4).
  private func nameParameters(with hashes: some HashFunctions) -> String? {
    if challenge.hashesUser {
      guard let hash = hashes.text(challenge.algorithm, credential.user, challenge.realm) else { return nil }
      return "username=\"\(hash)\", userhash=true"
    }
    guard challenge.isUTF8, credential.user.utf8.contains(where: { $0 >= 0x80 }) else {
      var name = FieldText("username=")
      name.add("", quoted: credential.user)
      return name.text
    }
    return "username*=UTF-8''\(Self.extendedValue(credential.user))"
  }

  /// Encodes a text as an extended value (RFC 8187 §3.2.1).
  private static func extendedValue(_ text: String) -> String {
    let plain = "!#$&+-.^_`|~".utf8
    var result: [UInt8] = []
    let digits = Array("0123456789ABCDEF".utf8)
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: result.append(byte)
      case _ where plain.contains(byte): result.append(byte)
      default: result += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: result, as: UTF8.self)
  }
}

/// The value of a field, which grows by bytes: appending to a `String` takes several times as long.
private struct FieldText {
  private var bytes: [UInt8] = []

  init(_ text: String) {
    bytes.reserveCapacity(384)
    add(text)
  }

  var text: String { String(decoding: bytes, as: UTF8.self) }

  mutating func add(_ text: String) { bytes.append(contentsOf: text.utf8) }

  mutating func add(_ separator: String, _ text: String) {
    add(separator)
    add(text)
  }

  /// Adds a separator, and a text as a quoted string (RFC 9110 §5.6.4).
  mutating func add(_ separator: String, quoted text: String) {
    add(separator)
    bytes.append(UInt8(ascii: "\""))
    var text = text
    text.withUTF8 { text in
      var start = 0
      for (index, byte) in text.enumerated() where Self.isEscaped(byte) {
        bytes.append(contentsOf: text[start..<index])
        bytes.append(UInt8(ascii: "\\"))
        start = index
      }
      bytes.append(contentsOf: text[start...])
    }
    bytes.append(UInt8(ascii: "\""))
  }

  private static func isEscaped(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\")
  }
}

extension DigestChallenge {
  /// Which quality a request is sent with: `auth` where the server takes it, since it costs nothing more.
  package enum Choice: Sendable, Equatable {
    case use(Quality?)
    /// The whole content would have to be known before it is sent.
    case needsStoredBody
  }

  package func choice(for body: RequestBody) -> Choice {
    guard !qualities.isEmpty else { return .use(nil) }
    if qualities.contains(.auth) { return .use(.auth) }
    return body.isStored ? .use(.authInt) : .needsStoredBody
  }
}

/// The hash of user, realm and password (`A1` in RFC 7616 §3.4.2). It suffices to answer for the user, so it is not in
/// the description.
package struct DigestSecret: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  package let hash: String

  package var description: String { "DigestSecret(…)" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// The values that make each answer to a Digest challenge unique (RFC 7616 §3.4).
package struct DigestTicket: Sendable, Hashable {
  /// The nonces with which a `-sess` algorithm began.
  package struct Session: Sendable, Hashable {
    package let nonce: String
    package let cnonce: String
  }

  package let nonce: String
  /// The client's own nonce.
  package let cnonce: String
  /// The number of uses of the nonce, this one included.
  package let count: UInt32
  package let session: Session
  /// The secret of the credential, if an earlier answer has computed it.
  package fileprivate(set) var secret: DigestSecret?

  package init(
    nonce: String, cnonce: String, count: UInt32, session: Session? = nil, secret: DigestSecret? = nil
  ) {
    self.nonce = nonce
    self.cnonce = cnonce
    self.count = count
    self.session = session ?? Session(nonce: nonce, cnonce: cnonce)
    self.secret = secret
  }

  /// The next use of the nonce; `nil` after the last one.
  package var next: DigestTicket? {
    count < .max ? counted(count + 1) : nil
  }

  /// Returns the ticket of another use of the nonce.
  package func counted(_ count: UInt32) -> DigestTicket {
    DigestTicket(nonce: nonce, cnonce: cnonce, count: count, session: session, secret: secret)
  }

  /// Makes the ticket of the first answer to a challenge.
  package static func first(for challenge: DigestChallenge) -> DigestTicket {
    DigestTicket(nonce: challenge.nonce, cnonce: randomNonce(), count: 1)
  }

  /// Returns 128 random bits in hexadecimal digits.
  package static func randomNonce() -> String {
    var generator = SystemRandomNumberGenerator()
    return digits(of: generator.next() as UInt64) + digits(of: generator.next() as UInt64)
  }

  /// Eight hexadecimal digits.
  package var countText: String { Self.digits(of: count) }

  private static func digits(of number: some FixedWidthInteger) -> String {
    let count = number.bitWidth / 4
    return String(unsafeUninitializedCapacity: count) { digits in
      for index in 0..<count {
        digits[index] = HexDigit.lowercase(UInt8(truncatingIfNeeded: number >> (4 * (count - 1 - index))))
      }
      return count
    }
  }
}

/// The statement of a server about an authenticated exchange (RFC 7615 §3, RFC 7616 §3.5).
package struct AuthenticationInfo: Sendable, Equatable {
  /// The nonce that is to be used from now on.
  package let nextNonce: String?

  package init(_ fields: [String]) {
    nextNonce =
      fields.lazy.flatMap { field -> [Challenge.Parameter] in
        var scanner = ChallengeScanner(field)
        return scanner.parameters()
      }
      // It is sent back, and must not break the line.
      .first { $0.name == "nextnonce" && !$0.value.isEmpty && HeaderFieldRules.isFieldValue($0.value) }?.value
  }
}

/// Computes the hashes that Digest needs: HTTPWire itself has none.
package protocol HashFunctions: Sendable {
  /// Returns the hash of some bytes; `nil` when the system does not allow this algorithm.
  func hash(_ algorithm: DigestChallenge.Algorithm, _ bytes: [UInt8]) -> [UInt8]?
  /// Makes a hash of bytes that come one after the other; `nil` when the system does not allow this algorithm.
  func makeRunningHash(_ algorithm: DigestChallenge.Algorithm) -> (any RunningHash)?
}

/// A hash that is not complete.
package protocol RunningHash: AnyObject {
  func add(_ bytes: UnsafeRawBufferPointer)
  /// Returns the hash of all that was added; to be called once. `nil` when an update failed.
  func finish() -> [UInt8]?
}

extension HashFunctions {
  /// Returns the hash of some bytes in hexadecimal digits, as Digest writes it.
  package func text(_ algorithm: DigestChallenge.Algorithm, _ bytes: [UInt8]) -> String? {
    hash(algorithm, bytes).map(Self.digits)
  }

  /// Returns the hash of some texts with a colon between them, in hexadecimal digits.
  func text(_ algorithm: DigestChallenge.Algorithm, _ parts: String...) -> String? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(parts.reduce(parts.count) { $0 + $1.utf8.count })
    for (index, part) in parts.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ":")) }
      bytes.append(contentsOf: part.utf8)
    }
    return text(algorithm, bytes)
  }

  /// Returns lower-case hexadecimal digits, two for each byte.
  package static func digits(_ bytes: [UInt8]) -> String {
    String(unsafeUninitializedCapacity: bytes.count * 2) { digits in
      for (index, byte) in bytes.enumerated() {
        digits[2 * index] = HexDigit.lowercase(byte >> 4)
        digits[2 * index + 1] = HexDigit.lowercase(byte)
      }
      return bytes.count * 2
    }
  }

  /// Returns the hash of a body; `nil` if it cannot be read again from its first byte. The call reads files, so it
  /// must not run on the thread of the transport.
  package func text(_ algorithm: DigestChallenge.Algorithm, of body: RequestBody) -> String? {
    guard let hash = makeRunningHash(algorithm) else { return nil }
    switch body {
    case .none: break
    case .bytes(let data): data.withUnsafeBytes { hash.add($0) }
    case .source(let sent):
      let source = sent.stored
      guard sent.isStored, source.start(wake: {}) == nil else { return nil }
      defer { source.stop() }
      let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)
      defer { room.deallocate() }
      reading: while true {
        switch source.read(into: room) {
        case .bytes(let count): hash.add(UnsafeRawBufferPointer(rebasing: room[..<count]))
        case .end: break reading
        case .wait, .failure: return nil
        }
      }
    }
    return hash.finish().map(Self.digits)
  }
}

/// Hexadecimal digits in ASCII.
enum HexDigit {
  /// Returns the digit of the lower four bits of a value.
  static func lowercase(_ value: UInt8) -> UInt8 {
    let value = value & 15
    return value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }
}
