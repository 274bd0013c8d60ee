import Foundation
import HTTPWire
import Synchronization

/// Tells whoever observes what a transfer would have told, of an answer that is there already.
struct StoredTransport: Transport {
  let answer: StoredAnswer

  nonisolated(nonsending) func send(
    _ request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse {
    var times = TransferMetrics.Values()
    times.start = Date().timeIntervalSince1970
    let begin = ContinuousClock.now
    let valve = LocalValve()
    defer { observer.transferEnded() }
    switch observer.transferBegan(valve) {
    case .go: break
    case .hold: valve.close()
    case .refuse: valve.cancel()
    }
    try await valve.pass()
    times.responseStart = Self.microseconds(since: begin)
    let openings = valve.openings
    if observer.headReceived(answer.head) == .hold { valve.close(unlessOpenedSince: openings) }
    try await valve.pass()
    if !answer.body.isEmpty {
      var count = ByteCount()
      count.received = Int64(answer.body.count)
      count.expectedToReceive = count.received
      observer.bytesMoved(count)
      // Whoever counts bytes may suspend or cancel by what he counted.
      try await valve.pass()
    }
    times.end = Self.microseconds(since: begin)
    return WireResponse(
      head: answer.head, body: answer.body.isEmpty ? nil : answer.body,
      metrics: TransferMetrics(values: times, version: answer.head.version))
  }

  private static func microseconds(since begin: ContinuousClock.Instant) -> Int64 {
    let passed = (ContinuousClock.now - begin).components
    return passed.seconds * 1_000_000 + passed.attoseconds / 1_000_000_000_000
  }
}

/// Stands between a request and what is stored for it: the cookies of an answer that is not new stay where they are.
final class StoredAnswerObserver: TransferObserver {
  private let core: RequestCore

  init(_ core: RequestCore) { self.core = core }

  var cancelsByValve: Bool { core.cancelsByValve }

  func transferBegan(_ valve: any Valve) -> TransferStart { core.transferBegan(valve) }
  func headReceived(_ head: ResponseHead) -> HeadDisposition { core.headShown(head) }
  func bytesMoved(_ count: ByteCount) { core.bytesMoved(count) }
  func transferEnded() { core.transferEnded() }
}

/// Stands between a request and the validation of what is stored for it: an answer that only the cache needs is not
/// told to anybody.
final class ValidationObserver: TransferObserver {
  private let core: RequestCore
  private let isForCache: @Sendable (ResponseHead) -> Bool
  private let hasShown = Atomic<Bool>(false)

  init(_ core: RequestCore, isForCache: @escaping @Sendable (ResponseHead) -> Bool) {
    self.core = core
    self.isForCache = isForCache
  }

  var cancelsByValve: Bool { core.cancelsByValve }
  /// Whether a head was passed on, as that of the answer.
  var hasShownHead: Bool { hasShown.load(ordering: .acquiring) }

  func transferBegan(_ valve: any Valve) -> TransferStart { core.transferBegan(valve) }

  func headReceived(_ head: ResponseHead) -> HeadDisposition {
    guard isForCache(head) else {
      // Whether or not anybody looks: who adds a monitor must not change what comes.
      hasShown.store(true, ordering: .releasing)
      return core.headReceived(head)
    }
    if let store = core.session.cookies { core.keepCookies(of: head, in: store) }
    core.state.withLock { $0.extras.progress.isIntermediate = true }
    return .proceed
  }

  func bytesMoved(_ count: ByteCount) { core.bytesMoved(count) }

  func transferEnded() { core.transferEnded() }
}

/// Nobody is interested but the cookies: a validation after the answer.
final class SilentObserver: TransferObserver {
  private let takeCookies: @Sendable (ResponseHead) -> Void

  init(_ takeCookies: @escaping @Sendable (ResponseHead) -> Void) { self.takeCookies = takeCookies }

  func transferBegan(_ valve: any Valve) -> TransferStart { .go }

  func headReceived(_ head: ResponseHead) -> HeadDisposition {
    takeCookies(head)
    return .proceed
  }

  func bytesMoved(_ count: ByteCount) {}
  func transferEnded() {}
}
