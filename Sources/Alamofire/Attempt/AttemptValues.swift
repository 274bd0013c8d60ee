import Foundation
import FoundationNetworking
import HTTPWire

/// The values that the steps of one attempt read and write. ``RequestAttempt`` never sees them.
struct AttemptValues {
  /// The request of the caller, converted and adapted.
  @inline(__always) var urlRequest: URLRequest {
    get { convertedRequest ?? Self.missing("a converted request") }
    set { convertedRequest = newValue }
  }
  private var convertedRequest: URLRequest?

  /// The request that is sent next, or was sent last, without the cookies of the session's storage.
  @inline(__always) var request: WireRequest {
    get { wireRequest ?? Self.missing("a request to send") }
    set { wireRequest = newValue }
  }
  private var wireRequest: WireRequest?

  /// The origin of the caller's request. Credentials go to no other origin.
  @inline(__always) var initialOrigin: Origin {
    get { originOfRequest ?? Self.missing("an origin") }
    set { originOfRequest = newValue }
  }
  private var originOfRequest: Origin?

  /// ``request`` with the cookies of the session's storage; `nil` without such cookies.
  var requestWithCookies: WireRequest?
  /// The server or the code that answers the next hop.
  var handler = HopHandler.engine
  var redirectCount = 0
  /// The redirect about which an observer decides.
  var redirectPlan: RedirectPlan?
  /// Whether a hop went to another origin. Nothing is sent preemptively any more.
  var leftInitialOrigin = false
  /// The challenges that were answered; `nil` for most attempts.
  var authentication: Authentication?
  var hasWaitedForConnectivity = false

  var cachePolicy: CacheDecision.Policy?
  /// The number of removals from the cache at the time when the hop was sent.
  var removalCount: UInt64 = 0
  var storedAnswer: StoredAnswer?
  var revalidation: Revalidation?

  var response: WireResponse?
  var transferFailure: TransportFailure?
  /// Whether the body of the last response is the body for the caller.
  var keepsBody = true
  /// The hops that went over the wire.
  var hops: ShortList<Exchange.Hop> = []
  /// The start of the first hop that the engine does not measure.
  var startDate: Date?
  /// The result of the attempt.
  var exchange: Exchange?
  var error: AFError?
  /// The handler whose response is made next, because it cannot be made at once.
  var pendingSink: (any ResponseSink)?
  /// The handler whose serializer failed.
  var failedSink: (any ResponseSink)?

  /// The request that goes over the wire.
  var outgoing: WireRequest { requestWithCookies ?? request }

  private static func missing<Value>(_ value: String) -> Value {
    preconditionFailure("a step of an attempt needs \(value), which an earlier step makes")
  }
}
