@testable import Alamofire
import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Testing

/// Background transfers whose files cannot be flushed to the disk.
@Suite(.timeLimit(.minutes(1))) struct FailedFlushTests {
  private let fixture: BackgroundFixture
  private let files: UnflushableFiles

  init() throws {
    fixture = try BackgroundFixture()
    files = UnflushableFiles(try TransferFolder(path: fixture.journal.path))
  }

  private func begun(_ method: String = "GET") throws -> BackgroundTransfer {
    let transfers = BackgroundTransfers(identifier: "tests", files: .success(files), isDiscretionary: false)
    let transfer = transfers.make()
    var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:1/")))
    request.httpMethod = method
    try transfer.describe(request, kind: .download)
    try transfer.noteSent()
    let head = ResponseHead(status: 200)
    #expect(transfer.begin(head, { (nil, 0) }) == nil)
    try Data("bytes".utf8).write(to: URL(fileURLWithPath: transfer.filePath))
    return transfer
  }

  /// Returns the only transfer as another process would restore it.
  private func restored() throws -> BackgroundTransfer {
    let later = BackgroundTransfers(identifier: "tests", files: .success(files), isDiscretionary: false)
    return try #require(later.restore().first)
  }

  private func isNotedComplete(_ transfer: BackgroundTransfer, size: Int64 = 5) throws -> Bool {
    let journal = try #require(files.read("\(transfer.id.uuidString).journal"))
    return Journal.standard.content(of: journal).records.contains(.completed(size: size))
  }

  /// Writes bytes. Returns the kind of the failure, if there is one.
  private func failure(of transfer: BackgroundTransfer, _ size: Int64) -> TransportFailure.FailureKind? {
    if case .failure(let failure) = transfer.write({ _ in (.more, size) }) { failure.kind } else { nil }
  }

  /// Makes the plan of a download.
  ///
  /// - Parameter isLosing: Whether bytes are lost when the file is closed, as network file systems report it.
  private func plan(of transfer: BackgroundTransfer, isLosing: Bool = true) -> DownloadPlan {
    DownloadPlan(
      resuming: nil, destination: nil, transfer: transfer,
      close: { descriptor in
        close(descriptor)
        return isLosing ? EDQUOT : 0
      })
  }

  /// Writes the first bytes of a response that can be continued. Returns the sink.
  private func written(_ plan: DownloadPlan) throws -> any BodySink {
    let sink = try plan.sink(method: "GET", fields: [], profile: ConnectionProfile())
    let head = ResponseHead(status: 200, fields: [HTTPHeader(name: "ETag", value: "\"v\"")])
    #expect(sink.begin(head, wake: {}) == nil)
    _ = Array("text".utf8).withUnsafeBytes { sink.receive($0) }
    return sink
  }

  private func finishOnLoop(_ sink: any BodySink) -> TransportFailure? {
    UnflushableFiles.$isOnLoop.withValue(true) { sink.finish() }
  }

  @Test("A file that was flushed is noted as complete") func flushed() throws {
    files.isFailing = false
    let transfer = try begun()
    try transfer.noteCompleted()
    #expect(try isNotedComplete(transfer))
  }

  @Test("A file that cannot be flushed is not complete, and is removed") func unflushed() throws {
    let transfer = try begun()
    #expect(throws: AFError.self) { try transfer.noteCompleted() }
    #expect(try !isNotedComplete(transfer))
    #expect(!FileManager.default.fileExists(atPath: transfer.filePath))
    #expect(transfer.completed == nil)
  }

  @Test("If bytes could not be flushed during a download, it fails and begins with its first byte")
  func flushedAgain() async throws {
    let transfer = try begun()
    #expect(failure(of: transfer, 64 << 20) == nil)
    #expect(await eventually { files.flushed.count == 1 })
    files.isFailing = false
    #expect(await eventually { failure(of: transfer, 64 << 20) == .cannotWriteFile })
    #expect(throws: AFError.self) { try transfer.noteCompleted() }
    #expect(try !isNotedComplete(transfer))
    #expect(transfer.begin(ResponseHead(status: 200), { (nil, 0) }) == nil)
    #expect(failure(of: transfer, 5) == nil)
    try Data("bytes".utf8).write(to: URL(fileURLWithPath: transfer.filePath))
    try transfer.noteCompleted()
    #expect(try isNotedComplete(transfer))
  }

  @Test(
    "If bytes are lost when the file is closed, another attempt or process begins with its first byte",
    arguments: [true, false])
  func lostAtClose(isFinished: Bool) async throws {
    files.isFailing = false
    let transfer = try begun()
    let plan = plan(of: transfer)
    let sink = try written(plan)
    #expect(transfer.part?.size == 4)
    if isFinished { #expect(sink.finish()?.kind == .cannotWriteFile) } else { plan.finishFile() }
    #expect(transfer.part == nil)
    #expect(await eventually { files.size(of: transfer.names.file) == nil })
    let later = BackgroundTransfers(identifier: "tests", files: .success(files), isDiscretionary: false)
    #expect(try #require(later.restore().first).part == nil)
    #expect(throws: AFError.self) { try transfer.noteCompleted() }
  }

  @Test("A file whose bytes were lost is removed on another thread than the one that has closed it")
  func removalOfLostFile() async throws {
    files.isFailing = false
    let transfer = try begun()
    let sink = try written(plan(of: transfer))
    #expect(finishOnLoop(sink)?.kind == .cannotWriteFile)
    #expect(await eventually { files.removed.map(\.name) == [transfer.names.file] })
    #expect(files.removed.allSatisfy { !$0.isOnLoop })
  }

  @Test("A file whose bytes were lost is not continued before it is removed") func lostFileStays() throws {
    files.isFailing = false
    let transfer = try begun()
    let sink = try written(plan(of: transfer))
    files.ignoresRemovals = true
    #expect(sink.finish()?.kind == .cannotWriteFile)
    #expect(transfer.part == nil)
    #expect(files.size(of: transfer.names.file) == 4)
    #expect(throws: AFError.self) { try transfer.noteCompleted() }
  }

  @Test(
    "Bytes that were lost do not concern a response without a body after a retry",
    arguments: [RequestCore.RetryCause.retrier, .demand])
  func lostBeforeRetry(cause: RequestCore.RetryCause) throws {
    files.isFailing = false
    let transfer = try begun()
    let plan = plan(of: transfer)
    #expect(try written(plan).finish()?.kind == .cannotWriteFile)
    DownloadKind(plan: plan).beginAgain(because: cause)
    // As for a redirect that is not followed, no body begins.
    _ = try plan.sink(method: "GET", fields: [], profile: ConnectionProfile())
    #expect(plan.takeFile()?.path == transfer.filePath)
    try transfer.noteCompleted()
    #expect(try isNotedComplete(transfer, size: 0))
    #expect(files.size(of: transfer.names.file) == 0)
  }

  @Test(
    "If bytes are lost when the end of a session closes the file, the next one begins with the first byte",
    arguments: [true, false])
  func lostAtEndOfSession(isLost: Bool) throws {
    files.isFailing = false
    let transfer = try begun()
    let plan = plan(of: transfer, isLosing: isLost)
    let sink = try written(plan)
    transfer.owner.close()
    #expect(sink.finish() == nil)
    plan.close()
    let later = BackgroundTransfers(identifier: "tests", files: .success(files), isDiscretionary: false)
    let restored = try #require(later.restore().first)
    let size: Int64? = isLost ? nil : 4
    #expect(restored.part?.size == size)
  }

  @Test("A response whose head cannot be noted does not replace the bytes of an earlier one")
  func unnotedHead() throws {
    files.isFailing = false
    let transfer = try begun()
    files.recordFault = .refused
    let failure = transfer.begin(ResponseHead(status: 200)) { (nil, 0) }
    #expect(failure?.kind == .cannotWriteFile)
    #expect(!FileManager.default.fileExists(atPath: transfer.filePath))
    #expect(transfer.part == nil && transfer.completed == nil)
    files.recordFault = nil
    #expect(transfer.begin(ResponseHead(status: 200)) { (nil, 0) } == nil)
  }

  @Test("A record that was written in part does not void later ones", arguments: [true, false])
  func tornRecord(isRestored: Bool) throws {
    let transfers = BackgroundTransfers(identifier: "tests", files: .success(files), isDiscretionary: false)
    let transfer = transfers.make()
    var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:1/")))
    request.httpMethod = "POST"
    try transfer.describe(request, kind: .upload)
    files.recordFault = .torn
    #expect(throws: AFError.self) { try transfer.noteSent() }
    #expect(try !restored().isLost)
    files.recordFault = nil
    try (isRestored ? restored() : transfer).noteSent()
    #expect(try restored().isLost, "a POST would be sent twice")
  }

  @Test("The note that a request has options is written with the next record if it could not be at once")
  func unnotedOptions() throws {
    files.isFailing = false
    let transfer = try begun()
    files.recordFault = .torn
    transfer.noteOwnOptions()
    transfer.note(.located(url: "http://127.0.0.1:1/other"))
    #expect(try !restored().lacksOptions, "nothing could be written")
    files.recordFault = nil
    transfer.note(.located(url: "http://127.0.0.1:1/another"))
    #expect(try restored().lacksOptions, "another process would send the request without its options")
    #expect(try restored().location?.path == "/another")
    for _ in 0..<2 { transfer.noteOwnOptions() }
    let journal = try #require(files.read(transfer.names.journal))
    let notes = Journal.standard.content(of: journal).records.filter { $0 == .configured }
    #expect(notes.count == 1, "it is written once")
  }

  @Test(
    "Before another version replaces bytes that were flushed, the journal is flushed",
    arguments: [true, false])
  func otherVersion(isFailing: Bool) async throws {
    files.isFailing = false
    let transfer = try begun()
    #expect(failure(of: transfer, 64 << 20) == nil)
    #expect(await eventually { transfer.stored?.hasPresentBytes == true })
    #expect(files.flushed == [transfer.names.file])
    files.isFailing = isFailing
    let another = transfer.begin(ResponseHead(status: 200)) { (nil, 0) }
    #expect(files.flushed == [transfer.names.file, transfer.names.journal])
    #expect((another?.kind == .cannotWriteFile) == isFailing)
    #expect(FileManager.default.fileExists(atPath: transfer.filePath) != isFailing)
    guard !isFailing else { return }
    // Bytes that were not flushed do not count after a restart of the machine.
    #expect(transfer.begin(ResponseHead(status: 200)) { (nil, 0) } == nil)
    #expect(files.flushed.count == 2)
  }

  @Test("The journal of a request that is sent again is replaced in one step") func renewedJournal() throws {
    files.isFailing = false
    let transfer = try begun()
    try transfer.noteCompleted()
    transfer.beginAgain()
    #expect(
      !files.removed.contains { $0.name == transfer.names.journal },
      "without a journal, a process that ends now has lost the request")
    #expect(files.size(of: transfer.names.file) == nil)
    let restored = try restored()
    #expect(restored.request?.url == URL(string: "http://127.0.0.1:1/"))
    #expect(restored.completed == nil && restored.part == nil)
  }

  @Test(
    "On a full disk, the journal of a request that is sent again has the room of the outcome",
    arguments: ["file", "journal"])
  func renewedOnFullDisk(filling: String) throws {
    files.isFailing = false
    let transfer = try begun()
    try transfer.noteCompleted()
    let (file, journal) = (transfer.names.file, transfer.names.journal)
    files.filling = filling == "file" ? file : journal
    transfer.beginAgain()
    files.filling = nil
    #expect(transfer.isDescribed, "the body of an upload is known only from the journal")
    #expect(files.size(of: file) == nil)
    #expect(files.removed.contains { $0.name == journal } == (filling == "journal"))
    let restored = try restored()
    #expect(restored.request?.url == URL(string: "http://127.0.0.1:1/"))
    #expect(restored.completed == nil && restored.part == nil)
  }

  @Test("The body of an upload that cannot be flushed is not sent", arguments: [true, false])
  func unflushedBody(isFailing: Bool) throws {
    files.isFailing = isFailing
    let transfers = BackgroundTransfers(identifier: "tests", files: .success(files), isDiscretionary: false)
    let transfer = transfers.make()
    let form = try fixture.folder.file("form", Data("form".utf8))
    var failure: AFError?
    do throws(AFError) { try transfer.adopt(form, isOwned: true) } catch { failure = error }
    #expect((failure != nil) == isFailing)
    #expect(files.flushed == [transfer.names.body])
    #expect((files.size(of: transfer.names.body) == nil) == isFailing)
  }

  @Test("A file that was not moved stays if that cannot be noted, so that no other one is taken for it")
  func unnotedMove() throws {
    files.isFailing = false
    let transfer = try begun()
    try transfer.noteCompleted()
    let target = fixture.folder["target"]
    try Data("older".utf8).write(to: target)
    let moved = transfer.move(to: target.path, options: 0) {
      files.recordFault = .refused
      return .failure(.explicitlyCancelled)
    }
    guard case .failure? = moved else {
      Issue.record("the file was moved")
      return
    }
    #expect(transfer.completed == nil)
    let another = transfer.begin(ResponseHead(status: 200)) {
      Issue.record("another response begins the file of the journal")
      return (nil, 0)
    }
    #expect(another?.kind == .cannotWriteFile)
    let later = BackgroundTransfers(identifier: "tests", files: .success(files), isDiscretionary: false)
    let restored = try #require(later.restore().first)
    #expect(restored.completed?.phase == .moving(to: target.path, options: 0))
    #expect(!restored.isAtDestination(target.path))
    #expect(try Data(contentsOf: URL(fileURLWithPath: restored.filePath)) == Data("bytes".utf8))
    files.recordFault = nil
    #expect(transfer.begin(ResponseHead(status: 200)) { (nil, 0) } == nil)
    #expect(later.restore().first?.completed == nil)
  }

  @Test(
    "A POST that is retried after its file was not moved is sent once more at most", arguments: [true, false])
  func retriedMove(isRetryNoted: Bool) throws {
    files.isFailing = false
    let transfer = try begun("POST")
    try transfer.noteCompleted()
    _ = transfer.move(to: fixture.folder["target"].path, options: 0) {
      files.recordFault = .refused
      return .failure(.explicitlyCancelled)
    }
    if isRetryNoted { files.recordFault = nil }
    transfer.noteRetry()
    #expect(!transfer.isLost, "a retrier has decided that the request is sent again")
    files.recordFault = nil
    try transfer.noteSent()
    #expect(transfer.begin(ResponseHead(status: 200)) { (nil, 0) } == nil)
    #expect(!transfer.mayRepeat)
    #expect(try restored().isLost, "another process would send the POST once more")
  }

  @Test("A POST whose file was not moved is not sent again if the attempt to move it is not noted")
  func unnotedAttempt() throws {
    files.isFailing = false
    let transfer = try begun("POST")
    try transfer.noteCompleted()
    files.recordFault = .refused
    _ = transfer.move(to: fixture.folder["target"].path, options: 0) {
      files.recordFault = nil
      return .failure(.explicitlyCancelled)
    }
    #expect(try restored().completed?.phase == .completed(size: 5), "another process moves the file")
    transfer.noteRetry()
    #expect(!transfer.isLost, "a retrier has decided that the request is sent again")
    try transfer.noteSent()
    #expect(transfer.begin(ResponseHead(status: 200)) { (nil, 0) } == nil)
    #expect(try restored().isLost, "another process would send the POST once more")
  }
}

/// A folder whose files cannot be flushed, and whose journals may refuse further records, or get a part of them.
private final class UnflushableFiles: TransferFiles {
  enum RecordFault { case refused, torn }

  private struct State {
    var isFailing = true
    var flushed: [String] = []
    var removed: [(name: String, isOnLoop: Bool)] = []
    var ignoresRemovals = false
    var recordFault: RecordFault?
    var filling: String?
  }

  /// Whether the code stands for the loop, which must not wait for the removal of a file.
  @TaskLocal static var isOnLoop = false

  private let files: any TransferFiles
  private let state = Mutex(State())

  init(_ files: any TransferFiles) { self.files = files }

  var isFailing: Bool {
    get { state.withLock { $0.isFailing } }
    set { state.withLock { $0.isFailing = newValue } }
  }
  var recordFault: RecordFault? {
    get { state.withLock { $0.recordFault } }
    set { state.withLock { $0.recordFault = newValue } }
  }
  /// The file that leaves no room for another one; `nil` if there is room.
  var filling: String? {
    get { state.withLock { $0.filling } }
    set { state.withLock { $0.filling = newValue } }
  }
  private var isFull: Bool { filling.map { files.size(of: $0) != nil } ?? false }
  /// Whether files stay although they are removed.
  var ignoresRemovals: Bool {
    get { state.withLock { $0.ignoresRemovals } }
    set { state.withLock { $0.ignoresRemovals = newValue } }
  }
  /// The files that were removed, in this order.
  var removed: [(name: String, isOnLoop: Bool)] { state.withLock { $0.removed } }
  /// The files that were flushed, in this order.
  var flushed: [String] { state.withLock { $0.flushed } }

  func synchronize(_ name: String) -> Bool {
    let isFailing = state.withLock { state in
      state.flushed.append(name)
      return state.isFailing
    }
    return !isFailing && files.synchronize(name)
  }

  var location: String { files.location }
  var boot: String { files.boot }
  func names() -> [String]? { files.names() }
  func read(_ name: String) -> Data? { files.read(name) }
  func size(of name: String) -> Int64? { files.size(of: name) }
  func changed(_ name: String) -> Int64? { files.changed(name) }
  func make(_ name: String, _ bytes: Data) -> Int32? { isFull ? ENOSPC : files.make(name, bytes) }
  func replace(_ name: String, by bytes: Data) -> Int32? {
    isFull ? ENOSPC : files.replace(name, by: bytes)
  }
  func append(_ bytes: Data, to name: String, at length: Int) -> Int32? {
    switch recordFault {
    case nil: return files.append(bytes, to: name, at: length)
    case .refused: return ENOSPC
    case .torn: return files.append(bytes.prefix(bytes.count / 2), to: name, at: length) ?? ENOSPC
    }
  }
  func remove(_ name: String) {
    let isIgnored = state.withLock { state in
      state.removed.append((name, Self.isOnLoop))
      return state.ignoresRemovals
    }
    if !isIgnored { files.remove(name) }
  }
  func unlock() { files.unlock() }
}
