import Foundation
import HTTPWire

/// One kind of request. Stages ask it; they do not ask which one it is. Each requirement has the answer of a data
/// request.
protocol RequestKind: HopKind {
  // MARK: The attempt

  /// Changes the caller's request before its adaptation. May block if ``KindTraits/convertsInTask`` is set.
  func convert(_ request: URLRequest, for core: RequestCore) throws -> URLRequest

  /// Makes the body of an attempt.
  func prepareBody(for attempt: Attempt) throws(AFError) -> Outcome<Attempt>

  /// Waits until a transfer of a background session may begin.
  func schedule(_ attempt: Attempt) -> Outcome<Attempt>

  /// Moves the file of the response to its destination, if ``KindTraits/hasFile`` is set. A failure is kept for
  /// ``acceptResult(of:)``, because it is an error of the attempt and not of its task, whose end is announced next.
  func moveFile(of attempt: Attempt) -> Outcome<Attempt>

  /// Handles the last response: it may be stored, be an error, or lead to another attempt.
  func acceptResult(of attempt: Attempt) throws(AFError) -> Outcome<Attempt>

  // MARK: The transfers

  /// Returns the body to send; `nil` if it is the body of the caller's request.
  func content(for request: URLRequest, of core: RequestCore) throws(AFError) -> RequestBody?

  /// The trailer fields that follow the body; `nil` without any.
  var trailers: RequestTrailers? { get }

  /// Returns the destination of the body of the response to a request with these parts.
  func sink(method: String, fields: [HTTPHeader], profile: ConnectionProfile) throws(AFError)
    -> (any BodySink)?

  /// Returns the count of a whole request, which several transfers may perform.
  func count(_ count: ByteCount, after last: ByteCount) -> ByteCount

  /// Takes note of an informational response.
  func informational(_ head: ResponseHead, at url: String)

  /// Whether the kind handles a response as one of several steps, so that the caller does not see it.
  func isIntermediate(_ head: ResponseHead, at url: String) -> Bool

  /// Returns the data from which a failed download continues.
  func resumeData(after failure: TransportFailure, of core: RequestCore) -> Data?

  // MARK: The end

  /// Waits as ``Gate/readers`` says. Returns false, and never calls `proceed`, if there is nothing to wait for.
  func readersSettled(_ proceed: @escaping @Sendable () -> Void) -> Bool

  /// Notes that the request is cancelled: its end does not wait for readers that have stopped to read.
  func readersLeave()

  /// Drops what handlers have not received yet, because the completion of a cancelled request is next.
  func endDelivery()

  /// Notes that the request is resumed, and was not refused because its session has ended.
  func resumed()

  /// Notes that the request is suspended.
  func held()

  /// Forgets the transfer of a background session, because the request was cancelled before the session ended.
  func forgetTransfer()

  /// Notes that no other attempt follows, before the responses are created.
  ///
  /// - Parameter isLate: Whether the request has ended before, and handlers were added.
  func settle(_ core: RequestCore, isLate: Bool)

  /// Whether an attempt that has failed may be followed by another one.
  func mayBeginAgain(_ core: RequestCore) -> Bool

  /// Returns the error that replaces a failure without a further attempt; `nil` if the failure stays.
  func finalError(of core: RequestCore) -> AFError?

  /// Returns the work that removes what the run has left on the disk; `nil` if there is nothing.
  var leftovers: (@Sendable () -> Void)? { get }
  /// The validator of the kind's own that runs after the caller's validators.
  var lastValidator: Validator? { get }

  /// Returns the count of a request that has ended, for progress that was not observed before.
  func count(after exchange: Exchange) -> ResultCount

  /// Adds the results that are the kind's own.
  func complete(_ outcome: inout RequestOutcome)

  /// Notes that another attempt follows. Not called for a continuation, because the request does not begin again.
  func beginAgain(because cause: RequestCore.RetryCause)

  /// Notes that the run has ended and its responses were created.
  func ended(_ core: RequestCore)

  /// The number of times that the caller has sent the request again after its end.
  var runNumber: Int { get }

  /// Delivers the responses to their handlers.
  ///
  /// - Parameters:
  ///   - run: The ``runNumber`` before the end, because the caller may have sent the request again since.
  ///   - announce: Notifies the monitors. Called once, when the responses are final.
  func deliver(
    _ served: ShortList<any ResponseSink>, of core: RequestCore, after run: Int, _ announce: () -> Void)
}

/// The part of a count that the response alone does not show.
struct ResultCount {
  /// The bytes of all uploads, if they are more than the last request's.
  var uploaded: Int64?
  /// The number of bytes of an earlier download.
  var offset: Int64 = 0
  /// The number of received bytes. `nil` counts the stored body and the bytes that readers have received.
  var received: Int64?
}

extension RequestKind {
  func convert(_ request: URLRequest, for core: RequestCore) throws -> URLRequest { request }
  func prepareBody(for attempt: Attempt) throws(AFError) -> Outcome<Attempt> { .done }
  func schedule(_ attempt: Attempt) -> Outcome<Attempt> { .done }
  func moveFile(of attempt: Attempt) -> Outcome<Attempt> { .done }
  func acceptResult(of attempt: Attempt) throws(AFError) -> Outcome<Attempt> { .done }
  func content(for request: URLRequest, of core: RequestCore) throws(AFError) -> RequestBody? { nil }
  var trailers: RequestTrailers? { nil }
  func sink(method: String, fields: [HTTPHeader], profile: ConnectionProfile) throws(AFError)
    -> (any BodySink)?
  { nil }
  func count(_ count: ByteCount, after last: ByteCount) -> ByteCount { count }
  func informational(_ head: ResponseHead, at url: String) {}
  func isIntermediate(_ head: ResponseHead, at url: String) -> Bool { false }
  func resumeData(after failure: TransportFailure, of core: RequestCore) -> Data? { nil }
  func readersSettled(_ proceed: @escaping @Sendable () -> Void) -> Bool { false }
  func readersLeave() {}
  func endDelivery() {}
  func resumed() {}
  func held() {}
  func forgetTransfer() {}
  func settle(_ core: RequestCore, isLate: Bool) {}
  func mayBeginAgain(_ core: RequestCore) -> Bool { core.chunks?.mayBeginAgain ?? true }
  func finalError(of core: RequestCore) -> AFError? { nil }
  var leftovers: (@Sendable () -> Void)? { nil }
  var lastValidator: Validator? { nil }
  func count(after exchange: Exchange) -> ResultCount { ResultCount() }
  func complete(_ outcome: inout RequestOutcome) {}
  func beginAgain(because cause: RequestCore.RetryCause) {}
  func ended(_ core: RequestCore) {}

  var runNumber: Int { 0 }

  func deliver(
    _ served: ShortList<any ResponseSink>, of core: RequestCore, after run: Int, _ announce: () -> Void
  ) {
    announce()
    for sink in served { sink.deliver() }
  }
}

/// A request whose response is collected in memory. All its answers are the defaults.
final class DataKind: RequestKind {
  /// The kind of all data requests, because it has no state.
  static let shared = DataKind()
}
