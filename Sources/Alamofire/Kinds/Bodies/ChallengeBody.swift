import Foundation
import HTTPWire
import Synchronization

/// The sink of a download or a stream whose delegate decides about challenges. It keeps the body of a challenge until
/// the decision, because only the last response is downloaded or streamed. Other bodies pass.
final class ChallengeBody: BodySink {
  private enum State {
    case passing
    case keeping(Data)
    /// The body is longer than the longest that is kept.
    case tooLong
  }

  /// The maximum number of bytes that are kept.
  static let limit = 1 << 20

  /// The sink for the body of the last response.
  let sink: any BodySink
  private weak let core: RequestCore?
  /// The kept bytes of the challenge, for the loop and attempts.
  private let state = Mutex(State.passing)

  init(_ sink: any BodySink, of core: RequestCore) {
    self.sink = sink
    self.core = core
  }

  func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    let isUndecided = core?.isUndecided(head) ?? false
    state.withLock { $0 = isUndecided ? .keeping(Data()) : .passing }
    return isUndecided ? nil : sink.begin(head, wake: wake)
  }

  func room() -> Int {
    state.withLock { if case .passing = $0 { true } else { false } } ? sink.room() : BodyPiece.size
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
    let passes = state.withLock { state in
      switch state {
      case .passing: return true
      case .tooLong: return false
      case .keeping(var data):
        state = .tooLong
        guard data.count + bytes.count <= Self.limit else { return false }
        data.append(contentsOf: bytes)
        state = .keeping(data)
        return false
      }
    }
    return passes ? sink.receive(bytes) : .more
  }

  func finish() -> TransportFailure? {
    state.withLock { if case .passing = $0 { true } else { false } } ? sink.finish() : nil
  }

  /// Takes the body of a challenge that was declined.
  func take() throws(TransportFailure) -> Data? {
    let taken = state.withLock { state in
      defer { state = .passing }
      return state
    }
    switch taken {
    case .passing: return nil
    case .keeping(let data): return data
    case .tooLong: throw .challengeTooLong
    }
  }
}

extension TransportFailure {
  static var challengeTooLong: TransportFailure {
    TransportFailure(
      .dataLengthExceedsMaximum,
      "The body of a challenge that a delegate declined is longer than \(ChallengeBody.limit) bytes, the most that is "
        + "kept until the decision.")
  }
}

extension RequestCore {
  /// Returns a sink that keeps the bodies of challenges as long as a delegate decides about them.
  func keepingChallenges(_ sink: (any BodySink)?) -> (any BodySink)? {
    guard let sink, mayDeclineChallenges else { return sink }
    return ChallengeBody(sink, of: self)
  }

  /// Returns the way in which a challenge in the response of the next hop is decided.
  func challengeDecision(in sink: (any BodySink)?) -> CurrentHop.ChallengeDecision {
    guard mayDeclineChallenges else { return .byDefault }
    let canKeep = sink is ChallengeBody || !kind.traits.contains(.passesBodyOn)
    return canKeep ? .byDelegate : .byDefault
  }

  /// Whether observers are notified of the challenge in the response of this hop. A delegate that was not interested
  /// when the hop began is not asked, because the body of the challenge was not kept for its decision.
  var asksAboutChallenge: Bool {
    guard observers.contains(.challenges) else { return false }
    return !session.hasOwnDelegate || state.withLock { $0.run.hop?.challenge } == .byDelegate
  }

  /// Whether the caller's delegate decides about challenges at present.
  private var mayDeclineChallenges: Bool { session.hasOwnDelegate && observers.contains(.challenges) }

  /// Makes the response of the hop the last one, as a delegate has decided.
  func declineChallenge() {
    state.withLock { $0.run.hop?.challenge = .declined }
  }
}
