import Alamofire
import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Scenarios
import Testing

/// Journals that a crash or a disk has damaged.
@Suite(.timeLimit(.minutes(5))) struct DamagedJournalTests {
  private let fixture: BackgroundFixture

  init() throws { fixture = try BackgroundFixture() }

  /// Returns the files of an interrupted download, as a killed process leaves them.
  private func leftFiles(_ server: HTTPTestServer, after count: Int64) async throws -> [String: Data] {
    let session = fixture.session()
    let arrived = Latch()
    let request = session.download(server.url("/file"), to: fixture.destination("file"))
      .downloadProgress(queue: .global()) { if $0.completedUnitCount >= count { arrived.open() } }
    let ending = Task { await request.ended() }
    await arrived.wait()
    let files = try currentFiles()
    request.cancel()
    _ = await ending.value
    #expect(await fixture.isEmptied())
    return files
  }

  /// Returns the files of an upload to which the server has not responded, as a killed process leaves them.
  private func leftFiles(of method: HTTPMethod, _ body: Data, _ server: HTTPTestServer, _ gate: Gate)
    async throws -> [String: Data]
  {
    let session = fixture.session()
    let request = session.upload(body, to: server.url("/upload"), method: method)
    let ending = Task { await request.ended() }
    await gate.waitUntilReached()
    let files = try currentFiles()
    request.cancel()
    _ = await ending.value
    gate.open()
    #expect(await fixture.isEmptied())
    return files
  }

  private func currentFiles() throws -> [String: Data] {
    try Dictionary(
      uniqueKeysWithValues: fixture.files.map {
        ($0, try Data(contentsOf: fixture.journal.appendingPathComponent($0)))
      })
  }

  private func put(_ files: [String: Data]) throws {
    for (name, bytes) in files { try bytes.write(to: fixture.journal.appendingPathComponent(name)) }
  }

  @Test("A download with a journal that was cut anywhere ends with the right file, or is not known")
  func cuts() async throws {
    let file = StallingFile(size: 9000, stallingAfter: 4000)
    let server = try HTTPTestServer(routes: file.routes)
    let files = try await leftFiles(server, after: 4000)
    let name = try #require(files.keys.first { $0.hasSuffix(".journal") })
    let journal = try #require(files[name])
    let firstLine = try #require(journal.firstIndex(of: UInt8(ascii: "\n"))) + 1
    for cut in stride(from: 0, through: journal.count, by: 7) {
      var damaged = files
      damaged[name] = journal.prefix(cut)
      try put(damaged)
      let session = fixture.session()
      #expect((session.restoredRequests.count == 1) == (cut >= firstLine), "\(cut)")
      if let request = session.restoredRequests.first as? DownloadRequest {
        #expect(await request.ended().error == nil)
        #expect(try Data(contentsOf: fixture.folder["restored-file"]) == file.bytes)
        #expect(await fixture.isEmptied())
      }
      for name in fixture.files {
        try FileManager.default.removeItem(at: fixture.journal.appendingPathComponent(name))
      }
    }
  }

  @Test(
    "An upload with a journal that was cut anywhere is sent whole, or ends with an error, or is not known",
    .steps,
    arguments: [HTTPMethod.put, .post])
  func cutUploads(method: HTTPMethod) async throws {
    let gate = Gate()
    let server = try HTTPTestServer(
      routes: .none.adding("/upload") { _, _ in gate.isOpen ? .text("again") : .text("ok").held(by: gate) })
    let body = Data((0..<5000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    let files = try await leftFiles(of: method, body, server, gate)
    let name = try #require(files.keys.first { $0.hasSuffix(".journal") })
    let journal = try #require(files[name])
    let firstLine = try #require(journal.firstIndex(of: UInt8(ascii: "\n"))) + 1
    for cut in Array(stride(from: 0, to: journal.count, by: 7)) + [journal.count] {
      step("journal of \(cut) bytes")
      var damaged = files
      damaged[name] = journal.prefix(cut)
      try put(damaged)
      let count = server.recordedRequests.count
      let session = fixture.session()
      #expect((session.restoredRequests.count == 1) == (cut >= firstLine), "\(cut)")
      guard let request = session.restoredRequests.first as? UploadRequest else {
        #expect(await fixture.isEmptied(), "\(cut): \(fixture.files)")
        continue
      }
      let response = await request.ended()
      // Only the record that the server may have the whole request prevents a POST from being sent.
      if method == .post, cut == journal.count {
        #expect(response.error?.transferCode == .backgroundSessionWasDisconnected)
        #expect(server.recordedRequests.count == count)
      } else {
        #expect(response.data == Data("again".utf8), "\(cut)")
        #expect(server.recordedRequests.dropFirst(count).map(\.body) == [Array(body)], "\(cut)")
      }
      #expect(await fixture.isEmptied(), "\(cut)")
    }
  }

  @Test("A transfer whose journal has a record of a later version is left unchanged") func laterVersion()
    async throws
  {
    let gate = Gate()
    let server = try HTTPTestServer(
      routes: .none.adding("/upload") { _, _ in gate.isOpen ? .text("again") : .text("ok").held(by: gate) })
    var files = try await leftFiles(of: .post, Data("body".utf8), server, gate)
    let name = try #require(files.keys.first { $0.hasSuffix(".journal") })
    let json = #"{"promised":{"once":true}}"#
    let sum = try #require(OpenSSLHashes().text(.sha256, Array(json.utf8)))
    files[name, default: Data()] += Data("\(sum.prefix(16)) \(json)\n".utf8)
    try put(files)
    let count = server.requestCount
    let session = fixture.session()
    #expect(session.restoredRequests.isEmpty && session.backgroundFolderError == nil)
    #expect(try currentFiles() == files)
    session.session.invalidateAndCancel()
    #expect(try currentFiles() == files)
    #expect(server.requestCount == count)
  }

  @Test("A clock that was set back neither delays a transfer nor ends it") func clock() async throws {
    let gate = Gate()
    let server = try HTTPTestServer(
      routes: .none.adding("/upload") { _, _ in gate.isOpen ? .text("again") : .text("ok").held(by: gate) })
    var files = try await leftFiles(of: .put, Data("body".utf8), server, gate)
    let name = try #require(files.keys.first { $0.hasSuffix(".journal") })
    let log = Journal.standard
    let records = log.content(of: try #require(files[name])).records.map { record in
      guard case .described(var description) = record else { return record }
      // Created a year later, by today's clock, for a date that was over then.
      description.created += 365 * 86_400
      description.earliestBegin = description.created - 60
      return .described(description)
    }
    files[name] = records.reduce(into: Data()) { $0 += log.line(of: $1) ?? Data() }
    try put(files)
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? UploadRequest)
    #expect(await request.ended().data == Data("again".utf8))
    #expect(await fixture.isEmptied())
  }

  @Test("Bytes of another boot that were never synchronized are not used") func otherBoot() async throws {
    let file = StallingFile(size: 9000, stallingAfter: 4000)
    let server = try HTTPTestServer(routes: file.routes)
    var files = try await leftFiles(server, after: 4000)
    let part = try #require(files.keys.first { $0.hasSuffix(".tmp") })
    // The size is right, the bytes never reached the disk.
    files[part] = Data(count: files[part]?.count ?? 0)
    let name = try #require(files.keys.first { $0.hasSuffix(".journal") })
    let log = Journal.standard
    let records = log.content(of: try #require(files[name])).records.map { record in
      if case .responded(let head, let offset, _) = record {
        return JournalRecord.responded(head, offset: offset, boot: "another")
      }
      return record
    }
    files[name] = records.reduce(into: Data()) { $0 += log.line(of: $1) ?? Data() }
    try put(files)
    let session = fixture.session()
    let request = try #require(session.restoredRequests.first as? DownloadRequest)
    #expect(await request.ended().error == nil)
    #expect(try Data(contentsOf: fixture.folder["restored-file"]) == file.bytes)
    #expect(server.recordedRequests.last?.header("Range") == nil)
  }

  @Test("Files without a journal are removed, files of resume data after a week") func sweep() throws {
    try FileManager.default.createDirectory(at: fixture.journal, withIntermediateDirectories: true)
    let old = Date(timeIntervalSinceNow: -8 * 86_400)
    let names = [
      "\(UUID()).body", "\(UUID()).response", "\(UUID()).journal", "Alamofire_old.tmp", "Alamofire_new.tmp",
      "other",
    ]
    try put(Dictionary(uniqueKeysWithValues: names.map { ($0, Data("x".utf8)) }))
    try FileManager.default.setAttributes(
      [.modificationDate: old], ofItemAtPath: fixture.journal.path + "/Alamofire_old.tmp")
    let session = fixture.session()
    #expect(session.restoredRequests.isEmpty)
    #expect(fixture.files == ["Alamofire_new.tmp", "other"])
  }

  @Test("A folder that others may write to is refused") func foreignFolder() async throws {
    try FileManager.default.createDirectory(at: fixture.journal, withIntermediateDirectories: true)
    try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: fixture.journal.path)
    let server = try HTTPTestServer(routes: .standard)
    let session = fixture.session()
    let response = await session.download(server.url("/bytes/10")).ended()
    let failure = response.error?.underlyingError as? URLError
    #expect(failure?.code == .cannotCreateFile)
    #expect(failure?.localizedDescription.contains("others may write") == true)
    #expect(server.recordedRequests.isEmpty)
  }

  @Test("Two identifiers never share a folder") func names() {
    let identifiers = [
      "a", "A", "a/b", "a%2fb", "..", ".", "", "ü", "u\u{308}", "%", "%25", "a b", "a\u{1}b",
      String(repeating: "x", count: 300), String(repeating: "x", count: 301),
      "%" + String(repeating: "0", count: 64),
    ]
    let paths = identifiers.map { BackgroundFolder.path(of: $0) }
    #expect(Set(paths).count == paths.count)
    #expect(paths.allSatisfy { $0.split(separator: "/").allSatisfy { $0.utf8.count < 256 && $0 != ".." } })
  }
}
