import Foundation
import FoundationNetworking
package import HTTPSystem
import HTTPWire
import Synchronization

/// A download or an upload of a background session, with its journal. Requests, their files and the steps of their
/// attempts report each step to it that another process would have to know.
package final class BackgroundTransfer: Sendable {
  package let id: UUID
  /// Whether an earlier process created the transfer.
  package let isRestored: Bool
  /// Whether an earlier process ended while it called the response handlers.
  package let mayHaveBeenDelivered: Bool
  /// The bytes of a file after which they are written to the disk once more.
  static let synchronizationInterval: Int64 = 32 << 20

  let owner: BackgroundTransfers
  /// The steps of the transfer, its journal and its files, for the loop and attempts. The journal and the bytes are
  /// written under this lock, so that no byte is written after the end of a session.
  private let state: Mutex<TransferState>

  /// Makes a transfer.
  ///
  /// - Parameter journal: The journal that an earlier process has left; `nil` for a new transfer.
  init(_ id: UUID, _ journal: TransferJournal?, owner: BackgroundTransfers) {
    self.id = id
    self.owner = owner
    isRestored = journal != nil
    mayHaveBeenDelivered = journal?.state.isDelivering ?? false
    state = Mutex(TransferState(journal: journal))
  }

  deinit { owner.forget(id) }

  var names: Names { Names(id) }

  // MARK: Description

  /// The file that the upload sends; `nil` for a download, and before the body was created.
  package var bodyFile: URL? {
    state.withLock { $0.stored?.description.bodyFile ?? $0.adoptedFile }.map { URL(fileURLWithPath: $0.path) }
  }

  var stored: JournalState? { state.withLock { $0.stored } }

  /// The request before its adaptation; `nil` if the journal has it already.
  var initialRequest: URLRequest? { state.withLock { $0.initialRequest } }

  /// Keeps the request before its adaptation, for the first record.
  func noteInitialRequest(_ request: URLRequest) {
    state.withLock { if $0.stored == nil { $0.initialRequest = request } }
  }

  /// The date before which the transfer sends nothing.
  package var earliestBegin: Date? {
    get { state.withLock { $0.earliestBegin } }
    set { state.withLock { $0.earliestBegin = newValue } }
  }

  /// Notes that the request has transport options of its own.
  package func noteOwnOptions() {
    state.withLock { state in
      state.hasOwnOptions = true
      state.noteOwnOptions(in: try? owner.files())
    }
  }

  /// Writes the first record. Does nothing if there is one.
  ///
  /// - Parameters:
  ///   - resumption: The options of a resumable upload.
  ///   - upload: The resumable upload that the request continues.
  package func describe(
    _ request: URLRequest, kind: TransferDescription.TransferKind, resumption: UploadResumption.Policy? = nil,
    continuing upload: StoredUpload? = nil
  ) throws(AFError) {
    let files = try owner.files()
    guard !isDescribed else { return }
    var description = TransferDescription(
      kind: kind, url: request.url?.absoluteString ?? "", method: request.httpMethod ?? "GET",
      fields: request.allHTTPHeaderFields ?? [:], created: owner.now(), boot: files.boot)
    description.body = request.httpBody
    description.bodyFile = state.withLock { $0.adoptedFile }
    description.takeProperties(of: request)
    description.earliestBegin = earliestBegin.map { $0.timeIntervalSince1970.storable }
    description.resumption = resumption
    // One write, because without its later records the upload would begin again, or its options would be forgotten.
    var records = [JournalRecord.described(description)]
    if state.withLock({ $0.hasOwnOptions }) { records.append(.configured) }
    if let upload { records.append(.uploading(upload, mayBeComplete: true)) }
    guard let lines = Journal.standard.lines(of: records) else { throw owner.failure(EINVAL) }
    // Under the lock, so that the session does not end in between.
    let outcome = state.withLock { state -> Result<Void, AFError> in
      guard state.isOpen else { return .failure(owner.ended) }
      if let code = files.make(names.journal, lines) { return .failure(owner.failure(code)) }
      state.journal = TransferJournal(records, written: names.journal, size: lines.count)
      state.initialRequest = nil
      state.noteOwnOptions(in: files)
      return .success(())
    }
    try outcome.get()
  }

  // MARK: Turns

  /// Waits until the transfer may begin: for its date, and its turn among discretionary ones. Returns early if the
  /// surrounding task is cancelled.
  package func begin() async {
    let clock = ContinuousClock()
    var deadline: ContinuousClock.Instant?
    while !Task.isCancelled {
      let now = clock.now
      let wanted = now + .seconds(min(stored?.description.wait(at: owner.now()) ?? 0, 1e9))
      // A clock of the machine that is set back does not prolong the wait.
      let end = min(deadline ?? wanted, wanted)
      deadline = end
      guard end > now else { break }
      // In short parts, because the clock may be set forward, too.
      try? await Task.sleep(until: min(end, now + .seconds(30)), clock: clock)
    }
    guard let turns = owner.turns, !state.withLock({ $0.hasTurn }) else { return }
    let hasTurn = await turns.take()
    state.withLock { $0.hasTurn = hasTurn }
  }

  /// Gives the turn of the transfer to the next one.
  ///
  /// - Parameter run: The run that has ended. A later one keeps its turn. Default: any.
  package func endTurn(after run: Int? = nil) {
    let hadTurn = state.withLock { state in
      guard run == nil || run == state.run else { return false }
      defer { state.hasTurn = false }
      return state.hasTurn
    }
    if hadTurn { owner.turns?.pass() }
  }

  /// Ends the transfer and stores its outcome for a later handler, because the request had none. If the session has
  /// ended, the next one continues the transfer.
  package func endUnobserved() {
    if state.withLock({ $0.phase != .closed }) { owner.ended(self) }
  }

  // MARK: Steps

  /// Appends a record. A journal that cannot be written does not end the transfer: another process would do the step
  /// again.
  func note(_ record: JournalRecord) {
    state.withLock { state in
      if state.isOpen, state.stored != nil { _ = append(record, to: &state) }
    }
  }

  /// Appends a record. Returns the number of the error, if there is one.
  private func append(_ record: JournalRecord, to state: inout TransferState) -> Int32? {
    state.append(record, in: try? owner.files())
  }

  /// Notes that the server may receive the whole request from now on. Throws if the note cannot be written for a
  /// request that must not be repeated. Such a request must not be sent, because another process would send it again.
  package func noteSent() throws(AFError) {
    let code = state.withLock { $0.noteSent(in: try? owner.files()) }
    if let code { throw owner.failure(code) }
  }

  /// Notes that a redirect is followed: a server has received the request.
  func noteRedirected() { state.withLock { $0.isRedirected = true } }

  /// Whether nothing was sent if no connection was made at last. Other servers may have received a redirected request,
  /// or an earlier one of a resumable upload. The body of an upload is noted when it is sent, unless it is empty.
  var isUnsentWithoutConnection: Bool {
    state.withLock { state in
      guard let description = state.stored?.description, !state.isRedirected else { return false }
      guard description.kind == .upload else { return true }
      return description.resumption == nil && (description.bodyFile?.size ?? 0) == 0
    }
  }

  /// Notes that the server has named a resumable upload, no longer has it, or lacks bytes of it. Does nothing if that
  /// is known, or if the journal begins with an ordinary upload: another process could not continue it.
  package func note(_ upload: StoredUpload?, mayBeComplete: Bool) {
    state.withLock { state in
      guard state.isOpen, let stored = state.stored, stored.description.resumption != nil else { return }
      guard upload != stored.upload || mayBeComplete != stored.isSent else { return }
      _ = append(.uploading(upload, mayBeComplete: mayBeComplete), to: &state)
    }
  }

  /// Begins the file of a response, unless the session has ended, and then notes the head. The head is noted last,
  /// because the bytes of the earlier response are lost only when the new file has begun.
  ///
  /// - Parameters:
  ///   - file: The file that begins, or another one instead of it. Default: one that needs no closing.
  ///   - body: Begins the file, and returns its size; `nil` if another file begins, which is not recorded.
  package func begin(
    _ head: ResponseHead, of file: FileSink? = nil, _ body: () -> (TransportFailure?, size: Int64?)
  ) -> TransportFailure? {
    let boot = owner.boot
    return state.withLock { state in
      guard state.isOpen else { return Self.ended }
      state.file = file
      // Another process would move the bytes of this response, or take another file at the destination for them.
      if let code = state.noteMissingRestart(in: try? owner.files()) {
        return TransportFailure(.cannotWriteFile, owner.failureText(code))
      }
      removeLostFile(&state)
      let (failure, size) = body()
      guard failure == nil, let size else { return failure }
      state.synchronizedSize = size
      state.responseCount += 1
      if size == 0 { (state.firstResponse, state.loss) = (state.responseCount, .none) }
      let replacesFlushedBytes = size == 0 && state.stored?.hasPresentBytes == true
      let files = try? owner.files()
      var code = append(.responded(StoredHead(head), offset: size, boot: boot), to: &state)
      // Before a byte follows: after a crash of the machine, the earlier records would count bytes of this response.
      if code == nil, replacesFlushedBytes, files?.synchronize(names.journal) != true { code = EIO }
      guard let code, size == 0 else { return nil }
      // Another process would take the bytes for ones of the earlier response.
      files?.remove(names.file)
      return TransportFailure(.cannotWriteFile, owner.failureText(code))
    }
  }

  /// Writes bytes to the file, unless the session has ended. From time to time they are flushed to the disk.
  ///
  /// - Parameter body: Writes the bytes, and returns the size of the file. Its argument is the number of bytes that are
  ///   on the disk, or being written to it.
  package func write(_ body: (_ flushed: Int64) -> (BodyReception, size: Int64)) -> BodyReception {
    let (reception, flush) = state.withLock { state -> (BodyReception, (size: Int64, response: Int)?) in
      guard state.isOpen else { return (.failure(Self.ended), nil) }
      guard !state.hasLostBytes else {
        return (.failure(TransportFailure(.cannotWriteFile, flushFailureText)), nil)
      }
      let (reception, size) = body(state.synchronizedSize)
      guard size - state.synchronizedSize >= Self.synchronizationInterval else { return (reception, nil) }
      state.synchronizedSize = size
      return (reception, (size, state.responseCount))
    }
    if let flush {
      DispatchQueue.global(qos: .utility).async { [self] in
        guard let files = try? owner.files() else { return }
        if files.synchronize(names.file) {
          noteSynchronized(flush.size, ofResponse: flush.response)
        } else {
          noteLostBytes(ofResponse: flush.response)
        }
      }
    }
    return reception
  }

  /// Notes that the first bytes of the file are on the disk.
  ///
  /// - Parameter number: The number of the response to which the bytes belong. Another response may have begun the file
  ///   again.
  package func noteSynchronized(_ size: Int64, ofResponse number: Int) {
    state.withLock { state in
      guard state.isOpen, state.stored != nil, state.responseCount == number else { return }
      _ = append(.present(ByteRanges(first: size)), to: &state)
    }
  }

  /// Whether bytes of the file were lost, so that none of them count. The file may still be there.
  var hasLostBytes: Bool { state.withLock { $0.hasLostBytes } }

  /// Notes that bytes of a response were lost, and removes the file.
  private func noteLostBytes(ofResponse number: Int) {
    state.withLock { state in
      state.noteLoss(ofResponse: number)
      removeLostFile(&state)
    }
  }

  /// Notes that the file was closed. If bytes were lost, which some file systems report only then, the file is removed:
  /// the journal counts all bytes that it has. A large file takes time, for which the loop must not wait.
  func noteClosed(_ file: FileSink) {
    guard file.hasLostBytes, !file.isAside, state.withLock({ $0.noteLoss() }) else { return }
    DispatchQueue.global(qos: .utility).async { [self] in state.withLock { removeLostFile(&$0) } }
  }

  /// Removes a file that has lost bytes, before another response begins it, or another session can have it.
  private func removeLostFile(_ state: inout TransferState) {
    guard state.isOpen, state.loss == .noted else { return }
    (try? owner.files())?.remove(names.file)
    // Later reports about the responses so far concern no other file.
    (state.loss, state.firstResponse) = (.removed, state.responseCount + 1)
  }

  /// Forgets that bytes were lost, before the request is sent again: the next response may have no body.
  private func forgetLoss(_ state: inout TransferState) {
    removeLostFile(&state)
    state.loss = .none
  }

  /// Reads bytes of the body of an upload, unless the session has ended. The last ones are noted before they can be
  /// sent.
  ///
  /// - Parameter body: Reads the bytes, and returns whether they are the last.
  package func read(_ body: () -> (BodyReading, isLast: Bool)) -> BodyReading {
    state.withLock { state in
      guard state.isOpen else { return .failure(Self.ended) }
      let (reading, isLast) = body()
      if isLast, let code = state.noteSent(in: try? owner.files()) {
        return .failure(TransportFailure(.cannotCreateFile, owner.failureText(code)))
      }
      return reading
    }
  }

  private static let ended = TransportFailure(.cancelled, "The background session has ended.")

  /// Notes that the file has all its bytes. Waits for the disk. Throws if bytes may be lost; then the file is removed.
  package func noteCompleted() throws(AFError) {
    guard stored?.isComplete == false, let files = try? owner.files() else { return }
    let (hasLostBytes, number) = state.withLock { ($0.hasLostBytes, $0.responseCount) }
    let size = files.size(of: names.file)
    guard size != nil || hasLostBytes else { return }
    guard let size, !hasLostBytes, files.synchronize(names.file) else {
      noteLostBytes(ofResponse: number)
      throw .sessionTaskFailed(error: URLError(.cannotWriteToFile, flushFailureText, url: nil))
    }
    note(.completed(size: size))
  }

  /// Moves the file by `body`, which leaves it if it fails. It is removed then, and another session begins the download
  /// again if its request may be repeated. If that cannot be noted, the file stays, and another session tries to move
  /// it once more. Returns `nil`, without moving the file, if the session has ended.
  func move(to path: String, options: Int, _ body: () -> Result<URL, AFError>) -> Result<URL, AFError>? {
    state.withLock { state in
      guard state.isOpen else { return nil }
      let isNoted = append(.moving(to: path, options: options), to: &state) == nil
      let result = body()
      if case .success = result {
        _ = append(.moved, to: &state)
      } else if isNoted, append(.restarted, to: &state) == nil {
        // The record is first: without the file, another one at the destination would be taken for it. Without the
        // earlier record, this one would undo that the request was sent.
        (try? owner.files())?.remove(names.file)
      } else {
        state.lacksRestart = true
      }
      return result
    }
  }

  /// Moves another file by `body`, which is not recorded. Returns `nil`, without moving it, if the session has ended.
  func movePage(_ body: () -> Result<URL, AFError>) -> Result<URL, AFError>? {
    state.withLock { $0.isOpen ? body() : nil }
  }

  /// Notes that the response to an upload is complete. Waits for the disk.
  package func noteAnswer(_ head: ResponseHead, _ body: Data?, from url: URL?) {
    guard let files = try? owner.files() else { return }
    note(.responded(StoredHead(head), offset: 0, boot: owner.boot))
    if let url { noteLocation(url) }
    let hasBody = body?.isEmpty == false
    if let body, hasBody {
      let isStored = state.withLock { state in
        guard state.isOpen else { return false }
        files.remove(names.answer)
        return files.make(names.answer, body) == nil
      }
      // Another process must not deliver the response without its body.
      guard isStored else { return }
    }
    note(.answered(hasBody: hasBody))
  }

  package func noteRetry() {
    state.withLock { state in
      forgetLoss(&state)
      state.noteRetry(in: try? owner.files())
    }
  }

  /// Notes that the response handlers are called from now on.
  ///
  /// - Parameter run: The run that has ended. A later one is not delivered yet.
  /// - Returns: False if the session has ended, so that the next one delivers the outcome.
  @discardableResult package func noteDelivering(after run: Int) -> Bool {
    state.withLock { state in
      if state.isOpen, state.stored != nil, run == state.run { _ = append(.delivering, to: &state) }
      return state.phase != .closed
    }
  }

  /// The number of times that the request was sent again after its end.
  package var run: Int { state.withLock { $0.run } }

  /// Notes that the handlers of a transfer that was discarded have returned.
  func noteReturned(after run: Int) {
    if state.withLock({ $0.run == run }) { owner.ended(self) }
  }

  /// Removes the journal, and then the files that only it knew. The journal goes first, because a process that ends in
  /// between leaves files without a journal, which the next one removes. Returns false if nothing is removed.
  func discard(after run: Int?) -> Bool {
    guard let files = try? owner.files() else { return false }
    let (isOpen, bodyFile) = state.withLock { state in
      guard state.isOpen, run == nil || run == state.run else {
        return (false, nil as TransferDescription.BodyFile?)
      }
      state.phase = .removed
      // Under the lock, so that the session does not end in between.
      files.remove(names.journal)
      return (true, state.stored?.description.bodyFile)
    }
    if isOpen { names.removeFiles(in: files, bodyFile) }
    return isOpen
  }

  /// Records no further step, because the session has ended. The next session continues from here, unless the transfer
  /// was removed.
  package func suspend() {
    state.withLock { state in
      guard state.isOpen else { return }
      // Some file systems report only now that bytes were lost. Afterwards the file may belong to the next session.
      if let file = state.file {
        file.unlock()
        if file.hasLostBytes, !file.isAside { state.noteLoss() }
      }
      removeLostFile(&state)
      state.phase = .closed
    }
  }

  /// Forgets the outcome, because the caller sends the finished request again: the journal begins again. The file of an
  /// incomplete download stays, so that it is continued. Does nothing if the session has ended.
  ///
  /// - Parameter upload: The resumable upload that the request continues.
  package func beginAgain(continuing upload: StoredUpload? = nil) {
    guard let files = try? owner.files() else { return }
    state.withLock { state in
      guard state.phase != .closed else { return }
      state.run += 1
      let isIncomplete = state.stored.map { $0.description.kind == .download && !$0.isComplete } ?? true
      guard state.isOpen, isIncomplete else { return renew(&state, files, upload) }
      forgetLoss(&state)
      // The caller has decided that the request is sent again.
      if state.stored?.isSent == true { state.noteRetry(in: files) }
    }
  }

  private func renew(_ state: inout TransferState, _ files: any TransferFiles, _ upload: StoredUpload?) {
    // The request and the body of another process are known only from the journal. Others are created again if their
    // files were removed.
    let description = state.isOpen || isRestored ? state.stored?.description : nil
    let hasOwnOptions = state.hasOwnOptions || state.stored?.hasOwnOptions == true
    let journal = renewJournal(files, description, upload, hasOwnOptions: hasOwnOptions)
    state = TransferState(
      phase: .open, run: state.run, earliestBegin: state.earliestBegin, hasTurn: state.hasTurn,
      hasOwnOptions: hasOwnOptions)
    state.journal = journal
  }

  // MARK: Files

  /// The path of the downloaded file.
  package var filePath: String { owner.path(of: names.file) }

  /// Writes a body in memory to a file, which is sent instead.
  package func spool(_ body: Data) throws(AFError) {
    let files = try owner.files()
    files.remove(names.body)
    if let code = files.make(names.body, body) { throw owner.failure(code) }
    let path = owner.path(of: names.body)
    let file = TransferDescription.BodyFile(path: path, isOwned: false, size: Int64(body.count))
    state.withLock { $0.adoptedFile = file }
  }

  /// Notes the file that is sent. A file that is removed after the upload is moved to the journal, because files of
  /// ended processes are removed from the temporary folder.
  package func adopt(_ file: URL, isOwned: Bool) throws(AFError) {
    let files = try owner.files()
    var (path, isOwned) = (file.path, isOwned)
    let ownPath = owner.path(of: names.body)
    if isOwned, FileMove.move(path, to: ownPath) == .moved {
      (path, isOwned) = (ownPath, false)
      // Its bytes have to be on the disk before the journal is, which another boot may continue.
      guard files.synchronize(names.body) else {
        files.remove(names.body)
        throw owner.failure(EIO)
      }
    }
    let identity = UploadFileIdentity(URL(fileURLWithPath: path))
    var body = TransferDescription.BodyFile(path: path, isOwned: isOwned, size: identity?.size ?? 0)
    if path != ownPath { body.modified = identity?.modified }
    state.withLock { $0.adoptedFile = body }
  }
}
