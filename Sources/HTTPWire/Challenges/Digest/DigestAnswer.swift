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

  /// Returns the value of `Authorization`; `nil` when it cannot be made.
  ///
  /// - Parameter bodyHash: The hash of the content, for ``DigestChallenge/Quality/authInt``.
  package func field(with hashes: some HashFunctions, bodyHash: String? = nil) -> String? {
    guard credential.isSendable, let response = response(with: hashes, bodyHash: bodyHash),
      let name = nameParameters(with: hashes)
    else { return nil }
    var field = "Digest " + name
    field += ", realm="
    Self.append(challenge.realm, to: &field)
    field += ", uri="
    Self.append(target, to: &field)
    if let algorithm = challenge.algorithmName {
      field += ", algorithm="
      field += algorithm
    }
    field += ", nonce="
    Self.append(ticket.nonce, to: &field)
    if let quality {
      field += ", nc="
      field += ticket.countText
      field += ", cnonce="
      Self.append(ticket.cnonce, to: &field)
      field += ", qop="
      field += quality.rawValue
    }
    field += ", response="
    Self.append(response, to: &field)
    if let opaque = challenge.opaque {
      field += ", opaque="
      Self.append(opaque, to: &field)
    }
    return field
  }

  /// Computes the `response` parameter (RFC 7616 §3.4.1).
  func response(with hashes: some HashFunctions, bodyHash: String?) -> String? {
    let algorithm = challenge.algorithm
    guard var secret = hashes.text(algorithm, credential.user, challenge.realm, credential.password) else {
      return nil
    }
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
      var name = "username="
      Self.append(credential.user, to: &name)
      return name
    }
    return "username*=UTF-8''\(Self.extendedValue(credential.user))"
  }

  /// Appends a text as a quoted string (RFC 9110 §5.6.4).
  private static func append(_ text: String, to field: inout String) {
    field += "\""
    if text.utf8.contains(where: { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }) {
      for scalar in text.unicodeScalars {
        if scalar == "\"" || scalar == "\\" { field.unicodeScalars.append("\\") }
        field.unicodeScalars.append(scalar)
      }
    } else {
      field += text
    }
    field += "\""
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
