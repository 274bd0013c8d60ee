import Foundation
import HTTPWire
import Synchronization

/// A plain request waits for nothing but its transfer, and goes through its stages without a task: twice on the
/// engine's thread, before the transfer and after it. The stages are those of ``Pipeline/run(from:)``, and as soon as
/// there is anything to wait for, or to decide, a task takes over where the request stands.
extension Pipeline: LoopWork {
  func runOnLoop() {
    guard core.isPlain, core.maySend else { return goOn(from: .beginning) }
    do throws(AFError) {
      let urlRequest = try converted()
      core.created(urlRequest, of: request)
      let journey = try Journey(urlRequest, for: core)
      if !sends(journey) { goOn(from: .underway(journey)) }
    } catch {
      goOn(from: .failed(error))
    }
  }

  /// Stages 2 and 3. Returns false when there is something to wait for before the transfer; then nothing is sent.
  private func sends(_ journey: Journey) -> Bool {
    guard !journey.mustChooseHandler, !journey.mayKnowCredentials, journey.needsNoTask,
      journey.cachePolicy() == nil
    else { return false }
    if let store = core.session.cookies, !journey.tookCookies(from: store) { return false }
    journey.begins()
    journey.traveller = self
    if journey.transport.send(journey.sent, observer: core, completion: journey) { return true }
    journey.traveller = nil
    return false
  }

  /// The transfer is over.
  fileprivate func received(_ outcome: Result<WireResponse, TransportFailure>, _ journey: Journey) {
    guard case .success(let response) = outcome, !core.isWatched, !journey.concernsCache(response),
      !journey.mayLeadOn(response.head)
    else {
      journey.outcome = outcome
      return goOn(from: .underway(journey))
    }
    journey.passed(response.metrics, response.head)
    conclude(journey.arrived(response))
  }

  /// Stages 5 and 6.
  private func conclude(_ exchange: Exchange) {
    guard !core.isWatched, !core.hasCookies, !core.isDispositionWanted, core.error == nil else {
      return goOn(from: .arrived(exchange))
    }
    do throws(AFError) {
      guard try validatedAtOnce(exchange) else { return goOn(from: .arrived(exchange)) }
    } catch {
      return goOn(from: .failed(error))
    }
    guard let sink = nextDemandingSink() else { return }
    goOn { pipeline in
      if await pipeline.finish(from: sink) == .attemptAgain { await pipeline.run() }
    }
  }

  private func goOn(from stage: Stage) {
    // Handed over, with the journey in it: nobody here looks at it again, nor does the transport, which has answered or has
    // not taken it.
    nonisolated(unsafe) let stage = stage
    goOn { await $0.run(from: stage) }
  }

  /// A task takes over. Detached: whose task is at hand here is chance.
  private func goOn(by body: @escaping @Sendable (Pipeline) async -> Void) {
    let priority = TaskPriority(rawValue: core.priority.load(ordering: .relaxed))
    core.run {
      Task.detached(executorPreference: core.session.executor, priority: priority) { await body(self) }
    }
  }
}

extension Journey: TransferCompletion {
  func transferEnded(_ outcome: Result<WireResponse, TransportFailure>) {
    guard let traveller else { preconditionFailure("a journey without a traveller was answered") }
    self.traveller = nil
    traveller.received(outcome, self)
  }
}
