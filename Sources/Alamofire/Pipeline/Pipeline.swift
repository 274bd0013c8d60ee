import Foundation
import HTTPWire

/// One request from its conversion to its handlers. The order of the whole library can be read in
/// ``run()`` and ``attempt()``; each stage is a file of its own.
struct Pipeline: Sendable {
  let core: RequestCore
  /// What code of users sees of the request.
  let request: Request
  /// Where the session keeps the request while it runs; ``nowhere`` when the session is gone. No optional: the frame of
  /// each stage holds it.
  let place: Int

  static let nowhere = -1

  /// Where a run begins: for most requests, nowhere but at the first; see ``Pipeline/runOnLoop()``.
  enum Stage {
    case beginning
    /// It has failed before there was anything to send.
    case failed(AFError)
    /// It has been made, and may have been sent: then the journey knows what came of it.
    case underway(Journey)
    /// The response for the user is there.
    case arrived(Exchange)
  }

  nonisolated(nonsending) func run(from stage: Stage = .beginning) async {
    var stage = stage
    while true {
      do {
        try await attempt(from: stage)
        if core.isWatched { tellCompleted(nil) }
      } catch {
        stage = .beginning
        if await mayTryAgain(after: error) { continue }
      }
      if core.download != nil { settleDownload() }
      if core.stream != nil || core.isMonitored { await settle() }
      if await finish() == .done { return }
      stage = .beginning
    }
  }

  @inline(never)
  nonisolated(nonsending) private func settle() async {
    // What handlers of a stream throw belongs to the outcome.
    if let stream = core.stream { await stream.settled() }
    if core.isMonitored { await core.changesAreTold() }
  }

  // Not inlined, as the one above: the frame is allocated only for requests that fail.
  @inline(never)
  nonisolated(nonsending) private func mayTryAgain(after failure: AFError) async -> Bool {
    if core.hasCookies { await core.cookiesKept() }
    // What failed within the call of the factory is dealt with elsewhere, once the request is resumed.
    if core.session.makesRequestsAtOnce { await core.untilResumed() }
    core.fail(failure)
    core.endedUnsent()
    if core.isWatched { tellCompleted(core.error) }
    switch await retryDecision(after: core.error ?? failure) {
    case .again: return true
    case .stop: break
    case .replace(let error): core.replaceError(error)
    }
    return false
  }

  nonisolated(nonsending) private func attempt(from stage: Stage) async throws(AFError) {
    let exchange: Exchange
    switch stage {
    case .beginning: exchange = try await exchanged()
    case .failed(let error): throw error
    case .underway(let journey): exchange = try await exchanged(journey)
    case .arrived(let arrived): exchange = arrived
    }
    if core.hasCookies { await core.cookiesKept() }
    if core.download != nil { try await storeDownload(exchange) }
    core.stream?.complete()
    try await validate(exchange)
  }

  nonisolated(nonsending) private func exchanged() async throws(AFError) -> Exchange {
    let urlRequest = try await adapted()
    if core.body != nil { try await prepareUpload() }
    if core.isMonitored { tellCreated(urlRequest) }
    var isWatched = core.isWatched
    // Observers may have been added while the request waited.
    if !isWatched { isWatched = await !core.untilResumedUnobserved() || core.isWatched }
    try checkAlive()
    guard !isWatched else { return try await watchedExchange(urlRequest) }
    return try await exchanged(Journey(urlRequest, for: core))
  }

  /// Serves handlers that came when there was nothing left to send.
  nonisolated(nonsending) func finishOnly() async {
    if core.error != nil { core.endedUnsent() }
    if core.isMonitored { await core.changesAreTold() }
    // A run ends with its own finish; another one here would end the request a second time.
    if await finish() == .attemptAgain { await run() }
  }

  /// A request that was cancelled, or whose session is gone, goes no further.
  func checkAlive() throws(AFError) {
    if let error = core.error { throw error }
    if Task.isCancelled { throw .explicitlyCancelled }
  }
}
