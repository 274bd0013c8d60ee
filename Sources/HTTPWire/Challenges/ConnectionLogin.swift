/// What the transport authenticates a connection with, of its own for this one request: NTLM and Negotiate are
/// about connections, and whatever is sent on one is sent in that name.
package struct ConnectionLogin: Sendable, Hashable {
  package let scheme: AuthenticationScheme
  package let credential: PasswordCredential

  package init(scheme: AuthenticationScheme, credential: PasswordCredential) {
    self.scheme = scheme
    self.credential = credential
  }
}
