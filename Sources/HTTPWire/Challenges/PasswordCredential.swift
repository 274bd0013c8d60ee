import FoundationEssentials

/// A name and a password, neither of which is in the description.
package struct PasswordCredential: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  package let user: String
  package let password: String

  package init(user: String, password: String) {
    self.user = user
    self.password = password
  }

  package var description: String { "PasswordCredential(…)" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: [:]) }

  /// Whether it is valid in a field: control characters are not (RFC 7617 §2, RFC 7616 §3.4).
  package var isSendable: Bool {
    (Array(user.utf8) + Array(password.utf8)).allSatisfy { $0 >= 0x20 && $0 != 0x7F }
  }

  /// The value of `Authorization` with Basic credentials (RFC 7617 §2), always in UTF-8; `nil` when there is none: a
  /// colon would end the name.
  package var basicField: String? {
    guard isSendable, !user.utf8.contains(UInt8(ascii: ":")) else { return nil }
    return "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
  }
}
