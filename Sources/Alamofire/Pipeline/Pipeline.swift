import Foundation
import HTTPWire

/// One request from its conversion to its handlers. The order of the whole library can be read in
/// ``run()`` and ``attempt()``; each stage is a file of its own.
struct Pipeline: Sendable {
  let core: RequestCore
  /// What code of users sees of the request.
  let request: Request
  /// Where the session keeps the request while it runs; `nil` when the session is gone.
  let place: Int?

  nonisolated(nonsending) func run() async {
    while true {
      do {
        try await attempt()
        if core.isWatched { tellCompleted(nil) }
      } catch {
        if core.hasCookies { await core.cookiesKept() }
        core.fail(error)
        if core.isWatched { tellCompleted(core.error) }
        switch await retryDecision(after: core.error ?? error) {
        case .again:
          core.download?.forget()
          continue
        case .stop: break
        case .replace(let error): core.replaceError(error)
        }
      }
      if core.download != nil { settleDownload() }
      // What handlers of a stream throw belongs to the outcome.
      if let stream = core.stream { await stream.settled() }
      if core.isMonitored { await tellFinished() }
      if await finish() == .done { return }
    }
  }

  nonisolated(nonsending) private func attempt() async throws(AFError) {
    let urlRequest = try await adapted()
    if core.body != nil { try await prepareUpload() }
    if core.isMonitored { tellCreated(urlRequest) }
    await core.untilResumed()
    try checkAlive()
    let exchange = core.isWatched ? try await watchedExchange(urlRequest) : try await exchanged(urlRequest)
    if core.hasCookies { await core.cookiesKept() }
    if core.download != nil { try await storeDownload(exchange) }
    core.stream?.complete()
    try await validate(exchange)
  }

  /// Serves handlers that came when there was nothing left to send.
  nonisolated(nonsending) func finishOnly() async {
    if core.isMonitored { await tellFinished() }
    // A run ends with its own finish; another one here would end the request a second time.
    if await finish() == .attemptAgain { await run() }
  }

  /// A request that was cancelled, or whose session is gone, goes no further.
  func checkAlive() throws(AFError) {
    if let error = core.error { throw error }
    if Task.isCancelled { throw .explicitlyCancelled }
  }
}
