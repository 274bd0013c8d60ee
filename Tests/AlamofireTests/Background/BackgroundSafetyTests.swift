import Alamofire
import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

/// Background transfers whose journals, files or servers are not as they should be.
@Suite(.timeLimit(.minutes(5))) struct BackgroundSafetyTests {
  private let fixture: BackgroundFixture
  private let id = UUID()

  init() throws {
    fixture = try BackgroundFixture()
    try FileManager.default.createDirectory(
      at: fixture.journal, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  private func url(_ suffix: String) -> URL { fixture.journal.appendingPathComponent("\(id)\(suffix)") }

  private func description(_ kind: TransferDescription.TransferKind, _ method: String, _ url: String)
    -> TransferDescription
  {
    TransferDescription(
      kind: kind, url: url, method: method, fields: [:], created: Date().timeIntervalSince1970, boot: boot)
  }

  private var boot: String {
    (try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)) ?? ""
  }

  private func write(_ records: [JournalRecord]) throws {
    let log = Journal.standard
    try records.reduce(into: Data()) { $0 += log.line(of: $1) ?? Data() }.write(to: url(".journal"))
  }

  private func transfers() -> BackgroundTransfers {
    BackgroundTransfers(identifier: "tests", folder: fixture.journal.path, isDiscretionary: false)
  }

  private static func head(_ status: Int = 200) -> ResponseHead { ResponseHead(status: status) }

  @Test("Restored transfers are in the order of their creation, and have their whole requests")
  func restoredRequests() throws {
    let seconds = Mutex<Double>(0)
    func transfers() -> BackgroundTransfers {
      BackgroundTransfers(identifier: "tests", folder: fixture.journal.path, isDiscretionary: false) {
        seconds.withLock { seconds in
          seconds += 1
          return seconds
        }
      }
    }
    let first = transfers()
    for index in 0..<8 {
      var request = try URLRequest(url: "http://127.0.0.1:1/\(index)", method: .post)
      request.httpBody = Data("body \(index)".utf8)
      try first.make().describe(request, kind: .download)
    }
    first.close()
    let next = transfers()
    let requests = next.restore().compactMap(\.request)
    #expect(requests.map(\.url?.lastPathComponent) == (0..<8).map { "\($0)" })
    #expect(requests.map(\.httpBody) == (0..<8).map { Data("body \($0)".utf8) })
    next.close()
  }

  @Test("What is noted after a damaged line is there in the next process")
  func recordsAfterDamage() throws {
    try write([.described(description(.download, "GET", "http://127.0.0.1:1/"))])
    let journal = try FileHandle(forWritingTo: url(".journal"))
    try journal.seekToEnd()
    try journal.write(contentsOf: Data("damaged".utf8))
    try journal.close()
    let location = try #require(URL(string: "http://127.0.0.1:2/"))
    let first = transfers()
    try #require(first.restore().first).noteLocation(location)
    first.close()
    let second = transfers()
    #expect(second.restore().first?.location == location)
    second.close()
  }

  @Test("A file of the same size at the destination is not mistaken for the downloaded one")
  func sameSize() async throws {
    let target = fixture.folder["file"]
    let part = fixture.journal.appendingPathComponent("Alamofire_\(id).tmp")
    try Data("old".utf8).write(to: target)
    try Data("new".utf8).write(to: part)
    let options = DownloadRequest.Options.removePreviousFile.rawValue
    try write([
      .described(description(.download, "GET", "http://127.0.0.1:1/")),
      .responded(StoredHead(Self.head()), offset: 0, boot: boot), .completed(size: 3),
      .moving(to: target.path, options: options),
    ])
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? DownloadRequest)
    #expect(await request.ended().error == nil)
    #expect(try Data(contentsOf: target) == Data("new".utf8))
    #expect(await fixture.isEmptied())
  }

  @Test("A file that was copied to its destination before the process ended is not copied again")
  func copied() async throws {
    let target = fixture.folder["file"]
    let part = fixture.journal.appendingPathComponent("Alamofire_\(id).tmp")
    for url in [target, part] { try Data("new".utf8).write(to: url) }
    try write([
      .described(description(.download, "GET", "http://127.0.0.1:1/")),
      .responded(StoredHead(Self.head()), offset: 0, boot: boot), .completed(size: 3),
      .moving(to: target.path, options: 0),
    ])
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? DownloadRequest)
    #expect(await request.ended().error == nil)
    #expect(try Data(contentsOf: target) == Data("new".utf8))
    #expect(await fixture.isEmptied())
  }

  @Test(
    "A name of the downloaded file at the destination is not mistaken for a copy of it",
    arguments: ["itself", "link"])
  func sameFile(kind: String) async throws {
    let part = fixture.journal.appendingPathComponent("Alamofire_\(id).tmp")
    try Data("new".utf8).write(to: part)
    var target = part
    if kind == "link" {
      target = fixture.folder["file"]
      try FileManager.default.createSymbolicLink(at: target, withDestinationURL: part)
    }
    let options = DownloadRequest.Options.removePreviousFile.rawValue
    try write([
      .described(description(.download, "GET", "http://127.0.0.1:1/")),
      .responded(StoredHead(Self.head()), offset: 0, boot: boot), .completed(size: 3),
      .moving(to: target.path, options: options),
    ])
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? DownloadRequest)
    let response = await request.ended()
    defer { response.removeFile() }
    #expect(response.error == nil)
    #expect(await fixture.isEmptied())
    let url = try #require(response.fileURL)
    #expect(url == target || kind == "itself")
    #expect(try Data(contentsOf: url) == Data("new".utf8))
  }

  @Test(
    "Something else at the place of a moved file is not delivered instead of it",
    arguments: ["pipe", "folder", "foreign"], [true, false])
  func replacedFile(kind: String, wasDelivering: Bool) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("again"))
    let shared = fixture.folder["shared"].path
    try #require(mkdir(shared, 0o700) == 0 && chmod(shared, 0o1777) == 0)
    let target = shared + "/Alamofire_\(UUID()).tmp"
    switch kind {
    case "pipe": try #require(mkfifo(target, 0o644) == 0)
    case "folder": try #require(mkdir(target, 0o755) == 0)
    default:
      try Data("planted".utf8).write(to: URL(fileURLWithPath: target))
      // Only an administrator can give a file away.
      guard geteuid() == 0, chown(target, 12_345, 12_345) == 0 else { return }
    }
    var records: [JournalRecord] = [
      .described(description(.download, "GET", server.url("/f"))),
      .responded(StoredHead(Self.head()), offset: 0, boot: boot), .completed(size: 3),
      .moving(to: target, options: 0), .moved,
    ]
    if wasDelivering { records.append(.delivering) }
    try write(records)
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? DownloadRequest)
    let response = await request.ended()
    defer { response.removeFile() }
    let url = try #require(response.fileURL, "\(String(describing: response.error))")
    #expect(url.path != target && server.requestCount == 1)
    #expect(FileManager.default.contents(atPath: url.path) == Data("again".utf8))
    #expect(await fixture.isEmptied())
  }

  @Test("A file that the handler may have replaced is not sent for again", arguments: [true, false])
  func takenFile(isLink: Bool) throws {
    let folder = fixture.folder["private"].path
    let target = folder + "/model"
    try #require(mkdir(folder, 0o700) == 0)
    try #require((isLink ? symlink("model-7", target) : mkdir(target, 0o700)) == 0)
    try write([
      .described(description(.download, "GET", "http://127.0.0.1:1/")),
      .responded(StoredHead(Self.head()), offset: 0, boot: boot), .completed(size: 3),
      .moving(to: target, options: 0), .moved, .delivering,
    ])
    #expect(try #require(transfers().restore().first).completed?.phase == .moved(to: target))
  }

  @Test("A response whose body is lost is not delivered without it", arguments: ["POST", "PUT"])
  func lostBody(method: String) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("again"))
    var description = description(.upload, method, server.url("/upload"))
    try Data("body".utf8).write(to: url(".body"))
    description.bodyFile = .init(path: url(".body").path, isOwned: false, size: 4)
    try write([
      .described(description), .sent,
      .responded(StoredHead(Self.head()), offset: 0, boot: boot), .answered(hasBody: true),
    ])
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? UploadRequest)
    let response = await request.ended()
    if method == "PUT" {
      #expect(response.data == Data("again".utf8))
    } else {
      #expect((response.error?.underlyingError as? URLError)?.code == .backgroundSessionWasDisconnected)
      #expect(server.requestCount == 0)
    }
  }

  @Test("An upload whose journal names no body is not sent without it", arguments: ["POST", "PUT"])
  func missingBody(method: String) async throws {
    let server = try HTTPTestServer(routes: .standard)
    try write([.described(description(.upload, method, server.url("/upload-sink")))])
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? UploadRequest)
    #expect((await request.ended().error?.underlyingError as? URLError)?.code == .cannotOpenFile)
    #expect(server.requestCount == 0)
    #expect(await fixture.isEmptied())
  }

  @Test("A response whose body cannot be stored is not noted as complete") func unstorableBody() throws {
    let transfer = transfers().make()
    let request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:1/")))
    try transfer.describe(request, kind: .upload)
    let name = "\(transfer.id.uuidString).response"
    let folder = fixture.journal.appendingPathComponent("\(name)/blocking")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    transfer.noteAnswer(Self.head(), Data("body".utf8), from: nil)
    let journal = try Data(contentsOf: try #require(fixture.record))
    #expect(
      Journal.standard.content(of: journal).records.allSatisfy { $0 != .answered(hasBody: false) })
  }

  @Test("Files of a journal that cannot be read stay") func unreadableJournal() throws {
    try Data().write(to: url(".journal"))
    let journal = try FileHandle(forWritingTo: url(".journal"))
    try journal.truncate(atOffset: UInt64(Journal.longestLine) * 5)
    try journal.close()
    try Data("body".utf8).write(to: url(".body"))
    #expect(fixture.session().restoredRequests.isEmpty)
    #expect(fixture.files == ["\(id).body", "\(id).journal"])
  }

  @Test("A finished download is sent again", arguments: [true, false])
  func downloadSentAgain(hasHandler: Bool) async throws {
    let server = try HTTPTestServer(routes: .none)
    for text in ["first", "second"] { server.enqueue(.text(text)) }
    let session = fixture.session(startRequestsImmediately: false)
    let target = fixture.folder["file"]
    let request = session.download(server.url("/"), to: { _, _ in (target, [.removePreviousFile]) }).resume()
    if hasHandler { #expect(await request.ended().error == nil) }
    #expect(await eventually { request.isFinished })
    session.retryRequest(request, withDelay: nil)
    #expect(await request.ended().error == nil)
    #expect(try Data(contentsOf: target) == Data("second".utf8))
    #expect(server.requestCount == 2)
    #expect(await fixture.isEmptied())
    withExtendedLifetime(session) {}
  }

  @Test(
    "A finished upload is sent again, also by its handler", arguments: ["handler", "caller", "unobserved"])
  func uploadSentAgain(by sender: String) async throws {
    let server = try HTTPTestServer(routes: .none)
    for text in ["first", "second"] { server.enqueue(.text(text)) }
    let session = fixture.session(startRequestsImmediately: false)
    // It is stored in a file of the session.
    let request = session.upload(Data("body".utf8), to: server.url("/"), method: .post)
    if sender == "handler" {
      request.response(queue: .global()) { [weak session, weak request] _ in
        if let request { session?.retryRequest(request, withDelay: nil) }
      }
    }
    request.resume()
    if sender == "caller" { #expect(await request.ended().data == Data("first".utf8)) }
    #expect(await eventually { request.isFinished && server.requestCount == (sender == "handler" ? 2 : 1) })
    if sender != "handler" { session.retryRequest(request, withDelay: nil) }
    #expect(await request.ended().data == Data("second".utf8))
    #expect(server.recordedRequests.map(\.bodyText) == ["body", "body"])
    #expect(await fixture.isEmptied())
    withExtendedLifetime(session) {}
  }

  @Test("A transfer that waits for a retry lets other discretionary ones begin") func turns() async throws {
    let server = try HTTPTestServer(routes: .standard)
    let session = fixture.session(isDiscretionary: true)
    // Nothing listens on this port.
    let first = session.download("http://127.0.0.1:1/")
    let ending = Task { await first.ended() }
    #expect(await eventually { first.retryCount > 0 })
    #expect(await session.download(server.url("/bytes/10")).endedWithoutFile().error == nil)
    first.cancel()
    #expect(await ending.value.error != nil)
  }

  @Test("A discretionary transfer that is retried without a delay keeps its turn", arguments: [true, false])
  func keptTurn(isUpload: Bool) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.status(503), .bytes(10), .bytes(10))
    let session = fixture.session(isDiscretionary: true)
    let ended = Recorder<AFError?>()
    let target = fixture.folder["first"]
    let second = session.download(server.url("/second"), to: fixture.destination("second"))
    let retrier = Retrier { request, _, _, completion in
      guard request.retryCount == 0 else { return completion(.doNotRetry) }
      second.response(queue: .global()) { ended.add($0.error) }
      completion(.retry)
    }
    if isUpload {
      session.upload(
        Data("body".utf8), to: server.url("/first"), method: .put, interceptor: retrier
      ).validate().response(queue: .global()) { ended.add($0.error) }
    } else {
      session.download(
        server.url("/first"), interceptor: retrier, to: { _, _ in (target, [.removePreviousFile]) }
      ).validate().response(queue: .global()) { ended.add($0.error) }
    }
    let errors = await ended.wait(for: 2)
    try #require(errors.count == 2)
    #expect(errors.allSatisfy { $0 == nil })
    #expect(server.recordedRequests.map(\.target) == ["/first", "/first", "/second"])
    #expect(await fixture.isEmptied())
    withExtendedLifetime(session) {}
  }

  @Test(
    "A transfer that was cancelled just before the end of its session is not restored",
    arguments: [true, false])
  func cancelledBeforeRelease(isUpload: Bool) async throws {
    let server = try HTTPTestServer(routes: .standard)
    let done = Latch()
    do {
      let session = fixture.session()
      let request: Request
      if isUpload {
        let upload = session.upload(Data("x".utf8), to: server.url("/post")).earliestBeginDate(.now + 60)
        upload.response(queue: .global()) { _ in done.open() }
        request = upload
      } else {
        let download = session.download(server.url("/bytes/10")).earliestBeginDate(.now + 60)
        download.response(queue: .global()) { _ in done.open() }
        request = download
      }
      #expect(await eventually { fixture.record != nil })
      request.cancel()
    }
    await done.wait()
    #expect(await fixture.isReleased())
    #expect(fixture.files.isEmpty)
    #expect(fixture.session(startRequestsImmediately: false).restoredRequests.isEmpty)
    #expect(server.requestCount == 0)
  }

  @Test("An upload that waits for a retry lets other discretionary transfers begin") func turnsOfUploads()
    async throws
  {
    let server = try HTTPTestServer(routes: .standard)
    let session = fixture.session(isDiscretionary: true)
    // Nothing listens on this port.
    let first = session.upload(Data("body".utf8), to: "http://127.0.0.1:1/", method: .put)
    let ending = Task { await first.ended() }
    #expect(await eventually { first.retryCount > 0 })
    #expect(await session.download(server.url("/bytes/10")).endedWithoutFile().error == nil)
    first.cancel()
    #expect(await ending.value.error != nil)
  }

  @Test("A suspended transfer lets other discretionary ones begin, and continues when it is resumed")
  func suspendedTransfer() async throws {
    let gate = Gate()
    let server = try HTTPTestServer(
      routes: .none.adding("/**") { request, _ in
        let reply = Reply.data(Array(repeating: 0x61, count: 1000))
        return request.target == "/first" ? reply.held(after: 100, by: gate) : reply
      })
    let session = fixture.session(isDiscretionary: true)
    let requests = ["first", "second", "third"].map {
      session.download(server.url("/\($0)"), to: fixture.destination($0))
    }
    let first = Task { await requests[0].ended() }
    #expect(await eventually { requests[0].downloadProgress.completedUnitCount == 100 })
    // It waits for its turn.
    let second = Task { await requests[1].ended() }
    #expect(await eventually { requests[1].isResumed && fixture.files.count >= 3 })
    requests[1].suspend()
    let third = Task { await requests[2].ended() }
    #expect(await eventually { requests[2].isResumed })
    requests[0].suspend()
    #expect(await eventually { requests[2].isFinished })
    #expect(requests[1].isSuspended && server.requestCount == 2)
    requests[1].resume()
    #expect(await second.value.error == nil)
    requests[0].resume()
    gate.open()
    #expect(await first.value.error == nil)
    #expect(await third.value.error == nil)
    #expect(await fixture.isEmptied())
  }

  @Test("Infinite times are stored in the journal as the longest ones") func infiniteTimes() async throws {
    let server = try HTTPTestServer(routes: .standard)
    var request = URLRequest(url: try #require(URL(string: server.url("/bytes/10"))))
    request.timeoutInterval = .infinity
    let session = fixture.session()
    #expect(await session.download(request).endedWithoutFile().error == nil)
    let past = Date(timeIntervalSince1970: -.infinity)
    let late = session.download(server.url("/bytes/10")).earliestBeginDate(past)
    #expect(await late.endedWithoutFile().error == nil)
  }

  @Test("A clock that is set back before each look does not prolong the wait for the earliest date")
  func clockSetBack() async throws {
    let clock = CacheFixture.Clock()
    let start = Double(clock.now)
    let transfers = BackgroundTransfers(
      identifier: "tests", folder: fixture.journal.path, isDiscretionary: false,
      now: { Double(clock.now) })
    let transfer = transfers.make()
    transfer.earliestBegin = Date(timeIntervalSince1970: start + 0.2)
    try transfer.describe(
      URLRequest(url: try #require(URL(string: "http://127.0.0.1:1/"))), kind: .download)
    clock.advance(-500)
    // If the wait had no end, the time limit of the suite would end the test.
    await transfer.begin()
  }

  @Test("A request that must not be repeated is not sent if the journal cannot note that")
  func unnotedSending() throws {
    let transfer = transfers().make()
    var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:1/")))
    request.httpMethod = "POST"
    try transfer.describe(request, kind: .upload)
    try FileManager.default.removeItem(at: try #require(fixture.record))
    guard case .failure = transfer.read({ (.bytes(1), true) }) else {
      Issue.record("the last bytes were handed out")
      return
    }
    #expect(throws: AFError.self) { try transfer.noteSent() }
  }

  @Test("Bytes on the disk are not counted for a later response") func staleSynchronization() throws {
    let transfer = transfers().make()
    try transfer.describe(
      URLRequest(url: try #require(URL(string: "http://127.0.0.1:1/"))), kind: .download)
    for number in [1, 2] {
      #expect(transfer.begin(Self.head()) { (nil, 0) } == nil)
      transfer.noteSynchronized(Int64(number), ofResponse: 1)
    }
    let journal = try Data(contentsOf: try #require(fixture.record))
    let records = Journal.standard.content(of: journal).records
    #expect(
      records.filter { if case .present = $0 { true } else { false } } == [.present(ByteRanges([0..<1]))])
  }

  @Test("A journal does not grow with each response") func growth() throws {
    let fields = [
      HTTPHeader(name: "ETag", value: "\"1\""),
      HTTPHeader(name: "X", value: String(repeating: "x", count: 30_000)),
    ]
    let head = ResponseHead(status: 200, fields: fields)
    let transfers = transfers()
    let transfer = transfers.make()
    let request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:1/")))
    try transfer.describe(request, kind: .download)
    for index in 0..<300 { #expect(transfer.begin(head) { (nil, Int64(index)) } == nil) }
    let journal = try Data(contentsOf: try #require(fixture.record))
    #expect(journal.count < 4 << 20)
    let stored = try #require(JournalState(Journal.standard.content(of: journal).records))
    #expect(stored.offset == 299)
    #expect(stored.head == StoredHead(head))
    transfers.close()
    #expect(fixture.session(startRequestsImmediately: false).restoredRequests.map(\.id) == [transfer.id])
  }

  @Test("A journal does not grow with each process that continues it") func growthOverProcesses() throws {
    let head = ResponseHead(
      status: 200, fields: [HTTPHeader(name: "X", value: String(repeating: "x", count: 30_000))])
    try write([.described(description(.download, "GET", "http://127.0.0.1:1/"))])
    for process in 0..<10 {
      let transfers = transfers()
      let transfer = try #require(transfers.restore().first, "\(process)")
      // Less than the size after which a process replaces the journal.
      for index in 0..<20 { #expect(transfer.begin(head) { (nil, Int64(index)) } == nil) }
      transfers.close()
    }
    let size = try Data(contentsOf: try #require(fixture.record)).count
    #expect(size < 4 << 20)
  }
}
