import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Synchronization

/// An upload. Each attempt makes its body anew, unless the upload is resumable.
struct UploadKind: RequestKind {
  let upload: UploadBody

  var traits: KindTraits {
    var traits: KindTraits = .hasBody
    if upload.transfer != nil { traits.insert(.isScheduled) }
    if upload.resumer != nil { traits.insert(.convertsInTask) }
    return traits
  }

  var body: UploadBody? { upload }
  var transfer: BackgroundTransfer? { upload.transfer }

  var interceptors: [any RequestInterceptor] { upload.resumer.map { [UploadRetrier(upload: $0)] } ?? [] }

  func convert(_ request: URLRequest, for core: RequestCore) throws -> URLRequest {
    core.noteInitialRequest(request)
    guard let resumer = upload.resumer, transfer?.completed == nil else { return request }
    return try resumer.request(from: request) { upload.made() }
  }

  func prepareBody(for attempt: Attempt) throws(AFError) -> Outcome<Attempt> {
    // The body of a resumable upload is made once.
    let isNew = upload.resumer == nil || attempt.core.uploadable == nil
    if let made = upload.resumer?.uploadable { return try attempt.bodyIsMade(made, isNew: isNew) }
    guard upload.runsUserCode || upload.transfer != nil || attempt.core.hasUploadedFile else {
      return try attempt.bodyIsMade(upload.made(), isNew: isNew)
    }
    return .task { [upload, core = attempt.core] in
      core.removeUploadedFile()
      return upload.made()
    } then: { (attempt, made) throws(AFError) in
      try attempt.bodyIsMade(made, isNew: isNew)
    }
  }

  /// Decides what the response of a resumable upload means.
  func acceptResult(of attempt: Attempt) throws(AFError) -> Outcome<Attempt> {
    guard let resumer = upload.resumer, let head = attempt.hops.exchange?.head else {
      return keepAnswer(of: attempt)
    }
    let body = attempt.core.state.withLock { $0.results.data }
    switch resumer.process(head, body: body, at: attempt.hops.url ?? "") {
    case .result: return keepAnswer(of: attempt)
    case .proceed: return .event(.continued)
    case .refusal:
      guard (200..<300).contains(head.status) else {
        throw .responseValidationFailed(reason: .unacceptableStatusCode(code: head.status))
      }
      throw .responseValidationFailed(
        reason: .customValidationFailed(error: ResumableUploadError.noProgress))
    case .failure(let error): throw .responseValidationFailed(reason: .customValidationFailed(error: error))
    }
  }

  /// Writes the response of an upload to the journal.
  private func keepAnswer(of attempt: Attempt) -> Outcome<Attempt> {
    guard let transfer, transfer.completed == nil, let exchange = attempt.hops.exchange,
      let head = exchange.head
    else { return .done }
    let body = attempt.core.state.withLock { $0.results.data }
    let hasOtherURL = attempt.hops.isRedirected || upload.resumer?.isActive == true
    let url = hasOtherURL ? exchange.url : nil
    return .task { transfer.noteAnswer(head, body, from: url) }
  }

  func schedule(_ attempt: Attempt) -> Outcome<Attempt> { attempt.schedule(transfer) }

  // MARK: The hops

  func handler(of request: WireRequest, in services: Services) throws(AFError) -> HopHandler? {
    transfer?.storedResponse.map { .journal($0) }
  }

  func ownerOfSecrets(in request: WireRequest) -> Origin {
    upload.resumer?.owner(orFirst: request.url, request.origin) ?? request.origin
  }

  func content(for request: URLRequest, of core: RequestCore) throws(AFError) -> RequestBody? {
    // Nothing is sent if the outcome is in the journal.
    if transfer?.completed != nil { return RequestBody.none }
    do throws(TransportFailure) {
      if let content = try upload.resumer?.content() { return content }
    } catch {
      throw AFError(error, url: request.url?.absoluteString ?? "")
    }
    switch core.uploadable {
    case .data(let data): return .bytes(data)
    case .file(let url, _):
      let source = try Self.fileSource(url)
      return .source(transfer.map { JournalledBody(source, $0) } ?? source)
    case .stream(let stream):
      return .source(core.source(of: stream, length: WireRequest.contentLength(request.allHTTPHeaderFields)))
    case nil: return nil
    }
  }

  func contentInMemory() -> Data? {
    guard let resumer = upload.resumer, resumer.isActive else { return nil }
    // A file that cannot be read has no content. The body of the attempt would be more than the part that is due.
    return resumer.contentInMemory() ?? Data()
  }

  private static func fileSource(_ url: URL) throws(AFError) -> any BodySource {
    guard url.isFileURL else {
      throw .sessionTaskFailed(
        error: URLError.made(
          .badURL, "\(url.shownText) is no file: URL; only files can be uploaded by URL.",
          url: url.absoluteString))
    }
    do throws(TransportFailure) {
      return try FileSource(path: url.path)
    } catch {
      throw AFError(error, url: url.absoluteString)
    }
  }

  func count(_ count: ByteCount, after last: ByteCount) -> ByteCount {
    upload.resumer?.window.map { count.inside($0, last: last) } ?? count
  }

  func informational(_ head: ResponseHead, at url: String) {
    if head.status == 104 { upload.resumer?.informational(head, at: url) }
  }

  func isIntermediate(_ head: ResponseHead, at url: String) -> Bool {
    upload.resumer?.isIntermediate(head, at: url) ?? false
  }

  var storedLocation: URL? { transfer?.location }

  // MARK: The end

  func held() { transfer?.endTurn() }

  func beginAgain(because cause: RequestCore.RetryCause) {
    if cause == .retrier { transfer?.noteRetry() }
    guard cause == .demand else { return }
    upload.resumer?.restart()
    transfer?.beginAgain(continuing: upload.resumer?.description.1)
  }

  func deliver(_ served: ShortList<any ResponseSink>, of core: RequestCore) {
    core.deliver(served, of: transfer)
  }
}

extension Attempt {
  fileprivate func bodyIsMade(
    _ result: Result<UploadContent, AFError>, isNew: Bool
  ) throws(AFError) -> Outcome<Attempt> {
    switch result {
    case .success(let uploadable):
      core.state.withLock { state in
        state.extras.uploadable = uploadable
        if case .file(let url, true) = uploadable { state.extras.uploadedFile = url }
      }
    case .failure(let error): core.fail(error)
    }
    if isNew, core.notifiesMonitors { request.notify(.uploadable(result)) }
    _ = try result.get()
    return .done
  }
}

extension RequestCore {
  /// The decisions about a resumable upload; `nil` for any other request.
  var resumer: UploadResumer? { body?.resumer }

  /// The body of an upload, once it is made.
  var uploadable: UploadContent? { state.withLock { $0.extras.uploadable } }

  func bodyStreamGiven(_ answer: UploadContent?) throws(AFError) {
    guard let answer else {
      throw .sessionTaskFailed(
        error: URLError.made(
          .requestBodyStreamExhausted, "The session's delegate gave no stream for the body of the request.",
          url: state.withLock { $0.results.request }?.url?.absoluteString ?? ""))
    }
    state.withLock { $0.extras.uploadable = answer }
  }

  /// Whether there is a file that was made for the upload, and is not removed yet.
  var hasUploadedFile: Bool { kind.body != nil && state.withLock { $0.extras.uploadedFile != nil } }

  /// Removes the file that was made for the upload. A missing file, or one that cannot be removed, is no error of the
  /// request.
  func removeUploadedFile() {
    guard let body else { return }
    let url = state.withLock { state in
      defer { state.extras.uploadedFile = nil }
      return state.extras.uploadedFile
    }
    if let url { try? body.fileManager.removeItem(at: url) }
  }
}
