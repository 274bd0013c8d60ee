import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire

/// The credentials of an attempt: the answered challenges, and the netrc file.
struct HopCredentials: Sendable {
  /// Both of them; `nil` for most attempts.
  private(set) var authentication: Authentication?

  /// The credentials that answered challenges of the attempt.
  var history: AuthenticationHistory { authentication?.history ?? AuthenticationHistory() }
  /// The credentials of the last hop.
  var proof: AuthenticationProof? { authentication?.history.proof }
  /// The netrc file; `nil` before it was read.
  var netrc: Netrc? {
    get { authentication?.netrc }
    set { authentication = Authentication(history: history, netrc: newValue) }
  }

  /// Notes the proof of the next hop.
  mutating func add(_ proof: AuthenticationProof) {
    var history = history
    history.recordSent(proof)
    authentication = Authentication(history: history, netrc: netrc)
  }

  /// Notes the proof of the last hop, which is sent again.
  mutating func repeatProof(as proof: AuthenticationProof) {
    var history = history
    history.recordRepetition(proof)
    authentication = Authentication(history: history, netrc: netrc)
  }

  /// Notes the offers of a response that refuses the proof of the last hop.
  mutating func refused(by offers: [AuthenticationOffer]) {
    var history = history
    history.recordRefusal(offers)
    authentication = Authentication(history: history, netrc: netrc)
  }

  /// Forgets the proof of the last hop, and returns it.
  mutating func dropProof() -> AuthenticationProof? {
    guard let proof else { return nil }
    var history = history
    history.recordRedirect()
    authentication = Authentication(history: history, netrc: netrc)
    return proof
  }
}

// Credentials that are sent preemptively (RFC 7617 §2.2, RFC 7616 §3.6).
extension HopLoop {
  mutating func addCredentials() throws(AFError) -> Outcome<HopLoop> {
    if redirects.count > 0 { dropCredentials() }
    // Most sessions have no credentials, and finding that out costs next to nothing.
    let request = request
    let mayKnow =
      !services.credentials.isEmpty || request.sendsBasicCredential || request.hasNetrcFile
    guard mayKnow, maySendCredentials else { return .done }
    guard needsNetrc, let path = request.profile.options.netrcFile else { return try addKnownCredential() }
    let url = request.url
    return .task { () throws(AFError) in
      try NetrcFile.read(path, for: url)
    } then: { (hops, netrc) throws(AFError) in
      hops.credentials.netrc = netrc
      return try hops.addKnownCredential()
    }
  }

  private mutating func addKnownCredential(bodyHash: BodyHash = .unknown) throws(AFError) -> Outcome<HopLoop>
  {
    guard let match = rememberedMatch else {
      addBasicCredential()
      return .done
    }
    let made = try field(match.scheme, match.credential, match.digest, bodyHash: bodyHash) {
      services.credentials.ticket(match, origin: request.origin)
    }
    guard case .made(let field, let ticket) = made else {
      return hashBody(for: match.digest) { (hops, hash) throws(AFError) in
        try hops.addKnownCredential(bodyHash: hash)
      }
    }
    if !attach(match, field, ticket) { addBasicCredential() }
    return .done
  }

  /// Forgets the credential that was sent with the previous hop.
  mutating func dropCredentials() {
    redirects.arrive(at: request.origin)
    guard let field = credentials.dropProof()?.field, request.authorization == field else { return }
    request = request.changing {
      $0.fields.removeAll { FieldName.equal($0.name, "Authorization") }
    }
  }

  private var maySendCredentials: Bool {
    route.handler.isOverNetwork && !request.isTRACE && !redirects.leftInitialOrigin
      && request.authorization == nil
  }

  private var needsNetrc: Bool {
    credentials.netrc == nil && request.profile.options.netrcFile != nil
  }

  /// The credential of the request itself, or of the netrc file.
  private var ownCredential: PasswordCredential? {
    delegate.passwordCredential
      ?? credentials.netrc?.credential(host: request.origin.host)
  }

  /// A credential that a server has accepted for the protection space of the hop, if it may be used.
  private var rememberedMatch: CredentialSpaces.Match? {
    let request = request
    let own = ownCredential
    let match = services.credentials
      .matches(request.origin, target: ProtectionDomain.target(of: request.url))
      .first { match in
        switch match.source {
        case .request, .file: return match.credential == own
        case .session: return own == nil || match.credential == own
        case .storage:
          guard own == nil else { return match.credential == own }
          // A credential that was removed from the storage is no longer used.
          return services.authentication
            .storedCredential(for: request, realm: match.realm, match.scheme) == match.credential
        }
      }
    // A body that cannot be read twice waits for the challenge.
    if let digest = match?.digest, digest.choice(for: request.body) == .needsStoredBody { return nil }
    return match
  }

  /// Adds a remembered credential to the next hop. Returns false if it has no field.
  private mutating func attach(_ match: CredentialSpaces.Match, _ field: String?, _ ticket: DigestTicket?)
    -> Bool
  {
    guard let field else { return false }
    add(
      AuthenticationProof(
        scheme: match.scheme, realm: match.realm, credential: match.credential, source: match.source,
        field: field, digest: match.digest, ticket: ticket, isAnswer: false))
    return true
  }

  private mutating func addBasicCredential() {
    guard request.profile.options.preemptiveBasicAuthentication, let credential = ownCredential,
      let field = credential.basicField
    else { return }
    add(
      AuthenticationProof(
        scheme: .basic, realm: nil, credential: credential, source: .request, field: field, isAnswer: false))
  }

  // MARK: The field

  /// Adds a proof to the next hop.
  mutating func add(_ proof: AuthenticationProof) {
    request = request.adding(proof)
    credentials.add(proof)
  }

  /// The value of `Authorization`.
  enum AuthorizationField {
    /// The value, and the ticket of Digest that it used. There is no value for schemes that authenticate a connection,
    /// and none if it cannot be computed.
    case made(String?, DigestTicket?)
    /// The body has to be hashed first, and is too long for the loop's thread.
    case needsBodyHash
  }

  /// The hash of the body, for Digest with the quality `auth-int`.
  enum BodyHash: Sendable {
    case unknown
    /// The hash by an algorithm; `nil` if the body cannot be read.
    case known(String?, DigestChallenge.Algorithm)
  }

  /// Makes the field for a credential in the next hop.
  ///
  /// - Parameter ticket: Called at most once, because each ticket has its own count.
  func field(
    _ scheme: AuthenticationScheme, _ credential: PasswordCredential, _ digest: DigestChallenge?,
    bodyHash: BodyHash, ticket: () -> DigestTicket?
  ) throws(AFError) -> AuthorizationField {
    let request = request
    guard scheme == .digest, let digest else {
      return .made(scheme == .basic ? credential.basicField : nil, nil)
    }
    let quality = try Self.quality(of: digest, for: request)
    var hash: String?
    switch bodyHash {
    // The challenge may have changed since, and name another algorithm.
    case .known(let known, digest.algorithm): hash = known
    case .known where quality == .authInt, .unknown where quality == .authInt:
      guard request.body.isShort else { return .needsBodyHash }
      hash = OpenSSLHashes().text(digest.algorithm, of: request.body)
    case .known, .unknown: break
    }
    if quality == .authInt, hash == nil { throw Self.unreadableBody(of: request) }
    guard let ticket = ticket() else { return .made(nil, nil) }
    var answer = DigestAnswer(
      challenge: digest, credential: digest.isUTF8 ? credential.normalized : credential, ticket: ticket,
      method: request.method, target: ProtectionDomain.target(of: request.url), quality: quality)
    let field = answer.field(with: OpenSSLHashes(), bodyHash: hash)
    return .made(field, answer.ticket)
  }

  /// Computes another Digest answer for a request that is sent again although the server has received it, because each
  /// use of a nonce needs another count (RFC 7616 §3.4). The fields of other schemes stay.
  mutating func renewAuthorization(
    bodyHash: BodyHash = .unknown, then: @escaping Continuation<HopLoop>
  ) throws(AFError) -> Outcome<HopLoop> {
    guard let proof = credentials.proof, let used = proof.ticket else { return try then(&self) }
    let made = try field(proof.scheme, proof.credential, proof.digest, bodyHash: bodyHash) {
      services.credentials.ticket(after: used, origin: request.origin)
    }
    guard case .made(let field, let ticket) = made else {
      return hashBody(for: proof.digest) { (hops, hash) throws(AFError) in
        try hops.renewAuthorization(bodyHash: hash, then: then)
      }
    }
    if let field, let ticket {
      let repeated = proof.repeated(field, ticket)
      requests.replaceProof(with: repeated)
      credentials.repeatProof(as: repeated)
    }
    return try then(&self)
  }

  /// Hashes the body of the next hop in a task.
  func hashBody(
    for digest: DigestChallenge?,
    then: @escaping @Sendable (inout HopLoop, BodyHash) throws(AFError) -> Outcome<HopLoop>
  ) -> Outcome<HopLoop> {
    guard let algorithm = digest?.algorithm else { preconditionFailure("a body is hashed for Digest alone") }
    return .task { [body = request.body] in
      OpenSSLHashes().text(algorithm, of: body)
    } then: { (hops, hash) throws(AFError) in
      try hops.delegate.checkAlive()
      return try then(&hops, .known(hash, algorithm))
    }
  }

  private static func unreadableBody(of request: WireRequest) -> AFError {
    .sessionTaskFailed(
      error: URLError(
        .requestBodyStreamExhausted,
        "\(request.origin.host) wants the body to be signed (Digest, auth-int), but the body cannot be read. Check that its file still exists and is readable.",
        url: request.url))
  }

  private static func quality(of digest: DigestChallenge, for request: WireRequest) throws(AFError)
    -> DigestChallenge.Quality?
  {
    switch digest.choice(for: request.body) {
    case .use(let choice): return choice
    case .needsStoredBody:
      throw .sessionTaskFailed(
        error: URLError(
          .requestBodyStreamExhausted,
          "\(request.origin.host) wants the body to be signed (Digest, auth-int), and a stream can be read only once; use Data or a file.",
          url: request.url))
    }
  }
}

extension RequestBody {
  /// Whether the body can be hashed on the loop's thread.
  fileprivate var isShort: Bool {
    if case .source = self { return false }
    return count <= 16_384
  }
}

/// Reads what ``TransportOptions/netrcFile`` names.
enum NetrcFile {
  /// Reads a netrc file. Blocks for as long as that takes.
  static func read(_ path: String, for url: String) throws(AFError) -> Netrc {
    let path = (path as NSString).expandingTildeInPath
    do throws(FileReadingFailure) {
      return Netrc(String(decoding: try BoundedFile.content(of: path), as: UTF8.self))
    } catch {
      // No body is read here.
      let code = error.kind == .cannotReadBody ? .resourceUnavailable : URLError.code(of: error.kind)
      let message =
        "TransportOptions.netrcFile cannot be read: \(path) (\(error.reason)). Correct it, or set it to nil."
      throw .sessionTaskFailed(error: URLError(code, message, url: url))
    }
  }
}
