import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// An attempt: from the conversion of the request to a validated response, or to a failure. A retry is another attempt.
struct Attempt: Sendable {
  var order: AttemptOrder
  let core: RequestCore
  /// The request as the caller's code sees it.
  let request: any RunOwner

  /// The caller's request, converted and adapted.
  @inline(__always) var urlRequest: URLRequest {
    get {
      guard let converted else { preconditionFailure("a step needs the request before its conversion") }
      return converted
    }
    set { converted = newValue }
  }
  private var converted: URLRequest?
  /// The result of the hops.
  var hops = HopResult()
  /// The reason why the file of a download could not be moved. The task has ended well nevertheless.
  var moveFailure: AFError?
  /// The first failure.
  var error: AFError?

  init(_ request: any RunOwner, _ core: RequestCore) {
    self.request = request
    self.core = core
    let traits = core.traits
    order = AttemptOrder(
      hasBody: traits.contains(.hasBody), isScheduled: traits.contains(.isScheduled),
      hasFile: traits.contains(.hasFile))
  }

  mutating func fail(with error: AFError) {
    self.error = error.naming(method: hops.method ?? converted?.httpMethod)
  }

  mutating func perform(_ step: AttemptOrder.AttemptStep) throws(AFError) -> Outcome<Attempt> {
    switch step {
    case .convert: try convert()
    case .adapt: adapt()
    case .prepareBody: try core.kind.prepareBody(for: self)
    case .waitForResume: try waitForResume()
    case .announceTask: announceTask()
    case .schedule: core.kind.schedule(self)
    case .hops: .inner
    case .waitForCookies: waitForCookies()
    case .moveFile: core.kind.moveFile(of: self)
    case .announceTaskEnd: announceTaskEnd()
    case .acceptResult: try core.kind.acceptResult(of: self)
    case .validate: try validate()
    }
  }

  // MARK: The request

  /// Makes a `URLRequest` from the caller's description, and validates it.
  private mutating func convert() throws(AFError) -> Outcome<Attempt> {
    guard core.convertsByUserCode || core.traits.contains(.convertsInTask) else {
      urlRequest = try core.converted(for: request)
      return .done
    }
    return .task { [core, request] () throws(AFError) in
      try core.converted(for: request)
    } then: { attempt, converted in
      attempt.urlRequest = converted
      return .done
    }
  }

  /// Lets the adapters change the request, and validates it again.
  private func adapt() -> Outcome<Attempt> {
    let initial = urlRequest
    // A monitor is notified of an adaptation that changes nothing, too.
    guard core.has(.adapters) || core.isIntercepted && core.notifiesMonitors else {
      core.created(initial, of: request)
      if core.notifiesMonitors { request.notify(.initialRequest(initial)) }
      return .done
    }
    if core.notifiesMonitors { request.notify(.initialRequest(initial)) }
    return .task { [core, request] () throws(AFError) in
      try await core.adapted(initial, for: request)
    } then: { attempt, adapted in
      attempt.urlRequest = adapted
      return .done
    }
  }

  private func waitForResume() throws(AFError) -> Outcome<Attempt> {
    guard core.observers.contains(.task) || !core.maySend else { return .done }
    if core.notifiesMonitors { request.notify(.created(urlRequest)) }
    guard !core.observers.contains(.task), core.mayWaitUnobserved() else {
      try core.checkAlive()
      return .event(.observed)
    }
    return .gate(.resumed) { (attempt) throws(AFError) in
      try attempt.core.checkAlive()
      // Observers may have been added while the request waited.
      return .event(attempt.core.observers.contains(.task) ? .observed : .done)
    }
  }

  /// Announces the task of the attempt and waits until the request is resumed. If the body is a stream, the delegate
  /// may provide another one.
  private func announceTask() -> Outcome<Attempt> {
    .task { [request] in
      await request.announceTask()
    } then: { _, _ in
      // Nothing is sent before monitors were notified that the request was resumed.
      .gate(.resumed) { _ in
        .gate(.notifications) { (attempt) throws(AFError) in try attempt.prepareBodyStream() }
      }
    }
  }

  private func prepareBodyStream() throws(AFError) -> Outcome<Attempt> {
    try core.checkAlive()
    // The total time begins with the body, which this question creates.
    guard let work = request.questionAboutBodyStream(deadline: nil) else { return .done }
    return .task(work)
  }

  // MARK: The response

  /// Waits until the cookies of the response are where the caller will look for them.
  private func waitForCookies() -> Outcome<Attempt> {
    core.hasPendingCookies ? .gate(.cookies) { _ in .done } : .done
  }

  /// Announces the end of the task, after monitors were notified of the change of the state that may have caused it.
  private func announceTaskEnd() -> Outcome<Attempt> {
    guard core.notifiesMonitors else { return reportTaskEnd() }
    return .gate(.notifications) { attempt in attempt.reportTaskEnd() }
  }

  private func reportTaskEnd() -> Outcome<Attempt> {
    let error = error
    if error != nil { core.makeMissingExchange() }
    let exchange = error == nil ? hops.exchange : core.state.withLock { $0.results.exchange }
    return .task { [request] in await request.announceTaskEnd(exchange, error) }
  }

  /// Validates the response, once a handler has decided about its head.
  private func validate() throws(AFError) -> Outcome<Attempt> {
    guard core.mayAwaitHeadDecision else { return try runValidators() }
    return .gate(.headDecision) { (attempt) throws(AFError) in try attempt.runValidators() }
  }

  /// Runs the validators in the order in which they were added, until one fails. Validators that may run the caller's
  /// code do so in a task. Monitors are notified of each rule.
  private func runValidators() throws(AFError) -> Outcome<Attempt> {
    guard !core.traits.contains(.validatesEarly) else { return succeeded() }
    try core.checkAlive()
    guard core.hasValidators, let exchange = hops.exchange else { return succeeded() }
    let (validators, urlRequest, body) = core.validationInputs()
    guard core.notifiesMonitors || validators.contains(where: \.runsUserCode) else {
      for validator in validators { try validator.check(urlRequest, exchange, body) }
      return succeeded()
    }
    return .task { [core, request] () throws(AFError) in
      for validator in validators.flatMap(\.rules) {
        let failure = validator.failure(urlRequest, exchange, body)
        if let failure { core.fail(failure) }
        if core.notifiesMonitors { request.notify(.validated(urlRequest, exchange, body.data, failure)) }
        if let failure { throw failure }
      }
    } then: { attempt, _ in
      attempt.succeeded()
    }
  }

  private func succeeded() -> Outcome<Attempt> {
    if core.observers.contains(.task) { request.notify(.completed(nil)) }
    return .done
  }
}

extension RequestCore {
  @inline(never)
  fileprivate func converted(for owner: any RunOwner) throws(AFError) -> URLRequest {
    do {
      var request = try convertible.asURLRequest()
      request = try kind.convert(request, for: self)
      try check(request)
      return request
    } catch {
      let failure = error as? AFError ?? .createURLRequestFailed(error: error)
      fail(failure)
      creationFailed(of: owner)
      if notifiesMonitors { owner.notify(.creationFailed(failure)) }
      throw failure
    }
  }

  private func check(_ request: URLRequest) throws {
    try request.validate(allowingBodyInGET: profile.options.allowsBodyInGETRequests)
  }

  fileprivate func adapted(_ initial: URLRequest, for owner: any RunOwner) async throws(AFError) -> URLRequest
  {
    guard let answer = await owner.adapted(initial) else {
      // The end of the request or of its session is no failure of an adapter.
      adaptationFailed(initial, of: owner)
      try checkAlive()
      throw .sessionDeinitialized
    }
    do {
      let adapted = try answer.get()
      try check(adapted)
      created(adapted, of: owner)
      if notifiesMonitors { owner.notify(.adapted(adapted, from: initial)) }
      return adapted
    } catch {
      let failure = AFError.requestAdaptationFailed(error: error)
      fail(failure)
      adaptationFailed(initial, of: owner)
      if notifiesMonitors { owner.notify(.adaptationFailed(initial, failure)) }
      throw failure
    }
  }
}
