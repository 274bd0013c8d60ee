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
