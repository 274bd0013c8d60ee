import Alamofire
import Foundation

/// The exchange of a request: sends it and waits for the response. As the body arrives, it goes where the invocation
/// wants it.
struct Delivery {
  let environment: Environment
  let invocation: Invocation
  let outgoing: OutgoingRequest
  let archive: ArchiveFile?
  private let retry: TransientRetry?

  init(
    environment: Environment, invocation: Invocation, outgoing: OutgoingRequest, archive: ArchiveFile? = nil
  ) {
    self.environment = environment
    self.invocation = invocation
    self.outgoing = outgoing
    self.archive = archive
    // A stream can be sent once.
    let isOnce = if case .stream = outgoing.body { true } else { false }
    // Without retries no body is held back.
    let limit = isOnce ? 0 : invocation.effectiveRetryLimit
    // A default option gives way to what the arguments have.
    let isWanted = limit > 0 && (invocation.isRetryTyped || !invocation.hasNetrcPipe)
    retry = isWanted ? Self.retry(limit, invocation, environment) : nil
  }

  private static func retry(_ limit: Int, _ invocation: Invocation, _ environment: Environment)
    -> TransientRetry
  {
    let longest = min(TransientRetry.longestDelay, invocation.totalTimeout ?? .infinity)
    return TransientRetry(limit: limit, longestRetryAfter: longest) { message in
      if invocation.isQuiet { return }
      // The line of progress, if there is one.
      if environment.replacesErrorLines { environment.writeError("\r\u{1B}[K") }
      Command.complain(message, in: environment)
    }
  }

  /// The response, and the failure that matters to the user.
  struct DeliveryOutcome: Sendable {
    let response: HTTPURLResponse?
    let metrics: URLSessionTaskMetrics?
    let failure: String?
    /// Whether a status of failure says that the file is complete.
    let isComplete: Bool
    /// Whether the body was not saved because of the status.
    let isUnsaved: Bool
    /// The reason if the pager has failed.
    var pagerFailure: String?
  }

  /// Sends the request and returns its outcome.
  ///
  /// - Parameter kept: The cookies of earlier requests; the cookies of this one are stored there.
  func result(_ kept: KeptState) async throws(UsageError) -> DeliveryOutcome {
    if retry != nil { try invocation.refuseNetrcPipe() }
    let session = try Session(
      invocation, cookies: kept.cookies, archive: archive, askPassphrase: environment.askPassphrase)
    let resumption = try Resumption(invocation)
    // Nothing is asked and no argument is refused from here on, so that the pager can have the terminal.
    let pager = startPager()
    var shown = environment
    if let pager { shown.writeOutput = pager.write }
    let sending = request(resumption, in: session)
    if let retry { sending.validate { _, response, _ in retry.validate(response) } }
    let meter = ProgressMeter(environment, invocation)
    meter?.follow(sending)
    let printer = ResponsePrinter(environment: shown, invocation: invocation)
    let hops = printer.waitsForHops ? HopLog() : nil
    if let hops { sending.eventMonitor(hops.log) }
    let receiver = BodyReceiver(
      printer, resumption, meter, request: outgoing.request, sentBody: sentBody, hops: hops)
    environment.interruption.onSignal { sending.cancel() }
    let response = await receive(sending, receiver)
    meter?.finish()
    var outcome = receiver.finish(response)
    if outcome.response != nil { kept.store(from: session, invocation) }
    outcome.pagerFailure = pager.flatMap { environment.interruption.wait(for: $0) }
    return outcome
  }

  /// Starts the pager if there is output for it; `nil` without one.
  private func startPager() -> Pager? {
    let printer = ResponsePrinter(environment: environment, invocation: invocation)
    guard invocation.isPaged, environment.isOutputTerminal, printer.writesOutput else { return nil }
    if let pager = environment.startPager() { return pager }
    let name = Pager.command(environment.variables)
    Command.complain("The pager '\(name)' is not installed; the output is shown without it.", in: environment)
    return nil
  }

  /// Writes the request instead of sending it, with the fields that stored cookies and a partial file add to it.
  func showRequest(_ kept: KeptState) throws(UsageError) {
    var request = outgoing.request
    try Resumption(invocation)?.apply(to: &request)
    let cookies = kept.requestCookies(for: request.url).map { "\($0.name)=\($0.value)" }
    // A typed field is sent in place of stored cookies.
    if !cookies.isEmpty, !request.isTrace, request.value(forHTTPHeaderField: "Cookie") == nil {
      request.setValue(cookies.joined(separator: "; "), forHTTPHeaderField: "Cookie")
    }
    ResponsePrinter(environment: environment, invocation: invocation).writeOffline(request, sentBody)
  }

  private func receive(_ sending: DataRequest, _ receiver: BodyReceiver) async -> AFDataResponse<Data?> {
    // Serial, so that the head comes first.
    let queue = DispatchQueue(label: "af.body")
    let retry = retry
    return await withCheckedContinuation { continuation in
      // The request retains this handler, so that a strong reference would be a cycle.
      sending.onHTTPResponse(on: queue) { [weak sending] response, completion in
        let isDiscarded = sending.flatMap { retry?.discards(response, of: $0) } ?? false
        completion(isDiscarded || receiver.begin(response) ? .allow : .cancel)
      }
      sending.responseChunks(on: queue) { chunk in
        let takesBody = retry?.takeDiscarded().map { receiver.begin($0) } ?? true
        if !takesBody || !receiver.add(chunk) { sending.cancel() }
      }
      sending.response(queue: queue) { response in
        continuation.resume(returning: retry == nil ? response : Self.accepted(response))
      }
    }
  }

  /// Returns the last response without the failure that would have repeated its request.
  private static func accepted(_ response: AFDataResponse<Data?>) -> AFDataResponse<Data?> {
    guard response.error?.isResponseValidationError == true else { return response }
    return AFDataResponse(
      request: response.request, response: response.response, data: response.data, metrics: response.metrics,
      serializationDuration: response.serializationDuration, result: .success(response.data))
  }

  private func request(_ resumption: Resumption?, in session: Session) -> DataRequest {
    var request = outgoing.request
    resumption?.apply(to: &request)
    return outgoing.sent(request, in: session, invocation, retrier: retry)
  }

  /// The body of the request as it is shown.
  private var sentBody: SentBody {
    switch outgoing.body {
    case .ofRequest: (outgoing.plainBody ?? outgoing.request.httpBody).map { .data($0) } ?? .none
    case .file(let url): .note("the content of \(url.path)")
    case .stream: .note("the standard input")
    case .form(let form):
      form.contentLength <= SentBody.limit
        ? Self.encoded(form) : .note("a form of \(form.contentLength) bytes")
    }
  }

  private static func encoded(_ form: MultipartFormData) -> SentBody {
    (try? form.encode()).map { .data($0) } ?? .none
  }
}

/// The body of a request as it is shown.
enum SentBody {
  case none
  case data(Data)
  /// A text that replaces a body that is long, or gone.
  case note(String)

  static let limit: UInt64 = 1_000_000
}

/// The retries of `--retry`: after a temporary failure, if no part of a response was used. A body that has begun is not
/// requested again because its bytes would be written twice.
final class TransientRetry: RetryPolicy, @unchecked Sendable {
  // Unchecked, as its superclass is: its own state has a lock.
  private enum Use { case none, discarded(HTTPURLResponse), used }

  /// The longest delay in seconds. A longer `Retry-After` ends the retries.
  static let longestDelay: TimeInterval = 300

  /// The use of the response, for the loop and the pool.
  private let use = Mutex(Use.none)
  /// Called before each delay.
  private let announce: @Sendable (String) -> Void

  init(limit: Int, longestRetryAfter: TimeInterval, announce: @escaping @Sendable (String) -> Void) {
    self.announce = announce
    super.init(
      retryLimit: UInt(limit),
      retryableHTTPStatusCodes: RetryPolicy.defaultRetryableHTTPStatusCodes.union([429]),
      maximumRetryAfter: longestRetryAfter)
  }

  /// Called with the head of each response. Returns whether the request is sent again because of its status.
  func discards(_ response: HTTPURLResponse, of request: Request) -> Bool {
    let isDiscarded =
      retryableHTTPStatusCodes.contains(response.statusCode) && request.retryCount < retryLimit
      && request.request?.method.map { retryableHTTPMethods.contains($0) } ?? false
    use.withLock { $0 = isDiscarded ? .discarded(response) : .used }
    return isDiscarded
  }

  /// Returns a discarded response whose body is delivered, because the request is not sent again after all: the server
  /// asks for a long delay, or the body is too long to be held back.
  func takeDiscarded() -> HTTPURLResponse? {
    use.withLock { use in
      guard case .discarded(let response) = use else { return nil }
      use = .used
      return response
    }
  }

  /// Makes a discarded response a failure, so that the request is retried.
  func validate(_ response: HTTPURLResponse) -> Result<Void, any Error> {
    guard case .discarded = use.withLock({ $0 }) else { return .success(()) }
    return .failure(
      AFError.responseValidationFailed(reason: .unacceptableStatusCode(code: response.statusCode)))
  }

  override func shouldRetry(request: Request, dueTo error: any Error) -> Bool {
    if case .used = use.withLock({ $0 }) { return false }
    return super.shouldRetry(request: request, dueTo: error)
  }

  override func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    let attempt = "(\(request.retryCount + 1) of \(retryLimit))"
    let reason = Self.reason(error)
    super.retry(request, for: session, dueTo: error) { [announce] result in
      guard case .retryWithDelay(let backoff) = result else { return completion(result) }
      let delay = min(backoff, Self.longestDelay)
      announce("\(reason) Trying again in \(String(format: "%g", (delay * 10).rounded() / 10)) s \(attempt).")
      completion(.retryWithDelay(delay))
    }
  }

  private static func reason(_ error: any Error) -> String {
    guard let error = error.asAFError else { return error.localizedDescription }
    return error.responseCode.map(ReasonPhrase.sentence) ?? FailureMessage.text(error, isVerbose: false)
  }
}

/// The error message of a failed request, and the option that can help.
enum FailureMessage {
  static func text(_ error: AFError, isVerbose: Bool) -> String {
    guard let transport = error.underlyingError as? URLError else {
      return inOptions(error.localizedDescription)
    }
    let message = transport.localizedDescription
    return [inOptions(message), advice(transport)].compactMap { $0 }.joined(separator: " ")
  }

  /// The library's names, and the names of the options.
  private static let names = [
    (" Raise bodySizeLimit if such responses are expected.", ""),
    (" Raise bodySizeLimit if such files are expected.", ""),
    (" Raise decodingRatioLimit if such responses are expected.", ""),
    (" Raise headerSizeLimit if such responses are expected.", ""),
    (" Raise TransportOptions.redirectLimit to follow more.", ""),
    ("TransportOptions.trustStore", "--ca FILE"),
    (" or the proxy variable", " or the variable of the proxy"),
    ("TransportOptions.proxy", "--proxy"),
    ("TransportOptions.netrcFile", "--netrc-file"),
    (" Correct it, or set it to nil.", ""),
    (", because addressFamily allows only IPv4 addresses", ""),
    (", because addressFamily allows only IPv6 addresses", ""),
    (" (timeoutIntervalForRequest)", ""),
    (" (timeLimits.total)", ""),
    (" (timeoutIntervalForResource)", ""),
    ("HTTP/1.1 (httpVersions)", "--http1.1"),
    ("; use Data or a file.", "; name a file instead of standard input."),
    ("TransportOptions.clientIdentity", "--cert FILE"),
    ("TransportOptions.", "--"),
  ]

  /// Returns a text of the library with the options of the command instead of its names.
  static func inOptions(_ text: String) -> String {
    names.reduce(text) { $0.replacingOccurrences(of: $1.0, with: $1.1) }
  }

  private static func advice(_ error: URLError) -> String? {
    switch error.code {
    case .timedOut:
      switch error.timedOutPhase {
      case .total: "With --max-time SECONDS it may take longer."
      case .nameLookup, .connect, .tlsHandshake:
        "With --connect-timeout and --timeout SECONDS it may take longer."
      case .requestSend, .firstByte, .idle, nil: "With --timeout SECONDS it may take longer."
      }
    case .serverCertificateHasUnknownRoot: "Name its certificate with --ca FILE."
    case .httpTooManyRedirects: "With --max-redirects N more are followed, with --no-follow none."
    case .clientCertificateRequired: "Name a certificate with --cert FILE."
    default: nil
    }
  }
}
