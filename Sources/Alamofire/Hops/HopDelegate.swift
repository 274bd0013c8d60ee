import Foundation
import FoundationNetworking
import HTTPWire

/// The request of the hops, its run and its observers, as far as the hops have to know them.
protocol HopDelegate: Sendable {
  // MARK: The request

  var kind: any HopKind { get }
  var profile: ConnectionProfile { get }
  /// The credential of the request itself.
  var credential: URLCredential? { get }
  /// Whether the body of the response is passed on as it arrives.
  var passesBodyOn: Bool { get }
  /// Whether the body of the response goes to chunk readers, and is not stored.
  var hasChunkReaders: Bool { get }

  /// Returns `profile` with `identity` as the client certificate for one origin.
  func profile(presenting identity: ClientIdentity, inPlaceOf profile: ConnectionProfile) -> ConnectionProfile

  /// Makes the request that goes over the wire.
  ///
  /// - Parameter violation: Receives the fault of the method or a field. It is an error if the engine has to send them.
  func makeRequest(
    of request: URLRequest, _ violation: inout HeaderFieldRules.Violation?
  ) throws(AFError) -> WireRequest

  /// Adds a stream of the body to the request that a `URLProtocol` class sees.
  func addBodyStream(to made: inout URLRequest)

  // MARK: The run

  /// The observer of a transfer.
  var observer: any TransferObserver { get }
  /// Whether cookies of the last response may still have to be stored.
  var hasPendingCookies: Bool { get }

  /// Throws if the request was cancelled or its session has ended.
  func checkAlive() throws(AFError)

  /// Makes a hop known to the thread that reads its response, and forgets the body of the previous hop.
  func begin(_ hop: consuming CurrentHop)

  /// Returns the way in which a challenge in the response of the next hop is decided.
  func challengeDecision(in sink: (any BodySink)?) -> CurrentHop.ChallengeDecision

  /// Whether the caller's delegate will be asked about the challenge of a response.
  func isUndecided(_ head: ResponseHead) -> Bool

  /// Takes the body of a challenge, which was stored for the decision; `nil` without one.
  func challengeBody(in sink: (any BodySink)?) throws(TransportFailure) -> Data?

  /// Makes the response of the hop the last one, as a delegate has decided.
  func declineChallenge()

  /// Decides whether the response to a request leads elsewhere.
  func redirect(by head: ResponseHead, of request: WireRequest, after count: Int) -> Redirect.Decision

  /// Shows a redirect that is not followed after all.
  func redirectDeclined(_ head: ResponseHead)

  // MARK: The response

  /// Whether the body that follows a head is the body for the caller, as far as the head shows.
  func isShown(_ head: ResponseHead) -> Bool

  /// Handles a head without storing its cookies.
  func headShown(_ head: ResponseHead) -> HeadDisposition

  /// Stores the cookies of a response.
  func storeCookies(of head: ResponseHead)

  /// Handles the bytes of a stored response.
  func bytesReplayed(_ count: ByteCount)

  /// Notes whether the bytes of the response do not count as progress of the request.
  func setIntermediate(_ isIntermediate: Bool)

  /// Returns the stored body of a response, and shows it to observers that have not seen it yet.
  func shown(_ body: Data?, of request: WireRequest, isDelivered: Bool) -> Data?

  /// Returns the body that a sink has stored in memory; `nil` without one.
  func keptBody(in sink: (any BodySink)?) -> Data?

  /// Keeps the response and the metrics of the hops.
  func store(_ exchange: Exchange, body: Data?)

  /// Keeps a response that is stored at the end of the attempt, if the observers allow it.
  func propose(_ candidate: CacheCandidate)

  /// Validates the response to a WebSocket handshake. Returns the failure.
  func handshakeFailure() async -> AFError?

  /// Returns the data from which a failed download continues.
  func resumeData(after failure: TransportFailure) -> Data?

  // MARK: The observers

  /// The events that have observers at present.
  var observers: RequestObservers { get }
  /// Whether the session's delegate is the caller's.
  var hasOwnDelegate: Bool { get }
  /// Whether observers are notified of the challenge in the response of this hop.
  var asksAboutChallenge: Bool { get }

  /// Notifies the delegate that the request waits for a network.
  func connectivityAwaited() async

  /// Notifies the monitors that an evaluator has refused the server.
  func serverRefused(_ error: AFError)

  /// Returns the work that asks the delegate about a challenge; `nil` if there is no task to show to it.
  func question<Answer: Sendable>(
    about challenge: URLAuthenticationChallenge, whenForgotten: Answer, whenCancelled: Answer,
    deadline: MonotonicTime?,
    _ read: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Answer
  ) -> (@Sendable () async -> Answer)?

  /// Returns the work that asks the delegate, and thereby the redirect handlers, about a redirect; `nil` if there is
  /// nothing to show to them.
  func question(about redirect: HTTPURLResponse, to next: WireRequest) -> RedirectQuestion?

  /// Returns the work that asks the delegate for another body; `nil` if it cannot replace this one. The answer of the
  /// work is `nil` if the body stays.
  func questionAboutBody(
    inPlaceOf source: any BodySource, deadline: MonotonicTime?
  ) -> (@Sendable () async throws(AFError) -> RequestBody?)?
}

extension HopDelegate {
  var passwordCredential: PasswordCredential? { credential.flatMap { PasswordCredential($0) } }
}

/// A question about a redirect, for the delegate.
struct RedirectQuestion: Sendable {
  /// The request that would follow.
  let proposed: URLRequest
  /// Returns the request to send; `nil` if the redirect is not followed.
  let ask: @Sendable () async -> URLRequest?
}

/// The events of a request that have observers: the session's delegate, handlers and monitors, and the request's own.
///
/// An observer of one of these events may change the course of an attempt, which then has to wait for it. The attempt
/// reads ``task`` when the request is resumed, and ``bodies`` when it makes the request. It reads the others when the
/// event comes, because handlers may be added to a running request and ``SessionDelegate/wantedEvents`` may change at
/// any time.
struct RequestObservers: OptionSet, Sendable {
  let rawValue: UInt8

  /// The tasks of attempts, which are announced before they are sent and at their end.
  static let task = RequestObservers(rawValue: 1)
  static let redirects = RequestObservers(rawValue: 2)
  /// Challenges of responses.
  static let challenges = RequestObservers(rawValue: 4)
  /// The certificates of servers.
  static let trust = RequestObservers(rawValue: 8)
  /// The storage of responses.
  static let storing = RequestObservers(rawValue: 16)
  /// The bodies of responses as they arrive, for chunk readers or for observers.
  static let bodies = RequestObservers(rawValue: 32)
  /// The chunks of bodies, which are copied for observers. Chunk readers get theirs without them.
  static let chunks = RequestObservers(rawValue: 64)

  /// The events that each observer of tasks sees.
  static let wholeTask: RequestObservers = [.task, .redirects, .challenges]
  /// The events that each monitor sees.
  static let monitors: RequestObservers = [.wholeTask, .trust]
}

/// The hop that is under way, for the thread that reads its response.
struct CurrentHop: Sendable {
  let request: WireRequest
  /// The origin of the caller's request.
  let initialOrigin: Origin
  let authentication: Authentication?
  /// The number of redirects that led to the hop.
  let redirectCount: Int
  /// The way in which a challenge is decided. Chosen once for the hop, because observers come and go.
  var challenge = ChallengeDecision.byDefault
  /// The decision about the response that may lead elsewhere, once there is one.
  var redirect: DecidedRedirect?

  enum ChallengeDecision: Sendable {
    /// A challenge for which there is a credential is answered.
    case byDefault
    /// The body of a challenge is stored until a delegate has decided.
    case byDelegate
    /// The delegate has declined. The response is the last one.
    case declined
  }
}

/// The decision about a response with a status and a `Location`. A class, so that a hop without one is copied cheaply.
final class DecidedRedirect: Sendable {
  let status: Int
  let location: String?
  let decision: Redirect.Decision

  init(status: Int, location: String?, decision: Redirect.Decision) {
    self.status = status
    self.location = location
    self.decision = decision
  }
}
