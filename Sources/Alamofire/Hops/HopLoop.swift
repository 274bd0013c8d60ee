import Foundation
import FoundationNetworking
import HTTPWire

/// The hops of an attempt: one request over the wire after the other, until a response is the last one.
struct HopLoop: Sendable {
  var order: HopOrder
  let services: Services
  let delegate: any HopDelegate
  let kind: any HopKind
  let traits: KindTraits

  /// The caller's request, and the one that goes over the wire.
  var requests = HopRequests()
  /// The redirects that led to the hop.
  var redirects = HopRedirects()
  /// The code that answers the hop, and the server that it is sent to.
  var route = HopRoute()
  /// The credentials that answered challenges.
  var credentials = HopCredentials()
  /// The state of the cache's stages.
  var caching = HopCache()
  /// The transfer that the hop waits for.
  private var transfer = HopTransfer()
  /// The response of the last hop, or its failure.
  var responses = HopResponses()
  /// The hops that went over the wire.
  var records = HopRecords()
  private(set) var error: AFError?

  init(_ delegate: any HopDelegate, _ services: Services) {
    self.delegate = delegate
    self.services = services
    kind = delegate.kind
    traits = kind.traits
    order = HopOrder(hasBody: traits.contains(.hasBody))
  }

  /// The request that is sent next, or was sent last, without the cookies of the session's storage.
  @inline(__always) var request: WireRequest {
    get { requests.wire }
    set { requests.wire = newValue }
  }

  /// The caller's request, converted and adapted.
  @inline(__always) var urlRequest: URLRequest {
    get { requests.converted }
    set { requests.converted = newValue }
  }

  /// The request that goes over the wire.
  var outgoing: WireRequest { requests.outgoing }

  /// Takes the request of the attempt, before the first step.
  mutating func begin(_ urlRequest: URLRequest, taskIsAnnounced: Bool) {
    requests.converted = urlRequest
    caching.taskIsAnnounced = taskIsAnnounced
  }

  /// Waits for a transfer, which begins when the stage is left.
  mutating func wait(for transfer: Transfer) -> Outcome<HopLoop> {
    self.transfer.begin(transfer)
    return .wait(.transfer)
  }

  /// Returns the transfer that begins now.
  mutating func takeTransfer() -> Transfer { transfer.take() }

  /// Returns the outcome of the stage that waits for the transfer.
  mutating func transferEnded(_ result: consuming Result<WireResponse, TransportFailure>) -> Outcome<HopLoop>
  {
    let then = transfer.end()
    // Without a closure, because it would copy the response.
    do throws(AFError) {
      return try then(&self, result)
    } catch {
      fail(with: error)
      return .event(.failed)
    }
  }

  mutating func fail(with error: AFError) {
    self.error = error.naming(method: requests.method)
  }

  /// Returns the result for the attempt. Mutating, because otherwise all hops would be copied for the call.
  mutating func result() -> HopResult {
    HopResult(
      exchange: responses.exchange, url: requests.sent?.url, method: requests.sent?.method,
      isRedirected: redirects.count > 0)
  }

  mutating func perform(_ step: HopOrder.HopStep) throws(AFError) -> Outcome<HopLoop> {
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
    case .askForWholeBody: try askForWholeBody()
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

  static func missing<Value>(_ value: String) -> Value {
    preconditionFailure("a step of a hop needs \(value), which an earlier step makes")
  }
}
