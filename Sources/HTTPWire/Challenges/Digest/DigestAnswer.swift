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
    var parameters = name
    parameters.append("realm=\(Self.quoted(challenge.realm))")
    parameters.append("uri=\(Self.quoted(target))")
    if let algorithm = challenge.algorithmName { parameters.append("algorithm=\(algorithm)") }
    parameters.append("nonce=\(Self.quoted(ticket.nonce))")
    if let quality {
      parameters.append("nc=\(ticket.countText)")
      parameters.append("cnonce=\(Self.quoted(ticket.cnonce))")
      parameters.append("qop=\(quality.rawValue)")
    }
    parameters.append("response=\"\(response)\"")
    if let opaque = challenge.opaque { parameters.append("opaque=\(Self.quoted(opaque))") }
    return "Digest " + parameters.joined(separator: ", ")
  }

  /// Computes the `response` parameter (RFC 7616 §3.4.1).
  func response(with hashes: some HashFunctions, bodyHash: String?) -> String? {
    let algorithm = challenge.algorithm
    let first = "\(credential.user):\(challenge.realm):\(credential.password)"
    guard var secret = hashes.text(algorithm, first) else { return nil }
    if challenge.isSession {
      guard let session = hashes.text(algorithm, "\(secret):\(ticket.session.nonce):\(ticket.session.cnonce)")
      else { return nil }
      secret = session
    }
    var second = "\(method):\(target)"
    if quality == .authInt {
      guard let bodyHash else { return nil }
      second += ":\(bodyHash)"
    }
    guard let action = hashes.text(algorithm, second) else { return nil }
    guard let quality else { return hashes.text(algorithm, "\(secret):\(ticket.nonce):\(action)") }
    return hashes.text(
      algorithm,
      "\(secret):\(ticket.nonce):\(ticket.countText):\(ticket.cnonce):\(quality.rawValue):\(action)")
  }

  /// Returns the parameters of the name in one of its three forms (RFC 7616 §3.4, §3.4.4).
  private func nameParameters(with hashes: some HashFunctions) -> [String]? {
    if challenge.hashesUser {
      guard let hash = hashes.text(challenge.algorithm, "\(credential.user):\(challenge.realm)") else {
        return nil
      }
      return ["username=\"\(hash)\"", "userhash=true"]
    }
    guard challenge.isUTF8, credential.user.utf8.contains(where: { $0 >= 0x80 }) else {
      return ["username=\(Self.quoted(credential.user))"]
    }
    return ["username*=UTF-8''\(Self.extendedValue(credential.user))"]
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      if scalar == "\"" || scalar == "\\" { result.unicodeScalars.append("\\") }
      result.unicodeScalars.append(scalar)
    }
    return result + "\""
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
