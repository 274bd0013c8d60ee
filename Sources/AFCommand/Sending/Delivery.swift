import Alamofire
import Foundation

/// Sends a request and waits for the response. The body of an event stream is written as it arrives, because such a
/// response may have no end; any other body is collected.
struct Delivery {
  let environment: Environment
  let invocation: Invocation
  let request: URLRequest

  /// The response, and the error that matters to the user.
  struct Outcome: Sendable {
    let response: AFDataResponse<Data>
    let failure: AFError?
    /// Whether the parts of the response that the user wants to see have been written.
    let isWritten: Bool
  }

  func result() async throws(UsageError) -> Outcome {
    let session = try Session(invocation)
    let sending = session.streamRequest(request)
    let meter = environment.isErrorTerminal ? ProgressMeter(environment) : nil
    if let meter {
      // Serial, so that the line is drawn in order; the main queue waits for the response.
      sending.downloadProgress(queue: DispatchQueue(label: "af.progress")) { meter.moved($0) }
    }
    let body = ArrivingBody(ResponsePrinter(environment: environment, invocation: invocation), meter)
    // Serial, so that the head comes first.
    let queue = DispatchQueue(label: "af.body")
    let response = await withCheckedContinuation { continuation in
      sending.onHTTPResponse(on: queue) { response, completion in
        body.begin(response)
        completion(.allow)
      }
      sending.responseStream(on: queue) { stream in
        switch stream.event {
        case .stream(.success(let data)): body.add(data)
        case .complete(let completion): continuation.resume(returning: body.response(completion))
        }
      }
    }
    meter?.finish()
    return Outcome(response: response, failure: failure(of: response), isWritten: body.isWritten)
  }

  /// A redirect that was not to be followed is a response like any other.
  private func failure(of response: AFDataResponse<Data>) -> AFError? {
    guard invocation.redirects == .show, response.response != nil,
      (response.error?.underlyingError as? URLError)?.code == .httpTooManyRedirects
    else { return response.error }
    return nil
  }
}

/// The body of a response, which is collected, or written as it arrives.
private final class ArrivingBody: Sendable {
  private enum State {
    case collecting(Data)
    case writing
  }

  private let printer: ResponsePrinter
  private let meter: ProgressMeter?
  private let state = Mutex(State.collecting(Data()))

  init(_ printer: ResponsePrinter, _ meter: ProgressMeter?) {
    self.printer = printer
    self.meter = meter
  }

  var isWritten: Bool {
    state.withLock { state in
      if case .writing = state { true } else { false }
    }
  }

  /// Called once, before the body.
  func begin(_ response: HTTPURLResponse) {
    guard response.mimeType == "text/event-stream", printer.writesBodies else { return }
    meter?.finish()
    printer.begin(response)
    state.withLock { $0 = .writing }
  }

  /// Called for one chunk at a time.
  func add(_ data: Data) {
    let isCollected = state.withLock { state in
      guard case .collecting(var body) = state else { return false }
      // Not copied for each chunk, because no other reference is left.
      state = .writing
      body += data
      state = .collecting(body)
      return true
    }
    if !isCollected { printer.write(data) }
  }

  func response(_ completion: DataStreamRequest.Completion) -> AFDataResponse<Data> {
    let data = state.withLock { state in
      if case .collecting(let data) = state { data } else { Data() }
    }
    return AFDataResponse(
      request: completion.request, response: completion.response, data: data, metrics: completion.metrics,
      serializationDuration: 0, result: completion.error.map { .failure($0) } ?? .success(data))
  }
}
