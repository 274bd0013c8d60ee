/// One challenge of a `WWW-Authenticate` or `Proxy-Authenticate` field (RFC 9110 §11.6.1): a scheme and its
/// parameters.
package struct Challenge: Sendable, Equatable {
  package struct Parameter: Sendable, Equatable {
    /// Lower case.
    package let name: String
    /// Without quotation marks and escapes.
    package let value: String

    package init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  /// Lower case: `basic`, `digest`.
  package let scheme: String
  /// The token68 behind the scheme, in place of parameters (RFC 9110 §11.2).
  package let token: String?
  package let parameters: [Parameter]

  package init(scheme: String, token: String? = nil, parameters: [Parameter] = []) {
    self.scheme = scheme.lowercased()
    self.token = token
    self.parameters = parameters
  }

  /// The value of a parameter, its name in lower case. A name must not occur twice; of a server that repeats one,
  /// the first counts.
  package subscript(name: String) -> String? {
    parameters.first { $0.name == name }?.value
  }

  /// The protection space (RFC 9110 §11.5).
  package var realm: String? { self["realm"] }

  /// Returns the challenges of several fields in order. A field may contain several challenges; commas separate
  /// challenges as well as their parameters. Invalid ones are ignored.
  package static func all(in fields: [String]) -> [Challenge] {
    var challenges: [Challenge] = []
    for field in fields {
      var scanner = ChallengeScanner(field)
      while challenges.count < mostChallenges, let challenge = scanner.nextChallenge() {
        challenges.append(challenge)
      }
    }
    return challenges
  }

  /// More than any server has to offer.
  static let mostChallenges = 32
}

extension FieldBlock {
  /// Returns the challenges of the field of this name.
  package func challenges(of name: StaticString = "WWW-Authenticate") -> [Challenge] {
    Challenge.all(in: values(of: name))
  }
}
