import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Synchronization

/// A resumable upload: its body, and the decisions about its requests.
///
/// Each request of the protocol begins as an attempt does: it is converted, adapted and sent. The attempt asks the
/// resumer for the request, for the content, and for the meaning of the response.
final class UploadResumer: Sendable {
  /// The body, which is the same for all requests.
  enum Body: Sendable {
    case data(Data)
    case file(URL, UploadFileIdentity, isRemoved: Bool)

    var length: Int64 {
      switch self {
      case .data(let data): Int64(data.count)
      case .file(_, let identity, _): identity.size
      }
    }
  }

  struct ResumerState: Sendable {
    var policy: Result<UploadResumption.Policy, ResumableUploadError>
    /// The result of making the body.
    var uploadable: Result<UploadContent, AFError>?
    var body: Body?
    var resumption: UploadResumption?
    /// The request that is being sent; `nil` if it is an ordinary one.
    var request: UploadResumption.Request?
    /// The method of the caller's request.
    var method = "GET"
    /// The caller's request before its adapters, which may add secrets to the URL.
    var initial: UploadResource?
    /// The caller's request that was sent first. Credentials go only to the origin of its URL.
    var creation: UploadResource?
    var isComplete = false
    var checkpointHandler: (queue: DispatchQueue, closure: @Sendable (Data) -> Void)?
    /// The URL in the checkpoint that the handler has received.
    var notedURL: String?
  }

  /// The checkpoint of another process.
  private let checkpoint: Data?
  private let isRemoved: Bool
  /// The transfer of a background session, whose journal has the upload; `nil` in other sessions.
  let transfer: BackgroundTransfer?
  /// The decisions about the upload, for the loop, attempts and the threads of users.
  private let state: Mutex<ResumerState>

  init(
    _ policy: Result<UploadResumption.Policy, ResumableUploadError>, checkpoint: Data? = nil,
    isRemoved: Bool = false, transfer: BackgroundTransfer? = nil
  ) {
    state = Mutex(ResumerState(policy: policy))
    self.checkpoint = checkpoint
    self.isRemoved = isRemoved
    self.transfer = transfer
  }

  /// Continues the upload of a journal. `nil` if it is not resumable.
  init?(_ transfer: BackgroundTransfer) {
    guard let policy = transfer.resumption else { return nil }
    state = Mutex(ResumerState(policy: .success(policy)))
    checkpoint = nil
    isRemoved = false
    self.transfer = transfer
  }

  /// Uses other options, unless the upload has begun.
  func use(_ policy: Result<UploadResumption.Policy, ResumableUploadError>) {
    state.withLock { state in
      if state.resumption == nil { state.policy = policy }
    }
  }

  /// Forgets everything but the options and the handler, because the caller sends the upload again.
  func restart() {
    _ = state.withLock { state in
      var new = ResumerState(policy: state.policy)
      new.checkpointHandler = state.checkpointHandler
      return replace(&state, with: new)
    }
  }

  // MARK: The body

  /// The body of the attempt; `nil` before it was created.
  var uploadable: Result<UploadContent, AFError>? { state.withLock { $0.uploadable } }

  /// Makes the body, unless there is one. It is retained for all attempts, because parts of it were sent.
  private func prepareBody(_ make: () -> Result<UploadContent, AFError>) throws {
    if case .success? = uploadable { return try checkFile() }
    let uploadable = make()
    var body: Body?
    switch uploadable {
    case .success(.data(let data)): body = .data(data)
    case .success(.file(let url, let isRemoved)): body = try self.body(of: url, isRemoved: isRemoved)
    case .success(.stream): throw ResumableUploadError.bodyIsStream
    case .failure: break
    }
    let resumption = try body.map { try self.resumption(of: $0) }
    _ = state.withLock { state in
      state.resumption = resumption
      return (replace(&state.uploadable, with: uploadable), replace(&state.body, with: body))
    }
  }

  /// Returns the body of a file; `nil` if there is no such file, so that the ordinary request has an error that says
  /// more. Throws if an upload is to be continued, because the ordinary request would begin it again.
  private func body(of url: URL, isRemoved: Bool) throws -> Body? {
    // The bytes of a file in /proc are others whenever it is read. A URL of another scheme can have such a path, too.
    if url.isFileURL, let content = (try? GeneratedFile.content(of: url.path)).flatMap({ $0 }) {
      return .data(Data(content))
    }
    if let identity = UploadFileIdentity(url) {
      return .file(url, identity, isRemoved: isRemoved || transfer?.owns(url) == true)
    }
    guard checkpoint != nil || transfer?.upload != nil else { return nil }
    do throws(TransportFailure) {
      if url.isFileURL { _ = try FileSource(path: url.path) }
    } catch {
      throw AFError(error, url: url.absoluteString)
    }
    throw ResumableUploadError.fileHasChanged
  }

  private func resumption(of body: Body) throws(ResumableUploadError) -> UploadResumption {
    let policy = try state.withLock { $0.policy }.get()
    if let (upload, mayBeComplete) = transfer?.upload, let resource = upload.resource {
      guard transfer?.hasSameFile == true else { throw .fileHasChanged }
      return UploadResumption(
        length: body.length, resource: resource, dialect: upload.dialect, policy: policy,
        mayBeComplete: mayBeComplete, statusAfterLastByte: upload.statusAfterLastByte)
    }
    guard
      let checkpoint = try checkpoint.map({ data throws(ResumableUploadError) in try UploadCheckpoint(data) })
    else { return UploadResumption(length: body.length, policy: policy) }
    guard let resource = checkpoint.upload.resource else { throw .invalidCheckpoint }
    if !isRemoved {
      guard case .file(_, checkpoint.file, _) = body else { throw .fileHasChanged }
    }
    return UploadResumption(
      length: body.length, resource: resource, dialect: checkpoint.upload.dialect, policy: policy,
      statusAfterLastByte: checkpoint.upload.statusAfterLastByte, isRemoved: isRemoved)
  }

  private func checkFile() throws(ResumableUploadError) {
    guard case .file(let url, let identity, _) = state.withLock({ $0.body }) else { return }
    guard UploadFileIdentity(url) == identity else { throw .fileHasChanged }
  }

  // MARK: A request

  /// Returns the next request instead of the caller's.
  func request(
    from original: URLRequest, body make: () -> Result<UploadContent, AFError>
  ) throws -> URLRequest {
    try prepareBody(make)
    let next = state.withLock { state -> (UploadResumption, UploadResumption.Request)? in
      state.method = original.httpMethod ?? "GET"
      guard let request = state.resumption?.next(), let resumption = state.resumption else { return nil }
      state.request = request
      return (resumption, request)
    }
    guard let (resumption, request) = next, original.isChangeable else { return original }
    var made = original
    if request.concernsUpload {
      guard let url = resumption.resource.flatMap({ URL(wire: $0.url) }) else {
        throw ResumableUploadError.unusableUploadURL
      }
      made.url = url
    }
    if request.part == nil { made.cachePolicy = .reloadIgnoringLocalCacheData }
    made.httpMethod = resumption.method(of: request, original: original.httpMethod ?? "GET")
    made.httpBody = nil
    made.httpBodyStream = nil
    made.headers = HTTPHeaders(original.headers.filter { resumption.keeps($0.name, in: request) })
    for field in resumption.fields(of: request) { made.headers.update(field) }
    return made
  }

  /// Returns the content of the request; `nil` if it is an ordinary one, whose content is the whole body.
  func content() throws(TransportFailure) -> RequestBody? {
    let (request, body) = state.withLock { ($0.request, $0.body) }
    guard let request, let body else { return nil }
    guard let part = request.part else { return RequestBody.none }
    guard part.count > 0 else { return .bytes(Data()) }
    switch body {
    case .data(let data):
      let start = data.startIndex + Int(part.offset)
      return .source(
        journalled(UploadPartSource(data[start..<start + Int(part.count)], part, of: self), part))
    case .file(let url, let identity, _):
      let file = try FileSource(path: url.path, range: part.offset..<part.end)
      return .source(journalled(UploadPartSource(file, url, identity, part, of: self), part))
    }
  }

  /// Returns the content of the request in memory, for a class of `URLProtocol`.
  ///
  /// The content counts as sent, because a class does not report what it sends.
  func contentInMemory() throws(AFError) -> Data {
    let (request, body) = state.withLock { ($0.request, $0.body) }
    guard let part = request?.part, let body else { return Data() }
    let content = try content(of: part, in: body)
    if part.isLast { try transfer?.noteSent() }
    contentRead(upTo: part.end)
    return content
  }

  private func content(of part: UploadResumption.Part, in body: Body) throws(AFError) -> Data {
    switch body {
    case .data(let data): return Data(data.dropFirst(Int(part.offset)).prefix(Int(part.count)))
    case .file(let url, let identity, _):
      guard part.count > 0 else { return Data() }
      let content: Data
      do {
        content = try Self.bytes(of: url, part)
      } catch {
        throw .sessionTaskFailed(error: error)
      }
      guard UploadFileIdentity(url) == identity, content.count == part.count else {
        throw .sessionTaskFailed(error: ResumableUploadError.fileHasChanged)
      }
      return content
    }
  }

  private static func bytes(of url: URL, _ part: UploadResumption.Part) throws -> Data {
    let file = try FileHandle(forReadingFrom: url)
    defer { try? file.close() }
    try file.seek(toOffset: UInt64(part.offset))
    return try file.read(upToCount: Int(part.count)) ?? Data()
  }

  /// Notes that content was read up to a position of the body, in order to be sent.
  func contentRead(upTo end: Int64) {
    state.withLock { $0.resumption?.contentRead(upTo: end) }
  }

  /// Notes that a redirect of the current request is followed.
  func redirected() {
    state.withLock { $0.resumption?.redirected() }
  }

  private func journalled(_ source: any BodySource, _ part: UploadResumption.Part) -> any BodySource {
    transfer.map { JournalledBody(source, $0, isEnd: part.isLast) } ?? source
  }

  /// Whether the current request ends the upload, and has no content.
  var endsWithoutContent: Bool {
    state.withLock { $0.request?.part.map { $0.isLast && $0.count == 0 } ?? false }
  }

  /// Whether the current request is one of the protocol.
  var isActive: Bool { state.withLock { $0.request != nil } }

  /// The URL of the upload, as the server has named it, if the current request is for that URL. `nil` for the caller's
  /// URL.
  var uploadURL: URL? {
    state.withLock { state in
      guard state.request?.concernsUpload == true else { return nil }
      return state.resumption?.resource.flatMap { URL(wire: $0.url) }
    }
  }

  /// Notes the request before its adapters, which run again when the upload is continued.
  func noteInitial(_ request: URLRequest) {
    let initial = request.url.flatMap { UploadResource(url: $0.absoluteString) }
    state.withLock { if $0.initial == nil { $0.initial = initial } }
  }

  /// Returns the origin to which credentials may be sent: the first request's, or the origin of the request that
  /// created the upload in another process.
  func owner(orFirst url: String, _ origin: Origin) -> Origin {
    let earlier = transfer?.upload?.0 ?? checkpoint.flatMap { try? UploadCheckpoint($0).upload }
    return state.withLock { state in
      if state.creation == nil {
        let sent = UploadResource(url: url)
        let isSame = state.initial.map { $0.origin == sent?.origin } ?? false
        state.creation = earlier?.creation ?? (isSame ? state.initial : sent?.withoutQuery)
      }
      let needsTLS = state.creation?.origin.scheme == "https"
      state.resumption?.needsTLS = needsTLS
      return state.creation?.origin ?? origin
    }
  }

  // MARK: Progress

  /// The position of the request's content in the body, and the length of the body.
  struct Window {
    /// `nil` if the request has no content.
    let offset: Int64?
    let length: Int64
  }

  /// `nil` if the request is an ordinary one.
  var window: Window? {
    state.withLock { state in
      guard let request = state.request, let length = state.body?.length else { return nil }
      return Window(offset: request.part?.offset, length: length)
    }
  }

  /// The number of bytes that the server has; `nil` if the request is an ordinary one.
  var uploadedCount: Int64? {
    state.withLock { state in
      guard state.request != nil, let resumption = state.resumption else { return nil }
      return state.isComplete ? resumption.length : resumption.acknowledged
    }
  }

  // MARK: Responses

  /// Reads an informational response, which may name the upload.
  func informational(_ head: ResponseHead, at url: String) {
    state.withLock { _ = $0.resumption?.informational(UploadAnswer(head, now: .now), at: url) }
    noteUpload()
  }

  /// Whether another request follows a response.
  func isIntermediate(_ head: ResponseHead, at url: String) -> Bool {
    state.withLock { state in
      guard state.request != nil, var copy = state.resumption else { return false }
      return copy.process(UploadAnswer(head, now: .now), support: TusSupport(head), at: url) == .proceed
    }
  }

  /// Decides about the response of a request.
  func process(_ head: ResponseHead, body: Data?, at url: String) -> UploadResumption.Verdict {
    let verdict = state.withLock { state -> UploadResumption.Verdict in
      guard state.request != nil, var resumption = state.resumption else { return .result }
      let answer = UploadAnswer(head, body: body, now: .now)
      let verdict = resumption.process(answer, support: TusSupport(head), at: url)
      state.resumption = resumption
      if verdict == .result, (200..<300).contains(head.status) { state.isComplete = true }
      return verdict
    }
    noteUpload()
    return verdict
  }

  /// Returns the delay before another attempt; `nil` if there is none.
  func delay(after failure: UploadResumption.Failure, random: Double) -> Duration? {
    state.withLock { $0.resumption?.delay(after: failure, random: random) }
  }

  // MARK: The journal

  /// The options for the first record of the journal, and the upload that the checkpoint continues.
  var description: (UploadResumption.Policy?, StoredUpload?) {
    (try? state.withLock { $0.policy }.get(), checkpoint.flatMap { try? UploadCheckpoint($0).upload })
  }

  /// Reports the upload to the journal and the handler.
  private func noteUpload() {
    let known = state.withLock { state in state.resumption.map { (state.upload, $0.mayBeProcessed) } }
    if let (upload, mayBeProcessed) = known { transfer?.note(upload, mayBeComplete: mayBeProcessed) }
    noteCheckpoint()
  }

  // MARK: Checkpoints

  /// The data with which another process can continue; `nil` without a known upload of a lasting file.
  var currentCheckpoint: Data? { state.withLock { $0.checkpoint } }

  func setCheckpointHandler(_ queue: DispatchQueue, _ closure: @escaping @Sendable (Data) -> Void) {
    _ = state.withLock { replace(&$0.checkpointHandler, with: (queue, closure)) }
    noteCheckpoint()
  }

  /// Calls the handler if the upload has a URL now.
  private func noteCheckpoint() {
    let call = state.withLock { state -> (handler: (DispatchQueue, @Sendable (Data) -> Void), data: Data)? in
      guard let url = state.resumption?.resource?.url, url != state.notedURL,
        let handler = state.checkpointHandler,
        let data = state.checkpoint
      else { return nil }
      state.notedURL = url
      return (handler, data)
    }
    guard let (handler, data) = call else { return }
    handler.0.async { handler.1(data) }
  }
}

extension UploadResumer.ResumerState {
  /// The upload that the server has named.
  fileprivate var upload: StoredUpload? {
    guard let resource = resumption?.resource, let dialect = resumption?.dialect, let creation else {
      return nil
    }
    var upload = StoredUpload(resource, creation: creation, dialect: dialect)
    upload.statusAfterLastByte = resumption?.statusAfterLastByte
    return upload
  }

  fileprivate var checkpoint: Data? {
    guard let upload, case .file(_, let identity, false)? = body else { return nil }
    return UploadCheckpoint(upload, method: method, file: identity).data
  }
}
