import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire

// Recovery from a failed transfer: the obstacle is removed, if it can be, and the hop is sent again.
extension HopLoop {
  /// Keeps the failure of a transfer, and classifies it by its remedy.
  mutating func failed(_ failure: TransportFailure) -> StageEvent {
    responses.failure = failure
    return .transferFailed(facts(about: failure))
  }

  private func facts(about failure: TransportFailure) -> TransferFailureFacts {
    if failure.kind == .cannotContinue, request.fields.contains(where: Self.isRangeField) {
      return .rangeMismatch
    }
    if failure.chain != nil { return .trust }
    if failure.kind == .identityUndecided { return .identity }
    return services.waitsForConnectivity && isOffline(failure) ? .offline : .other
  }

  private var failure: TransportFailure {
    guard let failure = responses.failure else {
      preconditionFailure("recovery without the failure of a transfer")
    }
    return failure
  }

  private static func isRangeField(_ field: HTTPHeader) -> Bool {
    FieldName.equal(field.name, "Range") || FieldName.equal(field.name, "If-Range")
  }

  /// Removes the range from the request, because the response does not fit the part of the download that is there.
  mutating func askForWholeBody() throws(AFError) -> Outcome<HopLoop> {
    if let metrics = failure.metrics { recordHop(metrics, nil) }
    request = request.changing { $0.fields.removeAll(where: Self.isRangeField) }
    return try renewAuthorization { _ in .done }
  }

  // MARK: Failures without a remedy

  /// Ends the hop with the failure of its transfer. A head that arrived may invalidate stored responses before that.
  mutating func recordTransferFailure() throws(AFError) -> Outcome<HopLoop> {
    guard let head = failure.partial?.head, let invalidation = invalidation(by: head) else {
      throw recordFailure()
    }
    return .task {
      invalidation()
    } then: { (hops, _) throws(AFError) in
      throw hops.recordFailure()
    }
  }

  /// Keeps the metrics and the part of the response that arrived before the transfer failed. Returns the error for the
  /// caller.
  private mutating func recordFailure() -> AFError {
    let failure = failure
    recordHop(
      failure.metrics ?? Self.metricsOfLostHop, failure.partial?.head,
      from: failure.metrics == nil ? .unknown : .networkLoad)
    let request = request
    // The caller never sees a redirect that would have been followed, nor a challenge that would have been answered.
    let partial = failure.partial.flatMap { delegate.isShown($0.head) ? $0 : nil }
    let body = partial.flatMap { delegate.shown($0.body, of: request, isDelivered: true) }
    // No part of a body that exceeds the limit is retained.
    let deliversBody = !delegate.hasChunkReaders && failure.kind != .dataLengthExceedsMaximum
    delegate.store(makeExchange(partial?.head), body: deliversBody ? body : nil)
    if let error = route.handler.given?.error { return error.asAFError(or: .sessionTaskFailed(error: error)) }
    if let cause = failure.cause {
      let refusal = AFError(refusal: cause)
      // Within the handshake, the evaluator had no task to report to monitors.
      if failure.kind == .trustRefused { delegate.serverRefused(refusal) }
      return refusal
    }
    let explained =
      route.handler.isOverNetwork
      ? failure.explained(host: request.origin.host, by: services.network) : failure
    return AFError(
      explained, url: request.url, method: request.method,
      resumeData: delegate.resumeData(after: failure))
  }

  /// The metrics of a hop that failed before anything was measured.
  private static var metricsOfLostHop: TransferMetrics {
    var values = TransferMetrics.Values()
    values.start = Date().timeIntervalSince1970
    return TransferMetrics(values: values)
  }

  // MARK: Certificates

  /// Evaluates the certificates of a server outside the handshake: the delegate is asked first, then the evaluators.
  func evaluateTrust() throws(AFError) -> Outcome<HopLoop> {
    guard let chain = failure.chain, let evaluator = services.trust else { return .done }
    let profile = request.profile
    let trust = ServerTrust(chain, options: profile.options, systemProxies: profile.systemProxies)
    guard delegate.observers.contains(.trust), let question = question(about: .challenge(trust, chain)) else {
      return try evaluate(trust, of: chain, by: evaluator)
    }
    return .task(question) { (hops, answer) throws(AFError) in
      try hops.checkDeadline()
      switch answer {
      case .accept:
        try hops.delegate.checkAlive()
        return hops.remember(.acceptedByDelegate, about: chain, evaluator)
      case .usual, .identity: return try hops.evaluate(trust, of: chain, by: evaluator)
      case .cancel: throw .sessionTaskFailed(error: URLError(.cancelled))
      case .refuse:
        throw .sessionTaskFailed(
          error: URLError(
            .serverCertificateUntrusted, "The delegate rejected the certificates of \(chain.host).",
            url: hops.request.url))
      }
    }
  }

  private func evaluate(
    _ trust: ServerTrust, of chain: PresentedChain, by evaluator: TrustService
  ) throws(AFError) -> Outcome<HopLoop> {
    try delegate.checkAlive()
    return .task { [deadline = request.deadline] in
      await evaluator.evaluated(trust, forHost: chain.host, deadline)
    } then: { (hops, result) throws(AFError) in
      try hops.delegate.checkAlive()
      try hops.checkDeadline(asked: "An evaluator")
      do { return hops.remember(try result.get(), about: chain, evaluator) } catch {
        let refusal = AFError(refusal: error)
        hops.delegate.serverRefused(refusal)
        throw refusal
      }
    }
  }

  private func remember(
    _ verdict: TrustMemory.Verdict, about chain: PresentedChain, _ evaluator: TrustService
  ) -> Outcome<HopLoop> {
    evaluator.remember(verdict, on: chain, in: chain.partition)
    return .done
  }

  /// Lets the delegate choose a client certificate.
  func chooseIdentity() -> Outcome<HopLoop> {
    let origin = request.origin
    guard let evaluator = services.trust,
      let question = question(about: .challengeForIdentity(of: origin))
    else { return .done }
    return .task(question) { (hops, answer) throws(AFError) in
      try hops.delegate.checkAlive()
      try hops.checkDeadline()
      switch answer {
      case .identity(let identity):
        let profile = hops.delegate.profile(presenting: identity, inPlaceOf: hops.request.profile)
        hops.request = hops.request.changing { $0.profile = profile }
      case .cancel: throw .sessionTaskFailed(error: URLError(.cancelled))
      case .accept, .usual, .refuse: evaluator.remainAnonymous(toHost: origin.host, port: origin.port)
      }
      return .done
    }
  }

  private func question(about challenge: URLAuthenticationChallenge) -> (@Sendable () async -> TrustAnswer)? {
    delegate.question(
      about: challenge, whenForgotten: .usual, whenCancelled: .cancel, deadline: request.deadline
    ) { TrustAnswer($0, $1) }
  }

  // MARK: Connectivity

  private func isOffline(_ failure: TransportFailure) -> Bool {
    let explained = failure.explained(host: request.origin.host, by: services.network)
    return route.handler.isOverNetwork && explained.kind == .notConnected
  }

  /// Waits for a network until the deadline of the request.
  mutating func waitForConnectivity() -> Outcome<HopLoop> {
    if let metrics = failure.metrics { recordHop(metrics, nil) }
    let isFirst = route.beginWaiting()
    // The way to the host may begin with a proxy.
    let host = failure.unreachedHost(of: request.origin.host) ?? request.origin.host
    let isProxy = failure.isAboutProxy
    let deadline = request.deadline
    return .task { [delegate, network = services.network] in
      if isFirst, delegate.observers.contains(.task) { await delegate.connectivityAwaited() }
      return await NetworkPathMonitor.path(to: host, isProxy: isProxy, in: network, before: deadline)
    } then: { (hops, result) throws(AFError) in
      try hops.delegate.checkAlive()
      guard result == .pathAvailable else {
        let setting = hops.request.profile.options.timeLimits.totalSetting
        throw .sessionTaskFailed(
          error: URLError(
            .timedOut, "There was no network until \(setting) was over.",
            url: hops.request.url, phase: .total))
      }
      return .done
    }
  }
}
