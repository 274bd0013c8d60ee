import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// Recovery from a failed transfer: the obstacle is removed, if it can be, and the hop is sent again.
extension AttemptDriver {
  /// Keeps the failure of a transfer, and classifies it by its remedy.
  @inline(never)
  func failed(_ failure: TransportFailure) -> AttemptEvent {
    values.transferFailure = failure
    return .transferFailed(facts(about: failure))
  }

  private func facts(about failure: TransportFailure) -> TransferFailureFacts {
    if failure.kind == .cannotContinue, values.request.fields.contains(where: Self.isRangeField) {
      return .rangeMismatch
    }
    if failure.chain != nil { return .trust }
    if failure.kind == .identityUndecided { return .identity }
    return core.session.waitsForConnectivity && isOffline(failure) ? .offline : .other
  }

  private var failure: TransportFailure {
    guard let failure = values.transferFailure else {
      preconditionFailure("recovery without the failure of a transfer")
    }
    return failure
  }

  private static func isRangeField(_ field: HTTPHeader) -> Bool {
    FieldName.equal(field.name, "Range") || FieldName.equal(field.name, "If-Range")
  }

  /// Removes the range from the request, because the response does not fit the part of the download that is there.
  @inline(never)
  func askForWholeBody() -> AttemptEvent {
    if let metrics = failure.metrics { recordHop(metrics, nil) }
    values.request = values.request.changing { $0.fields.removeAll(where: Self.isRangeField) }
    return .done
  }

  // MARK: Failures without a remedy

  /// Keeps the metrics and the part of the response that arrived before the transfer failed. Throws the error for the
  /// caller.
  @inline(never)
  func recordTransferFailure() throws(AFError) -> AttemptEvent {
    let failure = failure
    recordHop(
      failure.metrics ?? Self.metricsOfLostHop, failure.partial?.head,
      from: failure.metrics == nil ? .unknown : .networkLoad)
    let request = values.request
    // The caller never sees a redirect that would have been followed, nor a challenge that would have been answered.
    let partial = failure.partial.flatMap { core.isShown($0.head) ? $0 : nil }
    let body = partial.flatMap { core.shown($0.body, of: request, isKept: true) }
    // No part of a body that exceeds the limit is kept.
    let deliversBody = core.chunks == nil && failure.kind != .dataLengthExceedsMaximum
    core.keep(exchange(partial?.head), body: deliversBody ? body : nil)
    if let error = values.handler.given?.error { throw .sessionTaskFailed(error: error) }
    if let cause = failure.cause { throw AFError(refusal: cause) }
    let explained =
      values.handler.isOverNetwork
      ? failure.explained(host: request.origin.host, by: core.session.network) : failure
    throw AFError(
      explained, url: request.url, method: request.method, resumeData: resumeData(after: failure))
  }

  /// Returns the resume data for the error of a download. If the download was cancelled,
  /// `cancel(byProducingResumeData:)` returns the data.
  private func resumeData(after failure: TransportFailure) -> Data? {
    // The file of a background transfer stays with its journal until the request ends.
    guard failure.kind != .cancelled, core.transfer == nil, let plan = core.download else { return nil }
    return plan.resumeData(of: core.state.withLock { $0.results.request })
  }

  /// The metrics of a hop that failed before anything was measured.
  private static var metricsOfLostHop: TransferMetrics {
    var values = TransferMetrics.Values()
    values.start = Date().timeIntervalSince1970
    return TransferMetrics(values: values)
  }

  // MARK: Certificates

  /// Evaluates the certificates of a server outside the handshake: the delegate is asked first, then the evaluators.
  @inline(never)
  nonisolated(nonsending) func evaluateTrust() async throws(AFError) -> AttemptEvent {
    let session = core.session
    guard let chain = failure.chain, let evaluator = session.trust else { return .done }
    let profile = values.request.profile
    let trust = ServerTrust(chain, options: profile.options, systemProxies: profile.systemProxies)
    var verdict: TrustMemory.Verdict? = nil
    if core.observers.contains(.trust), let task = core.tasks(of: request).last {
      let answer = await answer(to: .challenge(trust, chain), task)
      try checkDeadline()
      switch answer {
      case .accept: verdict = .accepted
      case .usual, .identity: break
      case .cancel: throw .sessionTaskFailed(error: URLError(.cancelled))
      case .refuse:
        throw .sessionTaskFailed(
          error: URLError.made(
            .serverCertificateUntrusted, "The delegate rejected the certificates of \(chain.host).",
            url: values.request.url))
      }
    }
    try checkAlive()
    if verdict == nil {
      let deadline = values.request.deadline
      let outcome = await session.offLoop { await evaluator.evaluated(trust, forHost: chain.host, deadline) }
      try checkAlive()
      try checkDeadline()
      do { verdict = try outcome.get() } catch { throw AFError(refusal: error) }
    }
    evaluator.remember(verdict ?? .usual, on: chain, in: profile.partition)
    return .done
  }

  /// Lets the delegate choose a client certificate.
  @inline(never)
  nonisolated(nonsending) func chooseIdentity() async throws(AFError) -> AttemptEvent {
    let origin = values.request.origin
    guard let evaluator = core.session.trust, let task = core.tasks(of: request).last else { return .done }
    let answer = await answer(to: .challengeForIdentity(of: origin), task)
    try checkAlive()
    try checkDeadline()
    switch answer {
    case .identity(let identity):
      let profile = core.profile(presenting: identity, inPlaceOf: values.request.profile)
      values.request = values.request.changing { $0.profile = profile }
    case .cancel: throw .sessionTaskFailed(error: URLError(.cancelled))
    case .accept, .usual, .refuse: evaluator.remainAnonymous(toHost: origin.host, port: origin.port)
    }
    return .done
  }

  nonisolated(nonsending) private func answer(
    to challenge: URLAuthenticationChallenge, _ task: URLSessionTask
  ) async -> TrustAnswer {
    await delegateAnswer(to: challenge, task, whenForgotten: .usual, whenCancelled: .cancel) {
      TrustAnswer($0, $1)
    }
  }

  // MARK: Connectivity

  private func isOffline(_ failure: TransportFailure) -> Bool {
    let explained = failure.explained(host: values.request.origin.host, by: core.session.network)
    return values.handler.isOverNetwork && explained.kind == .notConnected
  }

  /// Waits for a network until the deadline of the request.
  @inline(never)
  nonisolated(nonsending) func waitForConnectivity() async throws(AFError) -> AttemptEvent {
    let host = values.request.origin.host
    let network = core.session.network
    if let metrics = failure.metrics { recordHop(metrics, nil) }
    if !values.hasWaitedForConnectivity, core.observers.contains(.task) {
      await callDelegate { delegate, session, task in
        delegate.urlSession(session, taskIsWaitingForConnectivity: task)
      }
    }
    values.hasWaitedForConnectivity = true
    let wait = values.request.deadline.map { ContinuousClock.now.duration(to: $0) }
    let monitor = NetworkPathMonitor(
      until: { $0.isConnected(to: host, by: network) }, source: network,
      maximumWait: DispatchTimeInterval(wait))
    let result = await SingleCompletion.answer(whenForgotten: PathResult.timeout, whenCancelled: .timeout) {
      completion in monitor.start { completion($0) }
    }
    monitor.stop()
    try checkAlive()
    guard result == .pathAvailable else {
      throw .sessionTaskFailed(
        error: URLError.made(
          .timedOut, "There was no network until timeoutIntervalForResource was over.",
          url: values.request.url, phase: .total))
    }
    return .done
  }
}

extension DispatchTimeInterval {
  /// Makes an interval for a duration; `.never` without one.
  fileprivate init(_ duration: Duration?) {
    guard let duration else {
      self = .never
      return
    }
    self = .milliseconds(Int(duration.wholeMilliseconds))
  }
}
