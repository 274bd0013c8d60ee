import Foundation
import HTTPWire
import Synchronization

/// The bytes of a body that are held until a decision, up to a limit.
struct HeldBytes: Sendable {
  /// The maximum number of bytes that are held of a challenge.
  static let challengeLimit = 1 << 20

  private let limit: Int
  private(set) var data = Data()
  private var isTooLong = false

  init(limit: Int = .max) { self.limit = limit }

  var count: Int { data.count }

  /// Adds bytes. Once the bytes exceed the limit, none of them are stored.
  mutating func append(_ bytes: UnsafeRawBufferPointer) {
    isTooLong = isTooLong || bytes.count > limit - data.count
    if isTooLong { data = Data() } else { data.append(contentsOf: bytes) }
  }

  /// Returns the body of a challenge that was declined.
  func challenge() throws(TransportFailure) -> Data {
    if isTooLong { throw .challengeTooLong }
    return data
  }
}

/// The sink of a download or a stream whose delegate decides about challenges. It holds the body of a challenge until
/// the decision, because only the last response is downloaded or streamed. Other bodies pass.
final class ChallengeBody: BodySink {
  /// The sink for the body of the last response.
  let sink: any BodySink
  private weak let core: RequestCore?
  /// The bytes of the challenge, for the loop and attempts; `nil` if a body passes.
  private let held = Mutex<HeldBytes?>(nil)

  init(_ sink: any BodySink, of core: RequestCore) {
    self.sink = sink
    self.core = core
  }

  private var passes: Bool { held.withLock { $0 == nil } }

  func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    let isUndecided = core?.isUndecided(head) ?? false
    held.withLock { $0 = isUndecided ? HeldBytes(limit: HeldBytes.challengeLimit) : nil }
    return isUndecided ? nil : sink.begin(head, wake: wake)
  }

  func room() -> Int { passes ? sink.room() : BodyPiece.size }

  func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
    let isHeld = held.withLock { $0?.append(bytes) != nil }
    return isHeld ? .more : sink.receive(bytes)
  }

  func finish() -> TransportFailure? { passes ? sink.finish() : nil }

  /// Takes the body of a challenge that was declined.
  func take() throws(TransportFailure) -> Data? { try held.withLock { $0.take() }?.challenge() }
}

extension TransportFailure {
  static var challengeTooLong: TransportFailure {
    TransportFailure(
      .dataLengthExceedsMaximum,
      "The body of a challenge that a delegate declined is longer than \(HeldBytes.challengeLimit) bytes, the most that is "
        + "kept until the decision.")
  }
}

extension RequestCore {
  /// Returns a sink that holds the bodies of challenges until a delegate has decided about them.
  func keepingChallenges(_ sink: (any BodySink)?) -> (any BodySink)? {
    guard let sink, mayDeclineChallenges else { return sink }
    return ChallengeBody(sink, of: self)
  }

  /// Returns the way in which a challenge in the response of the next hop is decided.
  func challengeDecision(in sink: (any BodySink)?) -> CurrentHop.ChallengeDecision {
    guard mayDeclineChallenges else { return .byDefault }
    let canKeep = sink is ChallengeBody || !traits.contains(.passesBodyOn)
    return canKeep ? .byDelegate : .byDefault
  }

  /// Whether observers are notified of the challenge in the response of this hop. A delegate that was not interested
  /// when the hop began is not asked, because the body of the challenge was not stored for its decision.
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
