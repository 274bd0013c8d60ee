import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Synchronization

/// The implementation of a ``SegmentedDownload``: performs the actions of a ``SegmentedTransfer``.
///
/// All events are handled on `queue`, one at a time. Files are read and written there, outside the lock.
final class SegmentedDownloadCore: RegisteredStream {
  enum Lifecycle: Sendable {
    case notStarted
    case running
    case suspended
    case ended(SegmentedDownload.Response)
  }

  struct SegmentsState {
    var lifecycle = Lifecycle.notStarted
    var transfer: SegmentedTransfer
    var file: PartialFile?
    var requests: [Int: DataStreamRequest] = [:]
    /// The source of each request.
    var sources: [Int: Int] = [:]
    /// The last error of each source.
    var errors: [Int: AFError] = [:]
    /// The answer to challenges of the first origin.
    var credential: URLCredential?
    /// The digest in the fields of the responses.
    var digest: FileDigest?
    var response: HTTPURLResponse?
    var rate = TransferRate()
    var url = ""
    /// Whether the record is being renewed.
    var isFlushing = false
    var lastFlush = Duration.zero
    var lastNotice: Duration?
    /// Whether the download is about to end.
    var isEnding = false
    /// Whether a delay has ended during a suspension.
    var isWakeUpMissed = false
    /// The delays, with their numbers. Each retains the download, until its time or the end of the download.
    var delays: [Int: Task<Void, Never>] = [:]
    var lastDelay = 0
    var progressObservers = ProgressObservers()
    var handlers: [@Sendable (SegmentedDownload.Response) -> Void] = []
  }

  /// The closures and the sequences that receive the progress.
  struct ProgressObservers: Sendable {
    var handlers: [@Sendable (SegmentedDownload.Progress) -> Void] = []
    /// The sequences that have not ended.
    var sequences: [AsyncStream<SegmentedDownload.Progress>.Continuation] = []

    var isEmpty: Bool { handlers.isEmpty && sequences.isEmpty }

    func notify(_ progress: SegmentedDownload.Progress) {
      for handler in handlers { handler(progress) }
      for sequence in sequences { sequence.yield(progress) }
    }
  }

  let session: SessionCore
  let source: SegmentedDownloadSource
  let target: SegmentedDownloadTarget
  /// Serial, so that the events of all segments are handled one at a time, and not on a thread of the engine.
  let queue = DispatchQueue(label: "org.alamofire.segments")
  /// The segments, requests and handlers, for the queue of the download and its users.
  let state: Mutex<SegmentsState>
  private let beginning = ContinuousClock.now

  init(
    session: SessionCore, source: SegmentedDownloadSource, target: SegmentedDownloadTarget,
    transfer: SegmentedTransfer
  ) {
    self.session = session
    self.source = source
    self.target = target
    state = Mutex(SegmentsState(transfer: transfer))
    if let error = session.runs.registry.register(self) { abandon(error) }
  }

  deinit {
    if session.runs.registry.unregister(self) { session.notifyInvalidOnce() }
    // A download that was never started is released without an end, which would end its sequences.
    for sequence in state.withLock({ $0.progressObservers.sequences }) { sequence.finish() }
  }

  var destination: URL { target.destination }
  var partialFileURL: URL { target.partialFileURL }
  var now: Duration { ContinuousClock.now - beginning }
  var currentProgress: SegmentedDownload.Progress {
    let now = now
    return state.withLock { $0.progress(at: now) }
  }

  /// Returns the range and the condition that a request asks for now.
  func question(of id: Int) -> (range: Range<Int>?, condition: String?) {
    // The queue may not have received all bytes of a failed attempt, which would be asked for again.
    state.withLock { $0.requests[id] }?.flow.waitForHandlers()
    return state.withLock { ($0.transfer.range(of: id), $0.transfer.condition(of: id)) }
  }

  // MARK: Control

  func resume() {
    let (isFirst, requests) = state.withLock { state -> (Bool, [DataStreamRequest]) in
      switch state.lifecycle {
      case .notStarted:
        state.lifecycle = .running
        return (true, [])
      case .suspended:
        state.lifecycle = .running
        return (state.file == nil, Array(state.requests.values))
      case .running, .ended: return (false, [])
      }
    }
    for request in requests { align(request) }
    queue.async { isFirst ? self.start() : self.continueAfterSuspension() }
  }

  func suspend() {
    let requests = state.withLock { state -> [DataStreamRequest] in
      if case .ended = state.lifecycle { return [] }
      state.lifecycle = .suspended
      return Array(state.requests.values)
    }
    for request in requests { align(request) }
  }

  func cancel() {
    queue.async { self.conclude(.failure(.explicitlyCancelled)) }
  }

  /// Ends the download because its session has ended. A download without a running request would not learn of it.
  func abandon(_ error: AFError) {
    queue.async { self.conclude(.failure(error)) }
  }

  /// Ends the download if it has not been started. Requests of one that runs are refused, which ends it.
  func refuse(_ error: AFError) {
    queue.async {
      let isStarted = self.state.withLock { state in
        if case .running = state.lifecycle { return true }
        return state.file != nil
      }
      if !isStarted { self.conclude(.failure(error)) }
    }
  }

  func addProgressHandler(_ handler: @escaping @Sendable (SegmentedDownload.Progress) -> Void) {
    state.withLock { $0.progressObservers.handlers.append(handler) }
  }

  func addHandler(_ handler: @escaping @Sendable (SegmentedDownload.Response) -> Void) {
    if let response = add({ $0.handlers.append(handler) }) { handler(response) }
  }

  /// Adds a sequence of the progress, which ends with the download. A sequence that was left is removed.
  func add(_ sequence: AsyncStream<SegmentedDownload.Progress>.Continuation) {
    sequence.onTermination = { [weak self] _ in
      self?.state.withLock { state in state.progressObservers.sequences.removeAll { $0 == sequence } }
    }
    if add({ $0.progressObservers.sequences.append(sequence) }) != nil { sequence.finish() }
  }

  /// Adds an object that waits for the end, and starts the download if the session starts requests immediately. Returns
  /// the response, without a change, if the download has ended.
  private func add(_ change: (inout SegmentsState) -> Void) -> SegmentedDownload.Response? {
    let (response, starts) = state.withLock { state -> (SegmentedDownload.Response?, Bool) in
      if case .ended(let response) = state.lifecycle { return (response, false) }
      change(&state)
      guard case .notStarted = state.lifecycle else { return (nil, false) }
      return (nil, session.startsRequestsImmediately)
    }
    if starts { resume() }
    return response
  }

  private func continueAfterSuspension() {
    let isMissed = state.withLock { state in
      defer { state.isWakeUpMissed = false }
      state.rate.begin(at: now)
      return state.isWakeUpMissed
    }
    if isMissed { wake() }
  }

  // MARK: Transfer

  /// Opens the file, and continues the bytes in it if there are any.
  private func start() {
    guard state.withLock({ $0.file == nil && !$0.isEnded }) else { return }
    // A suspended download may have neither a request nor a delay, which would retain it.
    session.runs.registry.retain(self)
    do {
      let (file, url) = try open()
      let now = now
      let earlier = earlierContent(of: file, from: url)
      let actions = state.withLock { state in
        state.file = file
        state.url = url
        state.rate.begin(at: now)
        state.lastFlush = now
        return state.transfer.start(earlier?.version, present: earlier?.present ?? ByteRanges(), at: now)
      }
      perform(actions)
    } catch {
      conclude(.failure(error.asAFError(or: .createURLRequestFailed(error: error))))
    }
  }

  func wake() {
    let now = now
    let actions = state.withLock { state -> [SegmentedTransfer.Action] in
      guard case .running = state.lifecycle else {
        state.isWakeUpMissed = true
        return []
      }
      return state.transfer.wake(at: now)
    }
    perform(actions)
  }

  private func wake(at time: Duration) {
    let number = state.withLock { state in
      state.lastDelay += 1
      return state.lastDelay
    }
    let delay = Task { [self] in
      guard (try? await Task.sleep(for: time - now)) != nil else { return }
      queue.async { [self] in
        state.withLock { $0.delays[number] = nil }
        wake()
      }
    }
    // This is a turn of the queue, so that the end of the delay follows.
    state.withLock { $0.delays[number] = delay }
  }

  func perform(_ actions: [SegmentedTransfer.Action]) {
    for action in actions {
      guard !state.withLock({ $0.isEnded }) else { return }
      switch action {
      case .send(let request): send(request)
      case .stop(let id): stop(id)
      case .prepare(let version): prepare(version)
      case .wake(let time):
        wake(at: time)
      case .beginAgain: announceProgress(always: true)
      case .finish: finish()
      case .fail(let failure): conclude(.failure(error(for: failure)))
      }
    }
  }

  private func error(for failure: SegmentedTransfer.Failure) -> AFError {
    switch failure {
    case .changed: .sessionTaskFailed(error: SegmentedDownload.Failure.resourceChanged)
    case .noSource(let index): state.withLock { $0.errorWithoutSource(lastDropped: index) }
    case .tooLarge(let length):
      .sessionTaskFailed(
        error: URLError(
          .dataLengthExceedsMaximum,
          "The file has \(length) bytes, more than \(session.settings.profile.options.bodySizeLimit ?? 0). "
            + "Raise bodySizeLimit if such files are expected.", url: state.withLock { $0.url }))
    }
  }

  // MARK: Requests

  private func send(_ segment: SegmentedTransfer.SegmentRequest) {
    guard let owner = session.owner else { return conclude(.failure(.sessionDeinitialized)) }
    let convertible = SegmentConvertible(core: self, request: segment)
    let request = owner.stream(convertible, false, source.interceptor, false)
    let credential = state.withLock { state in
      state.requests[segment.id] = request
      state.sources[segment.id] = segment.source
      return state.credential
    }
    if let credential, source.hasFirstOrigin(segment.source) { request.authenticate(with: credential) }
    request.onHTTPResponse(on: queue) { response, completion in
      let takesBody = self.receive(response, for: segment.id)
      completion(takesBody ? .allow : .cancel)
    }
    request.responseStream(on: queue) { stream in
      switch stream.event {
      case .stream(.success(let data)): self.receive(data, for: segment.id)
      case .complete(let completion): self.ended(segment.id, completion.error)
      }
    }
    align(request)
  }

  /// Lets a request follow the download. The state is read again, because two threads may suspend and resume.
  private func align(_ request: DataStreamRequest) {
    switch state.withLock({ $0.lifecycle }) {
    case .suspended: request.suspend()
    case .running: request.resume()
    case .notStarted, .ended: break
    }
  }

  private func stop(_ id: Int) {
    let request = state.withLock { state in
      state.sources[id] = nil
      return state.requests.removeValue(forKey: id)
    }
    request?.cancel()
  }

  /// Accepts a response. Returns whether its body is needed.
  private func receive(_ response: HTTPURLResponse, for id: Int) -> Bool {
    let head = ResponseHead(status: response.statusCode, fields: Array(response.headers))
    let date = HTTPDate.now
    let answer = SegmentAnswer(head, now: date)
    let delay = head.block.value(of: "Retry-After").flatMap {
      RetryAfter.seconds(of: $0, date: head.block.value(of: "Date"), now: date)
    }
    let now = now
    let (actions, _) = state.withLock { state -> ([SegmentedTransfer.Action], AFError?) in
      guard state.requests[id] != nil else { return ([], nil) }
      state.response = response
      var earlier: AFError?
      if case .refused(let status, _) = answer, let source = state.sources[id] {
        earlier = state.errors.updateValue(
          .responseValidationFailed(reason: .unacceptableStatusCode(code: status)), forKey: source)
      }
      let actions = state.transfer.receive(
        answer, for: id, retryAfter: delay.map { .seconds(min($0, 60)) }, at: now)
      // The first response defines the version. Later ones are compared with it, but a stream has the whole file.
      if actions.contains(.beginAgain) || state.transfer.isStream { state.digest = nil }
      if !actions.contains(.stop(id)) { state.digest = state.digest ?? FileDigest(of: head) }
      return (actions, earlier)
    }
    perform(actions)
    announceProgress(always: false)
    return state.withLock { $0.requests[id] != nil }
  }

  private func receive(_ data: Data, for id: Int) {
    let (room, file) = state.withLock { state in
      (state.requests[id] == nil ? 0..<0 : state.transfer.room(for: data.count, in: id), state.file)
    }
    if !room.isEmpty, let file {
      let failure = data.withUnsafeBytes { bytes in
        file.write(UnsafeRawBufferPointer(rebasing: bytes[..<room.count]), at: room.lowerBound)
      }
      if let failure { return conclude(.failure(AFError(failure, url: state.withLock { $0.url }))) }
      if !state.withLock({ $0.transfer.isStream }),
        let line = Journal.standard.line(of: .wrote(ByteRanges([room])))
      {
        file.append(line)
      }
    }
    let now = now
    let actions = state.withLock { state -> [SegmentedTransfer.Action] in
      guard state.requests[id] != nil else { return [] }
      state.rate.add(room.count, at: now)
      return state.transfer.wrote(room, excess: data.count - room.count, in: id, at: now)
    }
    announceProgress(always: false)
    perform(actions)
    flushRegularly()
  }

  private func ended(_ id: Int, _ error: AFError?) {
    // The request is released outside the lock.
    let (source, _) = state.withLock { state in
      (state.sources.removeValue(forKey: id), state.requests.removeValue(forKey: id))
    }
    guard let source else { return }
    switch error {
    case .explicitlyCancelled?, .sessionDeinitialized?, .sessionInvalidated?:
      return conclude(.failure(error ?? .explicitlyCancelled))
    default: break
    }
    let now = now
    let (actions, _) = state.withLock { state in
      // A request that ends well, or is replaced, does not explain why its source was dropped.
      let earlier = error.flatMap { state.errors.updateValue($0, forKey: source) }
      return (state.transfer.ended(id, SegmentedTransfer.End(error), at: now), earlier)
    }
    perform(actions)
  }

  /// Ends the download, once. Who learns of the end can use the file: it is closed before.
  func conclude(_ result: Result<URL, AFError>) {
    let ending = state.withLock { state -> SegmentsState? in
      guard !state.isEnded else { return nil }
      state.isEnding = true
      let old = state
      state.requests = [:]
      state.delays = [:]
      state.file = nil
      return old
    }
    guard let ending else { return }
    for delay in ending.delays.values { delay.cancel() }
    for request in ending.requests.values { request.cancel() }
    if let file = ending.file { close(file, ending, result) }
    let now = now
    let (response, observers, handlers) = state.withLock { state in
      var progress = state.progress(at: now)
      progress.connectionCount = 0
      let response = SegmentedDownload.Response(
        result: result, response: state.response, progress: progress, droppedMirrors: state.droppedMirrors)
      state.lifecycle = .ended(response)
      defer { (state.progressObservers, state.handlers) = (ProgressObservers(), []) }
      return (response, state.progressObservers, state.handlers)
    }
    observers.notify(response.progress)
    for sequence in observers.sequences { sequence.finish() }
    for handler in handlers { handler(response) }
    // Last, because observers are notified of the end of the session after the ends of all its members.
    if session.runs.registry.unregister(self) { session.notifyInvalidOnce() }
  }
}

extension SegmentedDownloadCore.SegmentsState {
  var isEnded: Bool { isEnding || endResponse != nil }

  var endResponse: SegmentedDownload.Response? {
    if case .ended(let response) = lifecycle { response } else { nil }
  }

  /// Returns the error of a download whose sources were all dropped. The error of the first source takes precedence
  /// over the errors of mirrors.
  func errorWithoutSource(lastDropped: Int) -> AFError {
    switch transfer.sources.dropped[0] {
    case .hasNoRanges?:
      .sessionTaskFailed(
        error: URLError(
          .badServerResponse,
          "The server sent other ranges than requested. Use download(_:to:) for this URL.", url: url))
    case .differs?: .sessionTaskFailed(error: SegmentedDownload.Failure.resourceChanged)
    case .status?, .failed?, nil:
      errors[0] ?? errors[lastDropped]
        ?? .sessionTaskFailed(
          error: URLError(
            .networkConnectionLost, "The responses of the server broke off several times in a row.",
            url: url))
    }
  }

  func progress(at now: Duration) -> SegmentedDownload.Progress {
    if let endResponse { return endResponse.progress }
    var progress = SegmentedDownload.Progress()
    progress.completedBytes = Int64(transfer.count)
    progress.totalBytes = transfer.length.map { Int64($0) }
    progress.bytesPerSecond = rate.bytesPerSecond(at: now)
    progress.connectionCount = transfer.activeCount
    progress.restartCount = transfer.restartCount
    return progress
  }

  var droppedMirrors: [SegmentedDownload.DroppedMirror] {
    transfer.sources.dropped.filter { $0.key > 0 }.sorted { $0.key < $1.key }.map { index, reason in
      SegmentedDownload.DroppedMirror(index: index - 1, reason: .init(reason))
    }
  }
}

extension SegmentedDownload.DroppedMirror.Reason {
  init(_ reason: SegmentSources.DropReason) {
    switch reason {
    case .differs: self = .differs
    case .hasNoRanges: self = .hasNoRanges
    case .status(let status): self = .status(status)
    case .failed: self = .failed
    }
  }
}

extension SegmentedTransfer.End {
  /// Classifies the error of a request. Errors of the network may pass.
  init(_ error: AFError?) {
    guard let error else {
      self = .complete
      return
    }
    switch (error.underlyingError as? URLError)?.code {
    case .timedOut?, .cannotFindHost?, .cannotConnectToHost?, .networkConnectionLost?, .dnsLookupFailed?,
      .notConnectedToInternet?, .badServerResponse?, .cannotParseResponse?, .secureConnectionFailed?:
      self = .interrupted
    default: self = .failed
    }
  }
}

extension Duration {
  var seconds: TimeInterval {
    TimeInterval(components.seconds) + TimeInterval(components.attoseconds) / 1e18
  }
}
