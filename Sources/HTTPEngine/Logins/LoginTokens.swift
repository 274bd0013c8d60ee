import Glibc
import HTTPWire

/// Makes the tokens of logins that take several rounds.
struct LoginTokens: Sendable {
  /// The schemes for which there are tokens.
  static let schemes: Set<AuthenticationScheme> = [.ntlm]

  private let client: NTLMClient

  init(_ credential: PasswordCredential) {
    client = NTLMClient(credential: credential, hashes: OpenSSLHashes())
  }

  /// Returns the token that answers a challenge, which is empty for the first one; `nil` if there is none.
  func token(of scheme: AuthenticationScheme, answering challenge: [UInt8]) -> [UInt8]? {
    guard scheme == .ntlm else { return nil }
    guard !challenge.isEmpty else { return NTLMClient.negotiateMessage }
    let time = NTLMClient.time(unixSeconds: Int64(Clock.wall()))
    return try? client.answer(
      to: challenge, clientChallenge: UInt64.random(in: 0 ... .max), time: time)
  }
}
