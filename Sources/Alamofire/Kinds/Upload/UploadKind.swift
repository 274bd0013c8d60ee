import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Synchronization

/// An upload. Each attempt creates its body again, unless the upload is resumable.
final class UploadKind: RequestKind {
  let upload: UploadBody

  init(upload: UploadBody) { self.upload = upload }

  var traits: KindTraits {
    var traits: KindTraits = .hasBody
    if upload.transfer != nil { traits.insert(.isScheduled) }
    if upload.resumer != nil { traits.formUnion([.convertsInTask, .takesSteps]) }
    if upload.runsUserCode { traits.insert(.makesBodyByUserCode) }
    return traits
  }

  private var transfer: BackgroundTransfer? { upload.transfer }

  func convert(_ request: URLRequest, for core: RequestCore) throws -> URLRequest {
    let request = request.withoutBody
    transfer?.noteInitialRequest(request)
    guard let resumer = upload.resumer, transfer?.completed == nil else { return request }
    resumer.noteInitial(request)
    return try resumer.request(from: request) { upload.made() }
  }

  func prepareBody(for attempt: Attempt) throws(AFError) -> Outcome<Attempt> {
    // The body of a resumable upload is created once.
    let isNew = upload.resumer == nil || upload.content == nil
    if let made = upload.resumer?.uploadable { return try bodyIsMade(made, for: attempt, isNew: isNew) }
    guard upload.runsUserCode || upload.transfer != nil || upload.hasMadeFile else {
      return try bodyIsMade(upload.made(), for: attempt, isNew: isNew)
    }
    return .task { [upload] in
      upload.made()
    } then: { (attempt, made) throws(AFError) in
      try self.bodyIsMade(made, for: attempt, isNew: isNew)
    }
  }

  private func bodyIsMade(
    _ result: Result<UploadContent, AFError>, for attempt: Attempt, isNew: Bool
  ) throws(AFError) -> Outcome<Attempt> {
    switch result {
    case .success(let content): upload.use(content)
    case .failure(let error): attempt.core.fail(error)
    }
    if isNew, attempt.core.notifiesMonitors { attempt.request.notify(.uploadable(result)) }
    _ = try result.get()
    return .done
  }

  /// Decides what the response of a resumable upload means.
  func acceptResult(of attempt: Attempt) throws(AFError) -> Outcome<Attempt> {
    guard let resumer = upload.resumer, let head = attempt.hops.exchange?.head else {
      return recordResponse(of: attempt)
    }
    let body = attempt.core.state.withLock { $0.results.data }
    switch resumer.process(head, body: body, at: attempt.hops.url ?? "") {
    case .result: return recordResponse(of: attempt)
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
  private func recordResponse(of attempt: Attempt) -> Outcome<Attempt> {
    guard let transfer, transfer.completed == nil, let exchange = attempt.hops.exchange,
      let head = exchange.head
    else { return .done }
    let body = attempt.core.state.withLock { $0.results.data }
    // Without a redirect it is not the URL that was sent, because an adapter may have added secrets to that one.
    let url = attempt.hops.isRedirected ? exchange.url : upload.resumer?.uploadURL
    return .task { transfer.noteAnswer(head, body, from: url) }
  }

  func schedule(_ attempt: Attempt) -> Outcome<Attempt> {
    guard let transfer else { return .done }
    let resumer = upload.resumer
    return attempt.schedule(transfer, isSentAtOnce: resumer?.endsWithoutContent == true) {
      (request) throws(AFError) in
      guard let resumer else { return try transfer.describe(request, kind: .upload) }
      let (policy, upload) = resumer.description
      try transfer.describe(request, kind: .upload, resumption: policy, continuing: upload)
    }
  }

  // MARK: The hops

  func handler(of request: WireRequest, in services: Services) throws(AFError) -> HopHandler? {
    transfer?.storedResponse.map { .journal($0) }
  }

  func ownerOfSecrets(in request: WireRequest) -> Origin? {
    upload.resumer?.owner(orFirst: request.url, request.origin)
  }

  func content(for request: URLRequest, of core: RequestCore) throws(AFError) -> RequestBody? {
    // The request is not sent if the outcome is in the journal.
    if transfer?.completed != nil { return RequestBody.none }
    do throws(TransportFailure) {
      if let content = try upload.resumer?.content() { return content }
    } catch {
      throw AFError(error, url: request.url?.absoluteString ?? "")
    }
    switch upload.content {
    case .data(let data): return .bytes(data)
    case .file(let url, _):
      let source = try Self.fileSource(url)
      return .source(transfer.map { JournalledBody(source, $0) } ?? source)
    case .stream(let stream):
      return .source(core.source(of: stream, length: WireRequest.contentLength(request.allHTTPHeaderFields)))
    case nil: return nil
    }
  }

  // Neither resumable uploads nor background sessions send trailers.
  var trailers: RequestTrailers? { upload.resumer == nil && transfer == nil ? upload.trailers : nil }

  func redirectFollowed() {
    upload.resumer?.redirected()
    transfer?.noteRedirected()
  }

  var hasContentInMemory: Bool { upload.resumer?.isActive ?? false }

  func contentInMemory() throws(AFError) -> Data? {
    guard let resumer = upload.resumer, resumer.isActive else {
      try transfer?.noteSent()
      return nil
    }
    return try resumer.contentInMemory()
  }

  private static func fileSource(_ url: URL) throws(AFError) -> any BodySource {
    guard url.isFileURL else { throw notAFile(url) }
    do throws(TransportFailure) {
      return try FileSource(path: url.path)
    } catch {
      throw AFError(error, url: url.absoluteString)
    }
  }

  /// Returns the error for a body whose URL is not the URL of a file.
  fileprivate static func notAFile(_ url: URL) -> AFError {
    .sessionTaskFailed(
      error: URLError(
        .badURL, "\(url.shownText) is no file: URL; only files can be uploaded by URL.",
        url: url.absoluteString))
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

  func resumed() { transfer?.noteResumed() }

  func held() { transfer?.endTurn() }

  func forgetTransfer() { transfer?.remove() }

  var leftovers: (@Sendable () -> Void)? {
    guard upload.hasMadeFile else { return nil }
    return { [upload] in upload.removeMadeFile() }
  }

  func count(after exchange: Exchange) -> ResultCount { ResultCount(uploaded: upload.resumer?.uploadedCount) }

  func beginAgain(because cause: RequestCore.RetryCause) {
    if cause == .retrier { transfer?.noteRetry() }
    guard cause == .demand else { return }
    upload.resumer?.restart()
    transfer?.beginAgain(continuing: upload.resumer?.description.1)
  }

  var runNumber: Int { transfer?.run ?? 0 }

  func deliver(
    _ served: ShortList<any ResponseSink>, of core: RequestCore, after run: Int, _ announce: () -> Void
  ) {
    core.deliver(served, of: transfer, after: run, announce)
  }
}

extension URLRequest {
  /// The request without its body, which an upload does not send. Otherwise adapters would compress or sign it.
  fileprivate var withoutBody: URLRequest {
    guard isChangeable, httpBody != nil || httpBodyStream != nil else { return self }
    var request = self
    request.httpBody = nil
    request.httpBodyStream = nil
    return request
  }
}

extension ByteCount {
  /// Returns the count for the whole of a resumable upload, from the count for one request. The count never falls
  /// within an attempt.
  fileprivate func inside(_ window: UploadResumer.Window, last: ByteCount) -> ByteCount {
    var count = self
    count.sent = max(last.sent, window.offset.map { $0 + sent } ?? 0)
    count.expectedToSend = window.length
    return count
  }
}

/// The body of an upload.
final class UploadBody: Sendable {
  /// Makes the body of an attempt. May block.
  private let make: @Sendable () throws -> UploadContent
  /// Whether the body cannot be made again, so that further attempts send the file that was made; `nil` for a body
  /// that is not a form. Asked before each further attempt.
  private let isSpent: (@Sendable () -> Bool)?
  let fileManager: FileManager
  /// Whether making the body runs user code, which may block.
  let runsUserCode: Bool
  /// The upload of a background session; `nil` in others.
  let transfer: BackgroundTransfer?
  /// Guarded by the lock of this class.
  private struct State {
    /// The resumer of a resumable upload.
    var resumer: UploadResumer?
    /// The body of the last attempt, and the file that was created from it.
    var content: UploadContent?
    var madeFile: URL?
    /// The trailer fields that follow the body.
    var trailers: RequestTrailers?
  }

  /// The body and its resumer, for the loop, attempts and the threads of users.
  private let state = Mutex(State())

  init(
    fileManager: FileManager, transfer: BackgroundTransfer?, runsUserCode: Bool,
    isSpent: (@Sendable () -> Bool)?, _ make: @escaping @Sendable () throws -> UploadContent
  ) {
    self.fileManager = fileManager
    self.transfer = transfer
    self.runsUserCode = runsUserCode
    self.isSpent = isSpent
    self.make = make
  }

  /// The decisions about a resumable upload; `nil` for an ordinary one.
  var resumer: UploadResumer? { state.withLock { $0.resumer } }

  /// Returns the decisions, which are the given ones if there were none.
  func resumer(orAdd new: UploadResumer) -> UploadResumer {
    state.withLock { state in
      let used = state.resumer ?? new
      state.resumer = used
      return used
    }
  }

  /// The body of the last attempt; `nil` before it was created.
  var content: UploadContent? { state.withLock { $0.content } }

  /// The trailer fields of an ordinary upload.
  var trailers: RequestTrailers? {
    get { state.withLock { $0.trailers } }
    set { _ = state.withLock { replace(&$0.trailers, with: newValue) } }
  }

  /// Keeps the body of an attempt.
  func use(_ content: UploadContent) { _ = state.withLock { replace(&$0.content, with: content) } }

  /// Replaces the stream of the body by one that a delegate gave.
  func use(_ answer: UploadContent?, of request: @autoclosure () -> URLRequest?) throws(AFError) {
    guard let answer else {
      throw .sessionTaskFailed(
        error: URLError(
          .requestBodyStreamExhausted, "The session's delegate gave no stream for the body of the request.",
          url: request()?.url?.absoluteString ?? ""))
    }
    use(answer)
  }

  /// Whether there is a file that was created for the upload, and has not been removed yet.
  var hasMadeFile: Bool { state.withLock { $0.madeFile != nil } }

  /// Removes the file that was created for the upload. A missing file, or one that cannot be removed, does not fail the
  /// request.
  func removeMadeFile() {
    if let url = state.withLock({ $0.madeFile.take() }) { try? fileManager.removeItem(at: url) }
  }

  /// Makes the body of an attempt, in place of the file of an earlier one if there is any. Blocks for as long as the
  /// caller's code does. A new file is removed with the request even if no attempt sends it.
  func made() -> Result<UploadContent, AFError> {
    let earlier = state.withLock { $0.madeFile }
    if let earlier, let isSpent {
      if isSpent() { return .success(.file(earlier, shouldRemove: true)) }
      // There may be no room for two files of a large form.
      removeMadeFile()
    }
    var content = makeContent()
    if case .failure = content, isSpent == nil, earlier != nil {
      // The caller's code may write to the same path again, and refuse to replace a file.
      removeMadeFile()
      content = makeContent()
    }
    guard case .success(let new) = content else { return content }
    var file: URL?
    if case .file(let url, true) = new { file = url }
    state.withLock { $0.madeFile = file }
    // The caller may name one file for all attempts.
    if isSpent == nil, let earlier, earlier.path != file?.path { try? fileManager.removeItem(at: earlier) }
    return content
  }

  private func makeContent() -> Result<UploadContent, AFError> {
    do {
      guard let transfer else { return .success(try make()) }
      return .success(try transfer.uploadable(make))
    } catch {
      return .failure(error as? AFError ?? .createUploadableFailed(error: error))
    }
  }
}

extension BackgroundTransfer {
  /// Whether the file that a resumable upload sends is still the one in the journal.
  var hasSameFile: Bool {
    guard let stored = storedBody else { return false }
    let file = UploadFileIdentity(URL(fileURLWithPath: stored.path))
    return file?.size == stored.size && (stored.modified == nil || stored.modified == file?.modified)
  }

  /// Returns the file that the upload sends. A body in memory is written to one, so that another process has it too.
  fileprivate func uploadable(
    _ make: () throws -> UploadContent
  ) throws -> UploadContent {
    if bodyFile == nil {
      switch try make() {
      case .data(let data): try spool(data)
      case .file(let url, let isOwned):
        // Before the journal is written: another process would find an upload without a body in it.
        guard url.isFileURL else { throw UploadKind.notAFile(url) }
        // Another process, or another boot, would find other bytes in /proc.
        if !isOwned, let content = (try? GeneratedFile.content(of: url.path)).flatMap({ $0 }) {
          try spool(Data(content))
        } else {
          try adopt(url, isOwned: isOwned)
        }
      case .stream:
        throw AFError.sessionTaskFailed(
          error: URLError(
            .unsupportedURL,
            "A background session cannot upload an InputStream, which no other process could read again; "
              + "upload a file.", url: nil))
      }
    }
    try checkOwnBody()
    return bodyFile.map { .file($0, shouldRemove: false) } ?? .data(Data())
  }

  /// Throws if the body that belongs to the journal has another size than it had, because a crash of the machine or
  /// another program has changed it. The server would take it for the whole body. A file of the caller may change.
  private func checkOwnBody() throws(AFError) {
    // A resumable upload that the server has named has an error of its own, see `hasSameFile`.
    guard upload == nil, let body = storedBody, body.isOwned || body.modified == nil,
      let size = UploadFileIdentity(URL(fileURLWithPath: body.path))?.size, size != body.size
    else { return }
    throw .sessionTaskFailed(
      error: URLError(
        .cannotOpenFile,
        "The body of the upload at \(body.path) has \(size) bytes instead of \(body.size): it was changed, or a crash "
          + "of the machine has damaged it. Send the upload again.", url: nil))
  }
}
