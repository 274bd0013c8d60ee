import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

extension Pipeline {
  /// Asks the delegate for the answer to a challenge for which there may be one. Returns whether the request is
  /// sent again.
  nonisolated(nonsending) func answered(_ journey: Journey, _ head: ResponseHead) async throws(AFError)
    -> Bool
  {
    guard journey.request.origin == journey.home, head.status == 401,
      let offer = head.block.value(of: "WWW-Authenticate"), offer.offersBasic,
      let task = core.tasks(of: request).last,
      let challenge = journey.challenge(head, realm: offer.basicRealm, credential: request.credential)
    else { return false }
    let session = core.session
    let answer = await offLoop { () -> ChallengeAnswer in
      await CompletionOnce.answer(whenForgotten: .leave, whenCancelled: .leave) { completion in
        let delegate = session.delegate
        let facade = session.facade
        session.rootQueue.async {
          delegate.urlSession(facade, task: task, didReceive: challenge) { disposition, credential in
            completion(ChallengeAnswer(disposition, credential))
          }
        }
      }
    }
    try checkAlive()
    switch answer {
    case .leave: return false
    case .cancel: throw .sessionTaskFailed(error: URLError(.cancelled))
    case .usual: return journey.answers(challenge: head)
    case .credential(let user, let password):
      journey.answer(user: user, password: password)
      return true
    }
  }
}

/// What is done about a challenge.
private enum ChallengeAnswer: Sendable {
  /// The response is that of the challenge.
  case leave
  /// What would have been done without asking.
  case usual
  case credential(user: String, password: String)
  case cancel

  init(_ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?) {
    switch disposition {
    case .useCredential:
      if let user = credential?.user {
        self = .credential(user: user, password: credential?.password ?? "")
      } else {
        self = .leave
      }
    case .performDefaultHandling: self = .usual
    case .cancelAuthenticationChallenge: self = .cancel
    case .rejectProtectionSpace: self = .leave
    @unknown default: self = .leave
    }
  }
}

extension Journey {
  /// What a delegate is shown; `nil` for a URL that Foundation does not read.
  func challenge(_ head: ResponseHead, realm: String?, credential: URLCredential?)
    -> URLAuthenticationChallenge?
  {
    guard let space = URLProtectionSpace(challengeTo: request, realm: realm) else { return nil }
    return URLAuthenticationChallenge(
      protectionSpace: space, proposedCredential: credential, previousFailureCount: challengesAnswered,
      failureResponse: Exchange(url: URL(string: request.url), head: head).httpResponse, error: nil,
      sender: SilentSender())
  }

  /// Sends the request again, with a credential of a delegate's in place of the one that was refused.
  func answer(user: String, password: String) {
    challengesAnswered += 1
    let fields = request.fields.filter { !FieldName.equal($0.name, "Authorization") }
    request = request.with(fields: fields + [HTTPHeader.authorization(username: user, password: password)])
  }
}

extension String {
  /// The realm of a Basic challenge (RFC 7617 §2).
  var basicRealm: String? {
    guard let start = range(of: "realm=\"", options: .caseInsensitive)?.upperBound else { return nil }
    var realm = ""
    var isEscaped = false
    for character in self[start...] {
      if isEscaped {
        realm.append(character)
        isEscaped = false
      } else if character == "\\" {
        isEscaped = true
      } else if character == "\"" {
        return realm
      } else {
        realm.append(character)
      }
    }
    return nil
  }
}

/// Challenges are answered by the completion handler of the delegate's method; this way of old does nothing.
final class SilentSender: NSObject, URLAuthenticationChallengeSender, Sendable {
  func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
  func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
  func cancel(_ challenge: URLAuthenticationChallenge) {}
  func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
  func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
}
