/// The parsed arguments of the command.
package struct Invocation: Equatable, Sendable {
  /// The encoding of the data items in the body.
  package enum BodyKind: Equatable, Sendable {
    case json
    case form
  }

  /// A body that is not made of items.
  package enum RawBody: Equatable, Sendable {
    case text(String)
    case standardInput
  }

  /// The parts of an exchange that are printed.
  package enum Shown: Equatable, Sendable {
    /// The response on a terminal; its body alone everywhere else.
    case automatic
    case headers
    case body
    /// Every request and response, redirects among them.
    case everything
  }

  /// The handling of redirects.
  package enum Redirects: Equatable, Sendable {
    case follow(limit: Int?)
    /// The redirect itself is the response.
    case show
  }

  /// A name and a password.
  package struct Credentials: Equatable, Sendable {
    package let user: String
    package let password: String

    package init(user: String, password: String) {
      self.user = user
      self.password = password
    }
  }

  /// The method as it was written; `nil` leaves it to the body.
  package var method: String?
  /// The URL with its scheme.
  package var url = ""
  package var items: [RequestItem] = []
  package var bodyKind: BodyKind?
  package var rawBody: RawBody?
  package var credentials: Credentials?
  /// Seconds without a byte after which the request fails.
  package var timeout: Double?
  package var redirects: Redirects = .follow(limit: nil)
  /// The path of a PEM file.
  package var trustFile: String?
  package var isHTTP1Only = false
  package var shown: Shown = .automatic
  package var showsTiming = false
  package var isCurlWanted = false
  package var checksStatus = true

  package init() {}

  /// Whether there is anything for a body.
  package var hasBody: Bool { rawBody != nil || items.contains(where: \.isData) }
  /// The method that is sent.
  package var effectiveMethod: String { method ?? (hasBody ? "POST" : "GET") }
}
