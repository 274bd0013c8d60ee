import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Synchronization

/// The file of a download.
final class DownloadPlan: Sendable {
  private typealias WritePosition =
    @Sendable (ResponseHead) -> Result<FileSink.WritePosition, TransportFailure>

  /// Resume data of a running download, which the user may have stored.
  private struct Checkpoint {
    let data: Data
    let path: String
    /// Whether the resume data that the download was created from name the same file.
    let extendsPart: Bool
  }

  private struct Attempt {
    /// The destination of the bytes: the file, or the journal that passes them to it.
    let sink: any BodySink
    let file: FileSink
    /// The name of the file once it is complete or in resume data. A file with this name is not removed with the
    /// process.
    private var finalPath: String
    /// The earlier download in the user's resume data, if its file exists.
    var part: ResumeData?
    var head: ResponseHead?

    /// The offset at which the response began.
    var offset: Int64 = 0
    /// The background transfer that the file belongs to.
    let transfer: BackgroundTransfer?
    /// Returns where the body of a response is written.
    let writePosition: WritePosition

    /// Whether the file has its lasting name.
    private var hasFinalName = false
    /// The last checkpoint of the attempt, which names the file.
    private(set) var lastCheckpoint: Checkpoint?

    init(
      file: FileSink, finalPath: String, part: ResumeData?, transfer: BackgroundTransfer?,
      writePosition: @escaping WritePosition
    ) {
      self.file = file
      sink = transfer.map { JournalledFile(file, $0) } ?? file
      self.finalPath = finalPath
      self.part = part
      self.transfer = transfer
      self.writePosition = writePosition
    }

    /// Closes the file if it is open, and lets another transfer continue it.
    func unlock() {
      file.unlock()
      transfer?.noteClosed(file)
    }

    /// The path of the file.
    private var path: String { hasFinalName ? finalPath : file.path }

    /// Renames the file to its lasting name. Returns the path.
    mutating func keep() -> String {
      guard !hasFinalName, !extendsPart else { return path }
      giveFinalName(to: file.path)
      return path
    }

    /// Renames the complete file, while it is locked, to a name that is in no resume data: another download from them
    /// would truncate or remove it. Returns the path.
    mutating func deliver() -> String {
      let source = path
      if hasFinalName { finalPath = DownloadPlan.temporaryTarget.path }
      giveFinalName(to: source)
      return hasFinalName ? finalPath : source
    }

    private mutating func giveFinalName(to source: String) {
      hasFinalName = rename(source, finalPath) == 0
      if !hasFinalName {
        // The file is not on the file system of the temporary folder.
        let folder = URL(fileURLWithPath: source).deletingLastPathComponent()
        let name = URL(fileURLWithPath: finalPath).lastPathComponent
        finalPath = folder.appendingPathComponent(name).path
        hasFinalName = rename(source, finalPath) == 0
      }
    }

    /// Whether the bytes are appended to the file of the earlier download.
    var extendsPart: Bool { transfer == nil && part?.path == file.path }
    /// Returns the resume data of the download; `nil` if it cannot be resumed. If there are any, the file gets its
    /// lasting name.
    ///
    /// - Parameter flushedSize: The number of bytes that are on the disk, while more arrive. Default: all bytes, which
    ///   may not have reached the disk.
    mutating func resumeData(of request: URLRequest?, _ flushedSize: Int64? = nil) -> Data? {
      guard let request else { return nil }
      guard let head,
        var data = ResumeData(
          request: request, version: Representation(resumable: head, from: offset, now: .now),
          file: file.path,
          received: flushedSize ?? file.size)
      else { return resumeDataOfPart(request) }
      data.name(keep())
      return data.data(isOnDisk: flushedSize != nil)
    }

    /// Returns resume data of the running attempt, and notes that the file is named.
    mutating func checkpoint(of request: URLRequest?, _ flushedSize: Int64) -> Data? {
      guard let data = resumeData(of: request, flushedSize) else { return nil }
      lastCheckpoint = Checkpoint(data: data, path: path, extendsPart: extendsPart)
      return data
    }

    /// Returns the resume data of the part that a background transfer had before the attempt; `nil` if there is none,
    /// or the response has replaced it.
    private mutating func resumeDataOfPart(_ request: URLRequest) -> Data? {
      guard let transfer, let part, head.map({ !(200..<300).contains($0.status) }) ?? true,
        var data = ResumeData(
          request: request, version: part.version, file: part.path, received: part.received)
      else { return nil }
      giveFinalName(to: transfer.filePath)
      guard hasFinalName else { return nil }
      data.name(finalPath)
      return data.data(isOnDisk: false)
    }
    /// Removes the file, unless it belongs to the user's resume data, or to a background transfer, which removes it
    /// itself. A file with its lasting name may be continued by another download, which has a checkpoint.
    func remove() {
      guard !extendsPart, transfer == nil else { return }
      if hasFinalName { FileSink.removePart(path) } else { try? FileManager.default.removeItem(atPath: path) }
    }
    /// Removes the earlier file, which a newer one replaces.
    func removePart() {
      if let part, !extendsPart, transfer == nil { FileSink.removePart(part.path) }
    }
  }

  private struct State {
    /// The file of the current attempt, until it is moved or removed.
    var attempt: Attempt?
    /// The last checkpoint of the attempts before. A retry neither removes its file nor cuts bytes off that it names.
    var checkpoint: Checkpoint?
    /// The offset at which the response began; retained after the attempt.
    var offset: Int64 = 0
    /// Whether the attempt has failed without a handler, so that its file stays with the journal.
    var awaitsHandler = false
    /// The part of a background download that the next attempt continues.
    var backgroundPart: ResumeData?
    /// The file of the last attempt, once it is complete.
    var fileURL: URL?
    /// The file that a run has handed out at its end. It belongs to the user.
    var deliveredFile: URL?
    /// The data from which a later download continues.
    var resumeData: Data?
    /// Whether a cancellation asked for resume data, and its completion handlers.
    var producesResumeData = false
    var resumeDataHandlers: [@Sendable (Data?) -> Void] = []
    /// The work that removes files which no response and no resume data name any more.
    var removals: [@Sendable () -> Void] = []
    /// The request before its adapters, which run again for the rest of the file. Their fields may be secrets.
    var initialRequest: URLRequest?
  }

  /// The prefix and the suffix of lasting names.
  static let fileName = (prefix: "Alamofire_", suffix: ".tmp")

  /// The data that the download continues from.
  let source: Data?
  let destination: FileDestination?
  /// The download of a background session; `nil` in others.
  let transfer: BackgroundTransfer?
  private let closeFile: @Sendable (Int32) -> Int32
  /// The file, the results and the handlers of resume data, for the loop, attempts and the threads of users.
  private let state = Mutex(State())

  /// Makes the plan of a download.
  ///
  /// - Parameter close: Closes the file. Returns the number of the error, or 0.
  init(
    resuming source: Data?, destination: FileDestination?, transfer: BackgroundTransfer? = nil,
    close: @escaping @Sendable (Int32) -> Int32 = FileLock.closeFile
  ) {
    self.source = source
    self.destination = destination
    self.transfer = transfer
    closeFile = close
  }

  /// Keeps the request before its adaptation, for resume data.
  func noteInitialRequest(_ request: URLRequest) {
    _ = state.withLock { replace(&$0.initialRequest, with: request) }
  }

  /// Returns the request of the next attempt: for the rest of the file if a background transfer has a part of it.
  func continuing(_ request: URLRequest) -> URLRequest {
    let part = transfer.flatMap { transfer in
      transfer.part.flatMap { part in
        ResumeData(request: request, version: part.version, file: transfer.filePath, received: part.size)
      }
    }
    state.withLock { $0.backgroundPart = part }
    return part?.asksForRest(request) ?? request
  }

  /// Returns the request of the next attempt: for the rest of the file if an earlier attempt has left a checkpoint.
  func continuingCheckpoint(_ request: URLRequest) -> URLRequest {
    guard let data = checkpointOfPart, let part = try? ResumeData(data) else { return request }
    return part.asksForRest(request)
  }

  /// The last checkpoint of a resumed download; `nil` if the user's resume data name another file. A retry of a new
  /// download begins again, in another file.
  private var checkpointOfPart: Data? {
    state.withLock { $0.checkpoint.flatMap { $0.extendsPart ? $0.data : nil } }
  }

  /// Returns the sink of the next hop. All hops of an attempt share a file.
  ///
  /// The file of an earlier download is only appended to, never overwritten. Resume data that the user has stored, also
  /// in another process, describe its first bytes.
  ///
  /// - Parameter profile: The options of the request, with the largest size of the file.
  func sink(method: String, fields: [HTTPHeader], profile: ConnectionProfile) throws(AFError)
    -> any BodySink
  {
    if let sink = state.withLock({ $0.attempt?.sink }) { return sink }
    let resume = try earlier()
    let part = resume.flatMap { $0.isUsable ? $0 : nil }
    let folder = FileManager.default.temporaryDirectory
    let path = transfer?.filePath ?? TemporaryFiles.path(in: folder.path, suffix: ".part")
    let finalPath = Self.temporaryTarget.path
    let pagePath = part == nil ? nil : transfer?.pagePath
    let limit = profile.options.bodySizeLimit
    let mayBePart = fields.contains { FieldName.equal($0.name, "Range") }
    let writePosition: WritePosition = { head in
      let position =
        resume?.writePosition(for: head, hasPart: part != nil, limit: limit)
        ?? FileSink.WritePosition.new(for: head, to: method, mayBePart: mayBePart)
      // A retry continues the part, whatever page the server has sent instead.
      guard case .success(.new) = position, let pagePath, !(200..<300).contains(head.status) else {
        return position
      }
      return .success(.aside(path: pagePath))
    }
    let position: FileSink.Continuation = { [weak self] head in
      let position = writePosition(head)
      if case .success(let position) = position { self?.begun(head, at: position) }
      return position
    }
    let file = FileSink(path: path, continuing: position, close: closeFile)
    let attempt = Attempt(
      file: file, finalPath: finalPath, part: part, transfer: transfer, writePosition: writePosition)
    state.withLock { state in
      state.attempt = attempt
      state.offset = 0
    }
    return attempt.sink
  }

  /// Returns the user's resume data, or a later checkpoint of their file; `nil` for a new download.
  private func earlier() throws(AFError) -> ResumeData? {
    if transfer != nil { return state.withLock { $0.backgroundPart } }
    return try (checkpointOfPart ?? source).map { (data) throws(AFError) in try ResumeData(data) }
  }

  private func begun(_ head: ResponseHead, at position: FileSink.WritePosition) {
    state.withLock { state in
      state.attempt?.head = head
      if case .part(_, let offset, _) = position { state.offset = offset } else { state.offset = 0 }
      state.attempt?.offset = state.offset
    }
  }

  /// The offset at which the response began; earlier bytes count as progress.
  var offset: Int64 { state.withLock { $0.offset } }

  /// Returns the number of earlier bytes that the body of a response continues. Observers of the response learn it
  /// before the body begins.
  func offset(of head: ResponseHead) -> Int64 {
    let position = state.withLock { $0.attempt }?.writePosition(head)
    if case .success(.part(_, let offset, _))? = position { return offset }
    return 0
  }

  private func take() -> Attempt? {
    state.withLock { state in
      defer { state.attempt = nil }
      return state.attempt
    }
  }

  /// Forgets the bytes of the attempt, before another one begins, or because the download was cancelled.
  /// ``removeForgotten()`` removes them. The file of the user's resume data stays.
  ///
  /// - Parameter keepsCheckpoint: Whether the file of the last checkpoint stays, too.
  func forget(keepsCheckpoint: Bool = false) {
    state.withLock { $0.awaitsHandler = false }
    let left = take()
    left?.unlock()
    if keepsCheckpoint, let checkpoint = left?.lastCheckpoint { return replaceCheckpoint(with: checkpoint) }
    if let left { removeLater { left.remove() } }
    if !keepsCheckpoint { replaceCheckpoint(with: nil) }
  }

  /// Replaces the checkpoint of an earlier attempt, whose file is removed: the download has ended, or left newer data.
  private func replaceCheckpoint(with newer: Checkpoint?) {
    let older = state.withLock { replace(&$0.checkpoint, with: newer) }
    guard let older, !older.extendsPart else { return }
    removeLater { FileSink.removePart(older.path) }
  }

  /// Keeps work that removes a file. A large file takes time, for which the loop must not wait.
  func removeLater(_ remove: @escaping @Sendable () -> Void) { state.withLock { $0.removals.append(remove) } }

  /// Whether there are files to remove.
  var hasForgotten: Bool { state.withLock { !$0.removals.isEmpty } }

  /// Removes the files that were forgotten, on the current thread.
  func removeForgotten() {
    for remove in state.withLock({ replace(&$0.removals, with: []) }) { remove() }
  }

  /// A new lasting name in the temporary folder: for a file that is complete, or named by resume data.
  static var temporaryTarget: URL {
    let name = "\(fileName.prefix)\(UUID().uuidString)\(fileName.suffix)"
    return FileManager.default.temporaryDirectory.appendingPathComponent(name)
  }

  /// Closes the file, which stays where it is. The first handler that is added makes resume data of it.
  func finishFile() {
    let attempt = state.withLock { state in
      state.awaitsHandler = true
      return state.attempt
    }
    attempt?.unlock()
  }

  /// Makes the resume data that no handler has asked for so far. Does nothing otherwise.
  func makeResumeDataForHandler() {
    let isAsked = state.withLock { state in
      defer { state.awaitsHandler = false }
      return state.awaitsHandler
    }
    if isAsked, let data = takeResumeData() { resumeData = data }
  }

  /// Closes the file, which stays where it is.
  func close() { take()?.unlock() }

  /// Takes the file of a complete response, to be moved.
  func takeFile() -> URL? {
    if let transfer, transfer.completed != nil {
      close()
      removeUnadoptedPart()
      return URL(fileURLWithPath: transfer.filePath)
    }
    guard var left = take() else { return nil }
    defer { left.unlock() }
    if left.head?.status == 200 {
      left.removePart()
      removeUnadoptedPart()
    }
    // A range that the caller has asked for, or a copy that a proxy has changed, completes the download, too. Other
    // statuses of success have no copy of the file, such as 202 of a server that is not ready.
    let isComplete = left.head.map { [200, 203, 206].contains($0.status) } ?? false
    if isComplete || left.extendsPart { replaceCheckpoint(with: nil) }
    // Without a head no bytes were written, as for the body of a redirect that is not followed.
    if left.head == nil {
      let path = left.part == nil ? left.file.path : left.transfer?.pagePath ?? left.file.path
      _ = FileManager.default.createFile(
        atPath: path, contents: nil, attributes: [.posixPermissions: 0o600])
      if left.transfer != nil { return URL(fileURLWithPath: path) }
    }
    return URL(fileURLWithPath: left.transfer == nil ? left.deliver() : left.file.path)
  }

  /// Removes the file of resume data that the whole file replaces, if a background transfer has not moved it.
  private func removeUnadoptedPart() {
    guard transfer != nil, let source, let part = try? ResumeData(source) else { return }
    FileSink.removePart(part.path)
  }

  /// Returns the resume data of the current attempt, whose transfer has failed; without any, the data that it continued
  /// from. The file gets its lasting name, because the data contain that name.
  func resumeDataAfterFailure() -> Data? {
    if let attempt = state.withLock({ $0.attempt }) {
      attempt.unlock()
      if let data = state.withLock({ $0.attempt?.resumeData(of: $0.initialRequest) }) { return data }
    }
    return earlierData
  }

  /// Returns resume data of the running attempt; `nil` if there is none, or the file belongs to a journal.
  func checkpoint() -> Data? {
    guard transfer == nil, let file = state.withLock({ $0.attempt?.file }), let size = file.flush() else {
      return nil
    }
    return state.withLock { state in
      // The attempt may have ended by now, and another one begun.
      state.attempt?.file === file ? state.attempt?.checkpoint(of: state.initialRequest, size) : nil
    }
  }

  /// Takes the resume data of a failed attempt; if there are none, its file is forgotten. The user's resume data stay
  /// valid until newer ones exist.
  func takeResumeData() -> Data? {
    if var left = take() {
      left.unlock()
      if let data = left.resumeData(of: state.withLock({ $0.initialRequest })) {
        removeLater { [left] in left.removePart() }
        replaceCheckpoint(with: nil)
        return data
      }
      removeLater { [left] in left.remove() }
    }
    return earlierData
  }

  /// The last checkpoint, or the resume data that the download was created from, if their file still exists.
  private var earlierData: Data? {
    [state.withLock { $0.checkpoint?.data }, source].compactMap { $0 }
      .first { (try? ResumeData($0))?.isUsable == true }
  }
}

// The results of the download.
extension DownloadPlan {
  /// The file of the last attempt, once it is complete.
  var fileURL: URL? {
    get { state.withLock { $0.fileURL } }
    set { state.withLock { $0.fileURL = newValue } }
  }

  /// The data from which a later download continues.
  var resumeData: Data? {
    get { state.withLock { $0.resumeData } }
    set { state.withLock { $0.resumeData = newValue } }
  }

  var fileAndResumeData: (URL?, Data?) { state.withLock { ($0.fileURL, $0.resumeData) } }

  /// Takes the file of the last attempt, to which no response refers any more.
  func takeFileURL() -> URL? { state.withLock { $0.fileURL.take() } }

  /// Notes that the run has ended, so that the user has the file.
  func noteDelivered() { state.withLock { $0.deliveredFile = $0.fileURL } }

  /// Forgets the results of an attempt, before another one. Returns its file, unless the user has it.
  func forgetResults() -> URL? {
    state.withLock { state in
      state.resumeData = nil
      let file = state.fileURL.take()
      return file == state.deliveredFile ? nil : file
    }
  }

  /// Whether a cancellation asked for resume data.
  var producesResumeData: Bool { state.withLock { $0.producesResumeData } }

  /// Notes that a cancellation asks for resume data.
  func requestResumeData() { state.withLock { $0.producesResumeData = true } }

  /// Notes that a cancellation asks for resume data, which `handler` gets at the end of the run.
  func requestResumeData(_ handler: @escaping @Sendable (Data?) -> Void) {
    state.withLock { state in
      state.producesResumeData = true
      state.resumeDataHandlers.append(handler)
    }
  }

  /// Takes the handlers that get the resume data of a run that has ended. Each handler is returned once.
  func takeResumeDataHandlers() -> (handlers: [@Sendable (Data?) -> Void], data: Data?) {
    state.withLock { state in
      defer { state.resumeDataHandlers = [] }
      return (state.resumeDataHandlers, state.resumeData)
    }
  }
}
