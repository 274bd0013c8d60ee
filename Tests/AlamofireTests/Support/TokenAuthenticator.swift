import Alamofire
import Foundation
import FoundationNetworking
import Scenarios

/// A credential for tests.
struct Token: AuthenticationCredential, Equatable {
  var text: String
  var requiresRefresh = false

  /// The token after a refresh, `a` becoming `a+`.
  var next: Token { Token(text: text + "+") }
}

/// An authenticator that sets tokens in `Authorization`, with a scripted refresh.
final class TokenAuthenticator: Authenticator {
  typealias Completion = @Sendable (Result<Token, any Error>) -> Void
  typealias Refresh = @Sendable (_ token: Token, _ completion: @escaping Completion) -> Void

  /// The applied tokens, the refreshed tokens, and the queues of the calls.
  let applied = Recorder<String>()
  let refreshed = Recorder<String>()
  let queues = Recorder<String>()
  private let onRefresh: Refresh

  /// Makes an authenticator. By default, a refresh returns the next token at once.
  init(_ onRefresh: @escaping Refresh = { token, completion in completion(.success(token.next)) }) {
    self.onRefresh = onRefresh
  }

  func apply(_ credential: Token, to urlRequest: inout URLRequest) {
    applied.add(credential.text)
    urlRequest.headers.add(.authorization(bearerToken: credential.text))
  }

  func refresh(_ credential: Token, for session: Session, completion: @escaping Completion) {
    refreshed.add(credential.text)
    queues.add(queueLabel())
    onRefresh(credential, completion)
  }

  func didRequest(
    _ urlRequest: URLRequest, with response: HTTPURLResponse, failDueToAuthenticationError error: any Error
  ) -> Bool {
    response.statusCode == 401
  }

  func isRequest(_ urlRequest: URLRequest, authenticatedWith credential: Token) -> Bool {
    urlRequest.headers["Authorization"] == "Bearer \(credential.text)"
  }
}

extension FakeTransport {
  /// Returns a transport that accepts requests with one of the tokens.
  static func accepting(_ tokens: String...) -> FakeTransport {
    FakeTransport { request, _ in
      tokens.contains { request.value("Authorization") == "Bearer \($0)" } ? .text("ok") : .status(401)
    }
  }
}
