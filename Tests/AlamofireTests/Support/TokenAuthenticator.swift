import Alamofire
import Foundation
import FoundationNetworking

/// A credential of tests.
struct Token: AuthenticationCredential, Equatable {
  var text: String
  var requiresRefresh = false

  /// The token that a refresh makes of this one, `a` becoming `a+`.
  var next: Token { Token(text: text + "+") }
}

/// Puts tokens into `Authorization`, and refreshes as it is told.
final class TokenAuthenticator: Authenticator {
  typealias Completion = @Sendable (Result<Token, any Error>) -> Void
  typealias Refresh = @Sendable (_ token: Token, _ completion: @escaping Completion) -> Void

  /// The tokens that were applied, the ones that were refreshed, and where.
  let applied = Recorder<String>()
  let refreshed = Recorder<String>()
  let queues = Recorder<String>()
  private let onRefresh: Refresh

  /// A refresh makes the next token at once, unless another way is given.
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
  /// Answers requests with one of the tokens, and refuses all others.
  static func accepting(_ tokens: String...) -> FakeTransport {
    FakeTransport { request, _ in
      tokens.contains { request.value("Authorization") == "Bearer \($0)" } ? .text("ok") : .status(401)
    }
  }
}

/// The label of the queue that calls; Swift's overlay has no name for that.
func queueLabel() -> String {
  typealias Label = @convention(c) (OpaquePointer?) -> UnsafePointer<CChar>?
  guard let symbol = dlsym(nil, "dispatch_queue_get_label") else { return "" }
  return unsafeBitCast(symbol, to: Label.self)(nil).map { String(cString: $0) } ?? ""
}
