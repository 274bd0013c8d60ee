import Alamofire
import Foundation

/// Sends a request and waits for the response, whose body goes where the invocation wants it as it arrives.
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
    retry = limit > 0 ? Self.retry(limit, invocation, environment) : nil
  }

  private static func retry(_ limit: Int, _ invocation: Invocation, _ environment: Environment)
    -> TransientRetry
  {
    let longest = min(TransientRetry.longestDelay, invocation.totalTimeout ?? .infinity)
    return TransientRetry(limit: limit, longestRetryAfter: longest) { message in
      if invocation.isQuiet { return }
      // The line of progress, if there is one.
      if environment.isErrorTerminal { environment.writeError("\r\u{1B}[K") }
      Command.complain(message, in: environment)
    }
  }

  /// The response, and the failure that matters to the user.
  struct Outcome: Sendable {
    let response: HTTPURLResponse?
    let metrics: URLSessionTaskMetrics?
    let failure: String?
    /// Whether a status of failure says that the file is complete.
    let isComplete: Bool
  }

  /// Sends the request and returns its outcome.
  ///
  /// - Parameter kept: The cookies of earlier requests; those of this one are stored there.
  func result(_ kept: KeptState) async throws(UsageError) -> Outcome {
    let session = try Session(
      invocation, cookies: kept.cookies, archive: archive, askPassphrase: environment.askPassphrase)
    let resumption = try Resumption(invocation)
    let sending = request(resumption, in: session)
    if let retry { sending.validate { _, response, _ in retry.validate(response) } }
    let meter = ProgressMeter(environment, invocation)
    if let meter {
      // Serial, so that the line is drawn in order; the main queue waits for the response.
      let queue = DispatchQueue(label: "af.progress")
      sending.downloadProgress(queue: queue) { meter.received($0) }
      if invocation.hasBody { sending.uploadProgress(queue: queue) { meter.sent($0) } }
    }
    let printer = ResponsePrinter(environment: environment, invocation: invocation)
    let hops = printer.waitsForMetrics ? HopLog() : nil
    if let hops { sending.eventMonitor(hops.log) }
    let receiver = BodyReceiver(
      printer, resumption, meter, request: outgoing.request, sentBody: sentBody, hops: hops)
    environment.interruption.onSignal { sending.cancel() }
    let response = await receive(sending, receiver)
    meter?.finish()
    let outcome = receiver.finish(response)
    if outcome.response != nil { kept.store(from: session, invocation) }
    return outcome
  }

  /// Writes the request in place of sending it.
  func showRequest() {
    ResponsePrinter(environment: environment, invocation: invocation).writeOffline(outgoing.request, sentBody)
  }

  private func receive(_ sending: DataRequest, _ receiver: BodyReceiver) async -> AFDataResponse<Data?> {
    // Serial, so that the head comes first.
    let queue = DispatchQueue(label: "af.body")
    let retry = retry
    return await withCheckedContinuation { continuation in
      // The request keeps this handler, so that a strong reference would be a cycle.
      sending.onHTTPResponse(on: queue) { [weak sending] response, completion in
        let isDiscarded = sending.flatMap { retry?.discards(response, of: $0) } ?? false
        completion(isDiscarded || receiver.begin(response) ? .allow : .cancel)
      }
      sending.responseChunks(on: queue) { chunk in
        let isWanted = retry?.takeDiscarded().map { receiver.begin($0) } ?? true
        if !isWanted || !receiver.add(chunk) { sending.cancel() }
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
    let sending = made(request, in: session)
    guard invocation.authentication == .digest, let credentials = invocation.credentials else {
      return sending
    }
    return sending.authenticate(username: credentials.user, password: credentials.password ?? "")
  }

  private func made(_ request: URLRequest, in session: Session) -> DataRequest {
    switch outgoing.body {
    case .ofRequest: session.request(request, interceptor: retry)
    case .file(let url): session.upload(url, with: request, interceptor: retry)
    case .stream(let stream): session.upload(stream, with: request)
    case .form(let form): session.upload(multipartFormData: form, with: request, interceptor: retry)
    }
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
  /// Words in place of a body that is long, or gone.
  case note(String)

  static let limit: UInt64 = 1_000_000
}
