import Glibc
import HTTPSystem
package import HTTPWire

/// Makes the tokens of one login that takes several rounds.
package struct LoginTokens: Sendable {
  /// The schemes for which this process can make tokens.
  package static let schemes: Set<AuthenticationScheme> = {
    var schemes: Set<AuthenticationScheme> = []
    // NTLM needs MD5, which may be switched off.
    if OpenSSLHashes().hash(.md5, []) != nil { schemes.insert(.ntlm) }
    if GSSAPI.functions != nil { schemes.insert(.negotiate) }
    return schemes
  }()

  private enum Maker {
    case ntlm(NTLMClient)
    case negotiate(NegotiateConversation)
    case none
  }

  private let maker: Maker

  /// Makes the tokens for a login.
  ///
  /// - Parameter host: The server, or the proxy, that asks for the login.
  init(_ credential: PasswordCredential, host: String, _ scheme: AuthenticationScheme) {
    maker =
      switch scheme {
      case .ntlm: .ntlm(NTLMClient(credential: credential, hashes: OpenSSLHashes()))
      case .negotiate: NegotiateConversation(host: host).map { .negotiate($0) } ?? .none
      case .basic, .digest: .none
      }
  }

  /// The answer to a challenge, or how to get it.
  enum Answer {
    /// The token; `nil` if there is none.
    case token([UInt8]?)
    /// The token can take long, so ``PendingTokens`` makes it.
    case takesTime(NegotiateConversation)
  }

  /// Returns the answer to a challenge, which is empty for the first token.
  func answer(to challenge: [UInt8]) -> Answer {
    switch maker {
    case .none: .token(nil)
    case .ntlm(let client): .token(Self.message(of: client, answering: challenge))
    case .negotiate(let conversation): .takesTime(conversation)
    }
  }

  private static func message(of client: NTLMClient, answering challenge: [UInt8]) -> [UInt8]? {
    guard !challenge.isEmpty else { return NTLMClient.negotiateMessage }
    let time = NTLMClient.time(unixSeconds: Int64(Clock.wall()))
    return try? client.answer(
      to: challenge, clientChallenge: UInt64.random(in: 0 ... .max), time: time)
  }
}

/// The tokens that are being made on other threads. Belongs to the loop's thread.
final class PendingTokens {
  private var waiting: [UInt64: ([UInt8]?) -> Void] = [:]
  private var last: UInt64 = 0

  unowned(unsafe) var owner: EventLoop!

  /// Makes a token on a look-up thread, and passes it on in a later turn of the loop.
  func make(
    with conversation: NegotiateConversation, answering challenge: [UInt8],
    then: @escaping ([UInt8]?) -> Void
  ) {
    last += 1
    let number = last
    waiting[number] = then
    LookupThreads.shared.run { [weak owner] in
      let token = conversation.token(answering: challenge)
      owner?.post(.run { $0.tokens.made(number, token) })
    }
  }

  private func made(_ number: UInt64, _ token: [UInt8]?) { waiting.removeValue(forKey: number)?(token) }
}
