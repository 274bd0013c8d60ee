import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

extension Pipeline {
  /// Stages 2 to 4: sends the request, answers what it is asked for, and follows where it is led, until
  /// there is a response for the user. Every hop goes through the transport by itself, so that it can be
  /// seen and measured.
  nonisolated(nonsending) func exchanged(_ journey: Journey) async throws(AFError) -> Exchange {
    if journey.outcome == nil, journey.mustChooseHandler || journey.mayKnowCredentials || bodyMayBeRenewed {
      try await prepare(journey)
    }
    while true {
      guard let response = try await sent(journey) else { continue }
      guard journey.mayLeadOn(response.head) else { return journey.arrived(response) }
      if let exchange = try await afterHop(journey, response) { return exchange }
    }
  }

  // What few requests need is not inlined into what every request runs: the frames of a task are allocated for each
  // anew, and those of a plain request fit into two pieces of memory.

  /// Who serves the first hop, and what it is given unasked.
  @inline(never)
  nonisolated(nonsending) private func prepare(_ journey: Journey) async throws(AFError) {
    if journey.mustChooseHandler { try await chooseHandler(for: journey) }
    if journey.mayKnowCredentials { try await bringCredentials(journey) }
    if bodyMayBeRenewed { try await renewBodyStream(of: journey) }
  }

  /// What the server asks for is answered, and where it leads is followed; `nil` when there is more to send.
  @inline(never)
  nonisolated(nonsending) private func afterHop(
    _ journey: Journey, _ response: WireResponse
  ) async throws(AFError) -> Exchange? {
    if let exchange = try await followed(journey, response) { return exchange }
    if bodyMayBeRenewed { try await renewBodyStream(of: journey) }
    return nil
  }

  nonisolated(nonsending) private func followed(
    _ journey: Journey, _ response: WireResponse
  ) async throws(AFError) -> Exchange? {
    if journey.authentication != nil { journey.judged(by: response.head) }
    if response.head.status == 401, try await answered(journey, response.head) { return nil }
    switch try journey.answer(toRedirect: response) {
    case .none: return journey.arrived(response)
    case .followed: break
    case .undecided(let plan):
      guard try await decided(journey, response, plan) else { return journey.declined(response) }
    }
    if journey.mustChooseHandler { try await chooseHandler(for: journey) }
    journey.leavesCredentials()
    if journey.mayKnowCredentials { try await bringCredentials(journey) }
    return nil
  }

  /// The transport: one request, one response; `nil` when it has to be sent again as it is by now: a download that
  /// begins anew, a request that has waited for a network.
  nonisolated(nonsending) private func sent(_ journey: Journey) async throws(AFError) -> WireResponse? {
    if let outcome = journey.outcome {
      journey.outcome = nil
      return try await answered(journey, outcome)
    }
    let policy = journey.cachePolicy()
    if let store = core.session.cookies, !journey.tookCookies(from: store) {
      await journey.takeCookies(from: store)
    }
    journey.begins()
    do {
      if let policy { return try await throughCache(journey, policy) }
      return await passed(try await journey.transport.send(journey.sent, observer: core), journey)
    } catch {
      try await recover(journey, from: error)
      return nil
    }
  }

  /// What has come of a hop that went without a task.
  nonisolated(nonsending) private func answered(
    _ journey: Journey, _ outcome: Result<WireResponse, TransportFailure>
  ) async throws(AFError) -> WireResponse? {
    switch outcome {
    case .success(let response): return await passed(response, journey)
    case .failure(let failure):
      try await recover(journey, from: failure)
      return nil
    }
  }

  nonisolated(nonsending) private func passed(_ response: WireResponse, _ journey: Journey) async
    -> WireResponse
  {
    journey.passed(response.metrics, response.head)
    if journey.concernsCache(response) { await learn(from: response, journey) }
    return response
  }

  /// What was in the way of the transfer is put right, if it can be; else it is thrown.
  @inline(never)
  nonisolated(nonsending) private func recover(
    _ journey: Journey, from failure: TransportFailure
  ) async throws(AFError) {
    guard try await isPutRight(journey, failure) else { throw journey.broke(failure) }
    if bodyMayBeRenewed { try await renewBodyStream(of: journey) }
  }

  nonisolated(nonsending) private func isPutRight(
    _ journey: Journey, _ failure: TransportFailure
  ) async throws(AFError) -> Bool {
    if failure.kind == .cannotContinue, journey.beginsAgain(failure) { return true }
    if let chain = failure.chain, journey.mayBeJudged() {
      try await judge(chain, journey)
      return true
    }
    if failure.kind == .identityUndecided, journey.mayBeJudged() {
      try await chooseIdentity(journey)
      return true
    }
    guard core.session.settings.waitsForConnectivity else { return false }
    return try await waitedForConnectivity(journey, after: failure)
  }

  /// Whether somebody may bring another body before each hop.
  private var bodyMayBeRenewed: Bool { core.isWatched && core.body != nil }
}

/// One attempt of a request on its way over the network: where it goes next, and where it has been.
/// Belongs to the task of the pipeline.
final class Journey {
  let core: RequestCore
  /// The user's own request.
  let urlRequest: URLRequest
  /// Who serves the next hop.
  @exclusivity(unchecked) var hopHandler: HopHandler
  /// The origin of the user's own request; credentials go nowhere else.
  let home: Origin
  /// What is sent next, or was sent last, but for the cookies of the session's storage.
  @exclusivity(unchecked) var request: WireRequest
  /// The same with such cookies; `nil` when there are none.
  @exclusivity(unchecked) var outgoing: WireRequest?
  @exclusivity(unchecked) var redirects = 0
  /// Whether the end of the attempt is told to somebody, who decides about storing; others may begin to watch while it
  /// runs.
  let isWatched: Bool
  /// How often a server was judged elsewhere.
  @exclusivity(unchecked) private var judgements = 0
  /// Whether it has waited for a network.
  @exclusivity(unchecked) var hasWaited = false
  /// What was asked for and answered on the way; mostly nothing.
  @exclusivity(unchecked) var authentication: Authentication?
  /// What has come of the hop at hand, when it went without a task, and has not been looked at.
  @exclusivity(unchecked) var outcome: Result<WireResponse, TransportFailure>?
  /// Whose journey it is, while it goes without a task.
  @exclusivity(unchecked) var traveller: Pipeline?
  /// Whether it has been at another origin; then nothing is sent unasked any more.
  @exclusivity(unchecked) var hasLeftHome = false
  /// How much had been removed from the cache when the hop at hand was sent.
  @exclusivity(unchecked) var removalCount: UInt64 = 0
  @exclusivity(unchecked) private var hops: ShortList<Exchange.Hop> = []
  /// The start of the first hop that is not served by the engine, which measures its own.
  @exclusivity(unchecked) private var begun: Date?

  // Not inlined: its temporaries would make the frame of the task larger, which is allocated anew each time.
  @inline(never)
  init(_ urlRequest: URLRequest, for core: RequestCore, isWatched: Bool = false) throws(AFError) {
    self.core = core
    self.isWatched = isWatched
    let plain = try WireRequest(urlRequest, for: core)
    request = plain.upgraded
    self.urlRequest = request.leading(urlRequest, from: plain)
    home = request.origin
    // Another scheme has got this far for the sake of the user's own classes, which are asked next.
    hopHandler = HopHandler(scheme: home.scheme) ?? .local
  }

  /// Whether a response may not be the last: it leads elsewhere, or asks for something, or answers what was brought.
  func mayLeadOn(_ head: ResponseHead) -> Bool {
    head.role == .hop && (authentication != nil || !(200..<300).contains(head.status))
  }

  /// The hop is about to be sent.
  func begins() {
    notesRemovals()
    if !hopHandler.isEngine, begun == nil { begun = Date() }
    core.state.withLock { state in
      state.hop = (sent, home, authentication)
      state.attempts.begin()
    }
  }

  /// What goes over the wire.
  var sent: WireRequest { outgoing ?? request }

  @inline(never)
  func passed(
    _ metrics: TransferMetrics, _ head: ResponseHead?, as sent: WireRequest? = nil,
    from place: TaskMetrics.ResourceFetchType = .networkLoad
  ) {
    guard hopHandler.isEngine else { return }
    hops.append(Exchange.Hop(sent ?? self.sent, metrics: metrics, head: head, fetchType: place))
    if !Invalidation.isSafe(request.method) { core.session.sharedTransfers.beginEra() }
  }

  /// Keeps the metrics and the part of the response that arrived before the transfer failed. Returns the error for
  /// the user.
  @inline(never)
  func broke(_ failure: TransportFailure) -> AFError {
    passed(
      failure.metrics ?? Self.timesOfLostHop, failure.partial?.head,
      from: failure.metrics == nil ? .unknown : .networkLoad)
    // The user never sees a redirect that would have been followed, or a challenge that would have been answered.
    let partial = failure.partial.flatMap { core.isShown($0.head) ? $0 : nil }
    let body = partial.flatMap { core.shown($0.body, of: request, isKept: true) }
    // A body over the limit is not kept, not even in part.
    let keepsBody = core.pieces == nil && failure.kind != .dataLengthExceedsMaximum
    core.broken(exchange(partial?.head), body: keepsBody ? body : nil)
    if let error = hopHandler.given?.error { return .sessionTaskFailed(error: error) }
    if let cause = failure.cause { return AFError(refusal: cause) }
    return AFError(
      hopHandler.isEngine ? failure.explained(host: request.origin.host, by: core.session.network) : failure,
      url: request.url, resumeData: resumeData(after: failure))
  }

  /// The resume data for the error of a download. A cancelled download hands its resume data out later, if at all.
  private func resumeData(after failure: TransportFailure) -> Data? {
    guard failure.kind != .cancelled, let plan = core.download else { return nil }
    return plan.resumeData(of: core.state.withLock { $0.request })
  }

  /// The metrics of a hop that failed before anything was measured.
  private static var timesOfLostHop: TransferMetrics {
    var values = TransferMetrics.Values()
    values.start = Date().timeIntervalSince1970
    return TransferMetrics(values: values)
  }

  /// Whether what the server has shown is judged, and the request sent again. A server that shows something else
  /// each time is not asked for ever.
  @inline(never)
  func mayBeJudged() -> Bool {
    judgements += 1
    return judgements <= 8
  }

  /// What was left of a download does not fit to the response: the whole is asked for. Once.
  @inline(never)
  func beginsAgain(_ failure: TransportFailure) -> Bool {
    func asksForPart(_ field: HTTPHeader) -> Bool {
      FieldName.equal(field.name, "Range") || FieldName.equal(field.name, "If-Range")
    }
    guard request.fields.contains(where: asksForPart) else { return false }
    if let metrics = failure.metrics { passed(metrics, nil) }
    request = request.changing { $0.fields.removeAll(where: asksForPart) }
    return true
  }

  /// A redirect that is not followed: its head is the response, without the body.
  func declined(_ response: WireResponse) -> Exchange {
    arrived(response, keepsBody: false)
  }

  /// The response is the one for the user.
  @discardableResult
  @inline(never)
  func arrived(_ response: WireResponse, keepsBody: Bool = true) -> Exchange {
    let exchange = exchange(response.head)
    let isTaken = core.isWatched || request.sink != nil
    let body = isTaken ? core.shown(response.body, of: request, isKept: keepsBody) : response.body
    core.received(exchange, body: keepsBody ? body : nil)
    return exchange
  }

  /// The attempt so far, with `head` as the head of its last response.
  private func exchange(_ head: ResponseHead?) -> Exchange {
    // The URL of the user's own request is there already; only another one has to be parsed.
    let url = redirects == 0 ? urlRequest.url : URL(string: request.url)
    // Without hops there are no times of the transport: nothing went over the network.
    let metrics = hops.isEmpty ? TaskMetrics(from: begun ?? Date()) : nil
    if let head, head.role == .other {
      return Exchange(
        url: url, other: hopHandler.given?.response ?? URLResponse(url, head), hops, metrics: metrics)
    }
    let given = head == nil ? nil : hopHandler.given?.response as? HTTPURLResponse
    return Exchange(url: url, head: head, hops: hops, response: given, metrics: metrics)
  }
}
