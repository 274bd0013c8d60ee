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

  /// Returns a name in capitals, each character by itself as Windows does: "ß" stays, because it has no single capital,
  /// and no character becomes an ASCII letter.
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
