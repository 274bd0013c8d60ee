import Alamofire
public import Foundation
public import FoundationNetworking

/// Changes requests before they are sent, for a token or a signature.
///
/// ```swift
/// final class AccessTokenAdapter: RequestAdapter {
///   private let accessToken: String
///   init(accessToken: String) { self.accessToken = accessToken }
///
///   func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
///     var urlRequest = urlRequest
///     urlRequest.setValue("Bearer " + accessToken, forHTTPHeaderField: "Authorization")
///     return urlRequest
///   }
/// }
/// ```
public protocol RequestAdapter {
  /// Returns the adapted request.
  ///
  /// Called on the thread that makes a request, before the function returns, and again for each retry on any thread.
  /// Calls may be concurrent.
  ///
  /// - Throws: Any error; the handlers get it unchanged. Before the first attempt, the retrier is called for it;
  ///   during a retry, it ends the request.
  func adapt(_ urlRequest: URLRequest) throws -> URLRequest
}

/// Says whether a request is sent again, and after how many seconds.
public typealias RequestRetryCompletion = (_ shouldRetry: Bool, _ timeDelay: TimeInterval) -> Void

/// Decides about requests that failed.
public protocol RequestRetrier {
  /// Decides whether `request` is retried. Call `completion` once, on any thread; further calls are ignored. Its
  /// release without a call means no.
  ///
  /// Called once for each failed attempt, after its validation, on any thread; calls for several requests may be
  /// concurrent. It is not called for cancelled requests, nor for failures of serializers, nor if the request could not
  /// be created. A retry begins with the original request, which is adapted again; routers and encodings are not called
  /// again. Requests that are retried at once are adapted in the order of their completions.
  ///
  /// - Parameters:
  ///   - manager:    The manager of the request.
  ///   - request:    The request; `response` and `task` belong to the failed attempt.
  ///   - error:      The error, as the handlers would get it.
  ///   - completion: Takes the decision.
  func should(
    _ manager: SessionManager, retry request: Request, with error: any Error,
    completion: @escaping RequestRetryCompletion)
}

/// The question to a retrier about a failed attempt. It is open until the next attempt begins or the request ends.
///
/// A retrier may answer late, when the core no longer waits for it. Such an answer must not take a place in the queue
/// of retries, because nothing would leave it again.
struct RetryQuestion {
  private var ticket: RetryQueue.Ticket?
  private var isAnswered = false
  /// The retry whose adapter runs. It keeps its place in the queue until the adapter has returned.
  private var adapted: RetryQueue.Ticket?

  /// Opens a question. Nothing may be left of an earlier one.
  mutating func open(_ ticket: RetryQueue.Ticket) { (self.ticket, isAnswered) = (ticket, false) }

  /// Whether a question is open, answered or not.
  func isOpen(_ ticket: RetryQueue.Ticket) -> Bool { self.ticket == ticket }

  /// Whether a retry needs its place in the queue: its question is open, or its adapter runs.
  func needsPlace(_ ticket: RetryQueue.Ticket) -> Bool { isOpen(ticket) || adapted == ticket }

  /// Notes the answer. Returns whether it is the first, and the question still open.
  mutating func answer(_ ticket: RetryQueue.Ticket) -> Bool {
    guard isOpen(ticket), !isAnswered else { return false }
    isAnswered = true
    return true
  }

  /// Closes the question. Returns its ticket, which may have a place in the queue.
  mutating func close() -> RetryQueue.Ticket? {
    defer { (ticket, isAnswered) = (nil, false) }
    return ticket
  }

  /// Closes the question because the adapter begins. Returns its ticket, whose place the adapter needs.
  mutating func beginAdapting() -> RetryQueue.Ticket? {
    adapted = close()
    return adapted
  }

  /// Notes that the adapter has returned.
  mutating func endAdapting() { adapted = nil }
}

/// Performs the retries of a manager in the order of the retrier's completions. The next one begins when the adapter
/// has adapted the previous one, because a handler that refreshes a token can complete hundreds at once.
final class RetryQueue: Sendable {
  /// The name of one retry, which is never used again.
  struct Ticket: Hashable, Sendable {
    fileprivate let number: UInt64
  }

  private struct State {
    var ticketCount: UInt64 = 0
    var current: Ticket?
    /// The waiting retries by their places in the order. A retry that leaves is removed without a search.
    var waiting: [UInt64: (ticket: Ticket, begin: @Sendable () -> Void)] = [:]
    var places: [Ticket: UInt64] = [:]
    /// The first place at which a retry may wait.
    var firstPlace: UInt64 = 0
    var endPlace: UInt64 = 0

    mutating func append(_ ticket: Ticket, _ begin: @escaping @Sendable () -> Void) {
      waiting[endPlace] = (ticket, begin)
      places[ticket] = endPlace
      endPlace += 1
    }

    /// Removes a waiting retry. Returns its closure, which may be the last reference to the user's objects.
    mutating func remove(_ ticket: Ticket) -> (@Sendable () -> Void)? {
      places.removeValue(forKey: ticket).flatMap { waiting.removeValue(forKey: $0) }?.begin
    }

    /// Makes the first of the waiting retries the current one, and returns its closure.
    mutating func next() -> (@Sendable () -> Void)? {
      current = nil
      while firstPlace < endPlace {
        defer { firstPlace += 1 }
        guard let first = waiting.removeValue(forKey: firstPlace) else { continue }
        places[first.ticket] = nil
        current = first.ticket
        return first.begin
      }
      return nil
    }
  }

  /// The order of the retries.
  private let state = Mutex(State())

  /// The number of retries that wait.
  var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Returns the name of a retry that may follow.
  func makeTicket() -> Ticket {
    state.withLock { state in
      state.ticketCount += 1
      return Ticket(number: state.ticketCount)
    }
  }

  /// Calls `begin` when it is the turn of the retry: now or later.
  func enter(_ ticket: Ticket, _ begin: @escaping @Sendable () -> Void) {
    let isFirst = state.withLock { state in
      guard state.current == nil else {
        state.append(ticket, begin)
        return false
      }
      state.current = ticket
      return true
    }
    if isFirst { begin() }
  }

  /// Removes a retry that has begun or will not begin, and begins the next one.
  func leave(_ ticket: Ticket) {
    let (next, removed) = state.withLock { state in
      state.current == ticket ? (state.next(), nil) : (nil, state.remove(ticket))
    }
    next?()
    // Released outside of the lock.
    _ = removed
  }
}

/// Credentials that are added to a request after the challenge of the server. A request starts before its caller can
/// add credentials, and a fast server may have sent its challenge by then. The request is then sent once more, as it
/// would have been for the challenge.
struct CredentialRetry {
  /// Fails an attempt, so that the core sends the request again.
  struct Required: Error {}

  private var hasCredentials = false
  /// Whether a challenge arrived before there were credentials.
  private var wasChallenged = false
  private var isPending = false

  /// Whether a challenge arrived and there were no credentials yet.
  var isAwaited: Bool { wasChallenged && !hasCredentials }

  /// Whether a response with this status asks for credentials.
  static func asksForCredentials(_ status: Int?) -> Bool { status == 401 || status == 407 }

  mutating func challenged() {
    if !hasCredentials { wasChallenged = true }
  }

  /// Notes that credentials were added. Returns whether a challenge arrived before.
  mutating func added() -> Bool {
    hasCredentials = true
    return wasChallenged
  }

  /// Returns whether an attempt whose response asks for credentials has to be repeated with them.
  ///
  /// - Parameter isRepeatable: Whether the request may be sent again. If not, the response stays.
  mutating func wantsRetry(ofRepeatable isRepeatable: Bool) -> Bool {
    guard wasChallenged, hasCredentials else { return false }
    wasChallenged = false
    isPending = isRepeatable
    return isRepeatable
  }

  /// Returns whether the attempt was failed for the credentials, and resets it.
  mutating func takePending() -> Bool {
    defer { isPending = false }
    return isPending
  }
}

extension Request {
  /// Whether a server may have performed a request that must not be repeated, because it has answered with a redirect
  /// to another method, as after a form. A retry would send the request of the caller again.
  var mayHaveBeenPerformed: Bool {
    guard let task = core.task, let name = task.originalRequest?.httpMethod,
      name != task.currentRequest?.httpMethod
    else {
      return false
    }
    let method = Alamofire::HTTPMethod(rawValue: name)
    return !Alamofire::RetryPolicy.defaultRetryableHTTPMethods.contains(method)
  }
}
