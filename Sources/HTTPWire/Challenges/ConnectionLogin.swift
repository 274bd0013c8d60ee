/// What the transport authenticates a connection with, of its own for this one request: NTLM and Negotiate are
/// about connections, and whatever is sent on one is sent in that name.
package struct ConnectionLogin: Sendable, Hashable {
  /// Those that may be used; the transport takes the strongest that the server offers.
  package let schemes: Set<AuthenticationScheme>
  package let credential: PasswordCredential

  package init(schemes: Set<AuthenticationScheme>, credential: PasswordCredential) {
    self.schemes = schemes
    self.credential = credential
  }
}
