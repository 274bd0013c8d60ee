/// The credentials that are attached to a request.
package struct AuthenticationProof: Sendable, Equatable {
  /// The source of the credential, which decides which other requests may use it.
  package enum Source: Sendable, Equatable {
    /// The request itself, or its URL: no other request uses it.
    case request
    /// The delegate of the session, for all of its requests.
    case session
    /// The credential storage of the session.
    case storage
    /// A netrc file.
    case file
  }

  package let scheme: AuthenticationScheme
  /// `nil` for preemptive credentials before any challenge, and for schemes without realms.
  package let realm: String?
  package let credential: PasswordCredential
  package let source: Source
  /// The value of `Authorization`; `nil` for schemes of connections.
  package let field: String?
  package let digest: DigestChallenge?
  package let ticket: DigestTicket?
  /// Whether it answers a challenge of this very request.
  package let isAnswer: Bool

  package init(
    scheme: AuthenticationScheme, realm: String?, credential: PasswordCredential, source: Source,
    field: String?, digest: DigestChallenge? = nil, ticket: DigestTicket? = nil, isAnswer: Bool
  ) {
    self.scheme = scheme
    self.realm = realm
    self.credential = credential
    self.source = source
    self.field = field
    self.digest = digest
    self.ticket = ticket
    self.isAnswer = isAnswer
  }
}
