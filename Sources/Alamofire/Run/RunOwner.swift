import Foundation
import FoundationNetworking
import HTTPWire

/// A request, as its run sees it: the caller's code, which adapts, retries and observes it. ``Request`` conforms.
///
/// ``RequestCore`` keeps the state of a request and does not hold its owner. The run retains the owner, as the caller
/// may do.
protocol RunOwner: AnyObject, Sendable {
  var core: RequestCore { get }

  /// Ends the request with `AFError.explicitlyCancelled`. Has no effect after its end.
  @discardableResult
  func cancel() -> Self

  /// Returns the cURL command of the request.
  func command(redacting redaction: Redaction?) -> String

  // MARK: Code that changes the course of the run

  /// The delegate of the hops of an attempt.
  var hopDelegate: any HopDelegate { get }

  /// Lets the adapters change the request of an attempt. Returns `nil` if the request was cancelled, or if its session
  /// has ended, before they have answered.
  func adapted(_ request: URLRequest) async -> Result<URLRequest, any Error>?

  /// Asks the retriers about a failure, and waits for the delay that they ask for.
  func retryDecision(about failure: AFError) async -> RetryDecision

  /// Returns the work that asks the delegate for a stream of the body; `nil` if the body is none.
  func questionAboutBodyStream(deadline: MonotonicTime?) -> (@Sendable () async throws(AFError) -> Void)?

  /// Notes that the request was the last one of a session that has ended.
  func wasLastOfSession()

  // MARK: The tasks

  /// Makes the task of an attempt, which observers see.
  func makeTask(_ record: TaskRecord) -> URLSessionTask

  /// Announces the task of the current attempt, which is sent when the request is resumed.
  func announceTask() async

  /// Notifies observers of the end of the current task, and lets them decide what is stored.
  func announceTaskEnd(_ exchange: Exchange?, _ error: AFError?) async

  /// Shows the file of a download before it is moved.
  func announceFile(_ file: URL) async

  // MARK: Notifications

  /// Notifies monitors or the delegate. The caller asks before whether anyone observes the event.
  func notify(_ notice: RunNotice)

  /// Notifies the monitors of the response of a handler.
  func parsed<Value: Sendable>(_ response: DataResponse<Value, AFError>)
  func parsed<Value: Sendable>(_ response: DownloadResponse<Value, AFError>)
  /// Notifies the monitors of the response that a task awaits, of the type that the request has.
  func parsed<Value: Sendable>(
    _ outcome: RequestOutcome, _ duration: TimeInterval, _ value: Result<Value, AFError>)
}

/// The decision of the retriers about a failure, after the delay that they have asked for.
enum RetryDecision: Sendable {
  case retry
  /// The failure stays, or the error replaces it.
  case refuse(AFError?)
}

/// An event of a run, for the monitors and the delegate of its request.
enum RunNotice: Sendable {
  /// The caller has changed the state.
  ///
  /// - `concernsTask`: Whether monitors knew the task of the current attempt by then.
  case changed(RequestState, concernsTask: Bool)

  // MARK: The request of an attempt
  case initialRequest(URLRequest)
  case created(URLRequest)
  case creationFailed(AFError)
  case adapted(URLRequest, from: URLRequest)
  case adaptationFailed(URLRequest, AFError)

  // MARK: The transfer
  /// The head of a response whose body is read.
  case head(HTTPURLResponse)
  /// Bytes of the body of a response.
  case data(Data)
  case bytes(from: ByteCount, to: ByteCount)
  /// An evaluator has refused the server. The attempt will end with the error.
  case failedEarly(AFError)

  // MARK: A WebSocket connection
  case webSocketOpened(protocol: String?)
  case webSocketClosed(WebSocketCloseCode, reason: Data?)

  // MARK: The end of an attempt
  case validated(URLRequest?, Exchange, Data?, AFError?)
  /// An attempt with a task has ended.
  case completed(AFError?)
  /// The body of an upload was created, or could not be created.
  case uploadable(Result<UploadContent, AFError>)
  case destination(URL)
  case stored(Result<URL, AFError>)

  // MARK: The end of a run
  /// Another attempt follows, and replaces the responses of the handlers.
  case retrying(after: ShortList<any ResponseSink>)
  /// The request has ended. Its state is final.
  ///
  /// - `isLate`: Whether it had ended before, and only handlers were served that were added since.
  case finished(ShortList<any ResponseSink>, isLate: Bool)
}

/// The body of an upload, as `UploadRequest.Uploadable` shows it.
///
/// Unchecked, because an `InputStream` is not `Sendable`: the attempt that reads the stream is its only user.
enum UploadContent: @unchecked Sendable {
  /// Bytes in memory.
  case data(Data)
  /// A file, and whether it is removed when the request has ended.
  case file(URL, shouldRemove: Bool)
  /// A stream, which can be read once.
  case stream(InputStream)

  var stream: InputStream? {
    if case .stream(let stream) = self { stream } else { nil }
  }
}
