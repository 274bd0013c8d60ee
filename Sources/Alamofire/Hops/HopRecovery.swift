import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// Recovery from a failed transfer: the obstacle is removed, if it can be, and the hop is sent again.
extension RequestRun {
  /// Keeps the failure of a transfer, and classifies it by its remedy.
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
  func askForWholeBody() -> Outcome {
    if let metrics = failure.metrics { recordHop(metrics, nil) }
    values.request = values.request.changing { $0.fields.removeAll(where: Self.isRangeField) }
    return .done
  }

  // MARK: Failures without a remedy

  /// Keeps the metrics and the part of the response that arrived before the transfer failed. Throws the error for the
  /// caller.
  func recordTransferFailure() throws(AFError) -> Outcome {
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
  func evaluateTrust() throws(AFError) -> Outcome {
    guard let chain = failure.chain, let evaluator = core.session.trust else { return .done }
    let profile = values.request.profile
    let trust = ServerTrust(chain, options: profile.options, systemProxies: profile.systemProxies)
    guard core.observers.contains(.trust), let task = core.tasks(of: request).last else {
      return try evaluate(trust, of: chain, by: evaluator)
    }
    return askDelegate(about: .challenge(trust, chain), task) { (run, answer) throws(AFError) in
      try run.checkDeadline()
      switch answer {
      case .accept:
        try run.core.checkAlive()
        return run.remember(.accepted, about: chain, evaluator)
      case .usual, .identity: return try run.evaluate(trust, of: chain, by: evaluator)
      case .cancel: throw .sessionTaskFailed(error: URLError(.cancelled))
      case .refuse:
        throw .sessionTaskFailed(
          error: URLError.made(
            .serverCertificateUntrusted, "The delegate rejected the certificates of \(chain.host).",
            url: run.values.request.url))
      }
    }
  }

  private func evaluate(
    _ trust: ServerTrust, of chain: PresentedChain, by evaluator: TrustService
  ) throws(AFError) -> Outcome {
    try core.checkAlive()
    return .task { [deadline = values.request.deadline] in
      await evaluator.evaluated(trust, forHost: chain.host, deadline)
    } then: { (run, result) throws(AFError) in
      try run.core.checkAlive()
      try run.checkDeadline()
      do { return run.remember(try result.get(), about: chain, evaluator) } catch {
        throw AFError(refusal: error)
      }
    }
  }

  private func remember(
    _ verdict: TrustMemory.Verdict, about chain: PresentedChain, _ evaluator: TrustService
  ) -> Outcome {
    evaluator.remember(verdict, on: chain, in: values.request.profile.partition)
    return .done
  }

  /// Lets the delegate choose a client certificate.
  func chooseIdentity() -> Outcome {
    let origin = values.request.origin
    guard let evaluator = core.session.trust, let task = core.tasks(of: request).last else { return .done }
    return askDelegate(about: .challengeForIdentity(of: origin), task) { (run, answer) throws(AFError) in
      try run.core.checkAlive()
      try run.checkDeadline()
      switch answer {
      case .identity(let identity):
        let profile = run.core.profile(presenting: identity, inPlaceOf: run.values.request.profile)
        run.values.request = run.values.request.changing { $0.profile = profile }
      case .cancel: throw .sessionTaskFailed(error: URLError(.cancelled))
      case .accept, .usual, .refuse: evaluator.remainAnonymous(toHost: origin.host, port: origin.port)
      }
      return .done
    }
  }

  private func askDelegate(
    about challenge: URLAuthenticationChallenge, _ task: URLSessionTask,
    then: @escaping @Sendable (RequestRun, TrustAnswer) throws(AFError) -> Outcome
  ) -> Outcome {
    .task { [core, deadline = values.request.deadline] in
      await core.delegateAnswer(
        to: challenge, task, whenForgotten: .usual, whenCancelled: .cancel, deadline: deadline
      ) { TrustAnswer($0, $1) }
    } then: { (run, answer) throws(AFError) in
      try then(run, answer)
    }
  }

  // MARK: Connectivity

  private func isOffline(_ failure: TransportFailure) -> Bool {
    let explained = failure.explained(host: values.request.origin.host, by: core.session.network)
    return values.handler.isOverNetwork && explained.kind == .notConnected
  }

  /// Waits for a network until the deadline of the request.
  func waitForConnectivity() -> Outcome {
    if let metrics = failure.metrics { recordHop(metrics, nil) }
    let isFirst = !values.hasWaitedForConnectivity
    values.hasWaitedForConnectivity = true
    let (host, deadline) = (values.request.origin.host, values.request.deadline)
    return .task { [core, request] in
      if isFirst, core.observers.contains(.task) {
        await core.callDelegate(for: request) { delegate, session, task in
          delegate.urlSession(session, taskIsWaitingForConnectivity: task)
        }
      }
      return await NetworkPathMonitor.path(to: host, in: core.session.network, before: deadline)
    } then: { (run, result) throws(AFError) in
      try run.core.checkAlive()
      guard result == .pathAvailable else {
        throw .sessionTaskFailed(
          error: URLError.made(
            .timedOut, "There was no network until timeoutIntervalForResource was over.",
            url: run.values.request.url, phase: .total))
      }
      return .done
    }
  }
}
