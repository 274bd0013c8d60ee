import Foundation
import FoundationNetworking
import HTTPWire

/// The hops of an attempt: one request over the wire after the other, until a response is the last one.
struct HopLoop: Sendable {
  var order: HopOrder
  let services: Services
  let delegate: any HopDelegate

  /// The request that is sent next, or was sent last, without the cookies of the session's storage.
  @inline(__always) var request: WireRequest {
    get { wireRequest ?? Self.missing("a request to send") }
    set { wireRequest = newValue }
  }
  private var wireRequest: WireRequest?

  /// The request of the caller, converted and adapted.
  @inline(__always) var urlRequest: URLRequest {
    get { convertedRequest ?? Self.missing("a converted request") }
    set { convertedRequest = newValue }
  }
  private var convertedRequest: URLRequest?

  /// The origin of the caller's request. Credentials go to no other origin.
  @inline(__always) var initialOrigin: Origin {
    get { originOfRequest ?? Self.missing("an origin") }
    set { originOfRequest = newValue }
  }
  private var originOfRequest: Origin?

  /// Whether observers know the task of the attempt.
  private(set) var taskIsAnnounced = false
  /// ``request`` with the cookies of the session's storage; `nil` without such cookies.
  var requestWithCookies: WireRequest?
  /// The server or the code that answers the next hop.
  var handler = HopHandler.engine
  var route = HopRoute.plain
  /// The fault of the request's method or fields, which the engine must not send.
  var violation: HeaderFieldRules.Violation?
  var redirectCount = 0
  /// Whether a hop went to another origin. Nothing is sent preemptively any more.
  var leftInitialOrigin = false
  /// The challenges that were answered; `nil` for most attempts.
  var authentication: Authentication?
  var hasWaitedForConnectivity = false

  /// The state of the cache's stages.
  var caching = HopCache()

  /// The transfer that begins next.
  private(set) var transfer: Transfer?
  /// The rest of the stage that waits for a transfer.
  private var afterTransfer: Transfer.End?
  var response: WireResponse?
  var transferFailure: TransportFailure?
  /// Whether the body of the last response is delivered to the caller.
  var deliversBody = true
  /// The hops that went over the wire.
  var records: ShortList<Exchange.Hop> = []
  /// The start of the first hop that the engine does not measure.
  var startDate: Date?
  /// The last response, with the records of all hops.
  var exchange: Exchange?
  private(set) var error: AFError?

  init(_ delegate: any HopDelegate, _ services: Services) {
    self.delegate = delegate
    self.services = services
    order = HopOrder(hasBody: delegate.kind.traits.contains(.hasBody))
  }

  var kind: any HopKind { delegate.kind }

  /// The request that goes over the wire.
  var outgoing: WireRequest { requestWithCookies ?? request }

  /// Takes the request of the attempt, before the first step.
  mutating func begin(_ urlRequest: URLRequest, taskIsAnnounced: Bool) {
    convertedRequest = urlRequest
    self.taskIsAnnounced = taskIsAnnounced
  }

  /// Waits for a transfer, which begins when the stage is left.
  mutating func wait(for transfer: Transfer) -> Outcome<HopLoop> {
    self.transfer = transfer
    afterTransfer = transfer.then
    return .wait(.transfer)
  }

  /// Returns the transfer that begins now.
  mutating func takeTransfer() -> Transfer {
    guard let taken = transfer.take() else { preconditionFailure("the hops wait for a transfer without one") }
    return taken
  }

  /// Returns the outcome of the stage that waits for the transfer.
  mutating func transferEnded(_ result: Result<WireResponse, TransportFailure>) -> Outcome<HopLoop> {
    guard let then = afterTransfer.take() else {
      preconditionFailure("a transfer ended that nothing waits for")
    }
    return outcome { (hops) throws(AFError) in try then(&hops, result) }
  }

  mutating func fail(with error: AFError) {
    self.error = error.naming(method: wireRequest?.method ?? convertedRequest?.httpMethod)
  }

  /// Returns the result for the attempt.
  func result() -> HopResult {
    HopResult(
      exchange: exchange, url: wireRequest?.url, method: wireRequest?.method, isRedirected: redirectCount > 0)
  }

  mutating func perform(_ step: HopOrder.Step) throws(AFError) -> Outcome<HopLoop> {
    switch step {
    case .makeRequest: try makeRequest()
    case .chooseHandler: try chooseHandler()
    case .addCredentials: try addCredentials()
    case .provideBody: provideBody()
    case .addCookies: addCookies()
    case .beginHop: beginHop()
    case .lookUpCache: lookUpCache()
    case .send: try send()
    case .replay: replay()
    case .revalidate: try revalidate()
    case .askForWholeBody: askForWholeBody()
    case .evaluateTrust: try evaluateTrust()
    case .chooseIdentity: chooseIdentity()
    case .waitForConnectivity: waitForConnectivity()
    case .recordTransferFailure: try recordTransferFailure()
    case .updateCache: updateCache()
    case .evaluateCredentials: evaluateCredentials()
    case .answerChallenge: try answerChallenge()
    case .followRedirect: try followRedirect()
    case .storeResult: storeResult()
    }
  }

  private static func missing<Value>(_ value: String) -> Value {
    preconditionFailure("a step of a hop needs \(value), which an earlier step makes")
  }
}

/// The result of the hops of an attempt.
struct HopResult: Sendable {
  /// The last response; `nil` if there is none.
  var exchange: Exchange?
  /// The URL and the method of the last request over the wire.
  var url: String?
  var method: String?
  var isRedirected = false
}
