import Foundation
import HTTPWire
import Synchronization

/// The sink of a data request with observers or chunk readers. It stores the body in memory and shows each chunk to the
/// observers. Once there is a chunk reader, it passes the chunks on instead of storing them. Written on the loop's
/// thread.
final class ObservedBody: BodySink {
  private struct State {
    var held = HeldBytes()
    var isShown = false
    /// Whether the body is stored although there are chunk readers, as long as it is small.
    var isHeld = false
    /// Continues the transfer. The chunk readers have it once bytes are passed on to them.
    var wake: (@Sendable () -> Void)?
    var isPassing = false
  }

  /// The maximum number of bytes that are held of a failure that a retrier may undo.
  private static let mostHeld = 1 << 20

  private weak let core: RequestCore?
  /// The stored bytes, and whether they were shown, for the loop and attempts.
  private let state = Mutex(State())

  init(of core: RequestCore) {
    self.core = core
  }

  func begin(_ head: ResponseHead, wake: @escaping @Sendable () -> Void) -> TransportFailure? {
    // The body of a redirect or a challenge is shown only if the attempt does not continue after it.
    let isShown = core?.isShown(head) ?? false
    // The body of a failure is held until it is known whether a retrier undoes the failure.
    let isHeld = !(200..<300).contains(head.status) && core?.mayBeRetried == true
    let isChallenge = core.map { $0.hasBodySink && $0.isUndecided(head) } ?? false
    let held = isChallenge ? HeldBytes(limit: HeldBytes.challengeLimit) : HeldBytes()
    state.withLock { $0 = State(held: held, isShown: isShown, isHeld: isHeld, wake: wake) }
    return isShown ? core?.chunks?.begin() : nil
  }

  func room() -> Int {
    guard state.withLock({ $0.isPassing }), let chunks = core?.chunks else { return BodyPiece.size }
    return chunks.flow.room()
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> BodyReception {
    guard !bytes.isEmpty else { return .more }
    let isShown = state.withLock { $0.isShown }
    var reception = BodyReception.more
    if isShown, let chunks = core?.chunks {
      reception = pass(bytes, to: chunks)
    } else {
      state.withLock { $0.held.append(bytes) }
    }
    if isShown, core?.observers.contains([.task, .chunks]) == true { core?.notify(.data(Data(bytes))) }
    return reception
  }

  private func pass(_ bytes: UnsafeRawBufferPointer, to chunks: ResponseChunks) -> BodyReception {
    let (kept, wake) = state.withLock { state in
      if state.isHeld, state.held.count + bytes.count <= Self.mostHeld {
        state.held.append(bytes)
        return (nil as Data?, nil as (@Sendable () -> Void)?)
      }
      defer {
        state.isHeld = false
        state.held = HeldBytes()
        state.wake = nil
        state.isPassing = true
      }
      return (state.held.data, state.wake)
    }
    guard let kept else { return .more }
    if let wake { chunks.flow.open(wake: wake) }
    // The bytes from before the first reader are delivered first.
    if !kept.isEmpty { _ = kept.withUnsafeBytes { chunks.receive($0) } }
    return chunks.receive(bytes)
  }

  func finish() -> TransportFailure? {
    state.withLock { $0.wake = nil }
    return core?.chunks?.flow.finish()
  }

  /// Returns the stored bytes of a challenge that was declined; `nil` without any.
  func keptChallenge() throws(TransportFailure) -> Data? {
    let data = try state.withLock { $0.held }.challenge()
    return data.isEmpty ? nil : data
  }

  /// Forgets the bytes of an earlier hop, such as the body of a challenge that was answered.
  func forget() { state.withLock { $0 = State() } }

  /// The stored bytes; `nil` without any.
  var data: Data? { state.withLock { $0.held.count == 0 ? nil : $0.held.data } }

  /// Takes the stored bytes, and whether observers have seen them.
  func take() -> (data: Data?, isShown: Bool) {
    state.withLock { state in
      defer { state = State() }
      return (state.held.count == 0 ? nil : state.held.data, state.isShown)
    }
  }
}

extension RequestCore {
  /// The sink for the body of a response that observers or chunk readers see as it arrives; `nil` without them.
  var observedBody: ObservedBody? {
    // A request that is created within the factory call runs before the caller can add observers.
    let isObserved = observers.contains(.bodies) || session.makesRequestsAtOnce
    return isObserved ? ObservedBody(of: self) : nil
  }

  /// Returns the stored body of a response, and shows it to observers that have not seen it yet.
  func shown(_ body: Data?, of request: WireRequest, isDelivered: Bool) -> Data? {
    let (data, isShown) = (request.sink as? ObservedBody)?.take() ?? (nil, false)
    let all = data ?? body
    if isDelivered, !isShown, !traits.contains(.passesBodyOn), let all, !all.isEmpty,
      observers.contains(.task)
    {
      notify(.data(all))
    }
    return all
  }
}

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
