import Alamofire

/// Credentials that a request is given after the server has asked for them: it starts before anybody can give it
/// some, and some servers are fast. The request is then sent once more, as it would have been for the challenge.
struct LateCredentials {
  /// Asks the core to send the request again.
  struct Wish: Error {}

  private var areThere = false
  /// Whether the server has asked when there were none.
  private var wereMissed = false
  private var isWished = false

  mutating func challenged() {
    if !areThere { wereMissed = true }
  }

  /// Returns whether the server has asked before.
  mutating func came() -> Bool {
    areThere = true
    return wereMissed
  }

  /// Whether an attempt that came to this status is worth another one.
  mutating func wantsRetry(after status: Int?) -> Bool {
    guard wereMissed, areThere, status == 401 || status == 407 else { return false }
    wereMissed = false
    isWished = true
    return true
  }

  /// Whether it was this that failed the attempt.
  mutating func takeWish() -> Bool {
    defer { isWished = false }
    return isWished
  }
}
