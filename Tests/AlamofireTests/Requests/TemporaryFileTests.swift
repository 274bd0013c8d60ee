import Alamofire
import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPTestServer
import Scenarios
import Testing

/// The lifetimes of files in the temporary folder.
@Suite("Temporary files", .serialized, .timeLimit(.minutes(2)))
struct TemporaryFileTests {
  /// Returns the names in a folder, without the locks of running processes.
  private static func names(in folder: URL) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { !$0.hasSuffix(".lock") }
  }

  @Test("A download of a killed process is removed by a later one")
  func killedProcesses() async throws {
    let temporary = try TemporaryFolder()
    defer { withExtendedLifetime(temporary) {} }
    let folder = temporary.url
    let reply = Reply.stallAfterBody(bytes: 300_000).with(header: "ETag", value: #""v""#)
    let server = try HTTPTestServer(routes: .none.adding("/**") { _, _ in reply })
    for _ in 0..<3 {
      let words = ["download", server.url("/"), folder.path + "/target", folder.path + "/../none", "1"]
      let child = try ChildProcess(
        words, folder: folder, complaints: folder.appendingPathComponent("complaints"))
      // The first attempt is cancelled for its resume data, and passes the crash point.
      #expect(await child.end() == .killed)
    }
    func left() throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix("Alamofire_") }
    }
    let before = try left()
    #expect(before.contains { $0.hasSuffix(".part") }, "\(before)")
    TemporaryFiles.removeOrphans(in: folder.path)
    #expect(try left() == [])
  }

  @Test("Folders whose names are equal as texts but not as bytes have their own locks")
  func bytesOfFolders() throws {
    let temporary = try TemporaryFolder()
    defer { withExtendedLifetime(temporary) {} }
    for name in ["\u{E9}", "e\u{301}"] {
      let folder = temporary.url.path + "/" + name
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
      let path = TemporaryFiles.path(in: folder, suffix: ".part")
      let lock = try FileManager.default.contentsOfDirectory(atPath: folder).first { $0.hasSuffix(".lock") }
      let name = try #require(lock, "without a lock, no process removes the files of a killed one")
      #expect(path.hasPrefix("\(folder)/\(name.dropLast(".lock".count))_"))
    }
  }

  @Test("Files of this process, of links and of other names are not orphans", .steps)
  func filesInUse() async throws {
    let temporary = try TemporaryFolder()
    defer { withExtendedLifetime(temporary) {} }
    let folder = temporary.url
    step("files of this process")
    let own = TemporaryFiles.path(in: folder.path, suffix: ".part")
    try Data("own".utf8).write(to: URL(fileURLWithPath: own))
    let lock = try #require(
      FileManager.default.contentsOfDirectory(atPath: folder.path).first { $0.hasSuffix(".lock") })
    let owner = String(lock.dropLast(".lock".count))
    // The lock of a process that has ended: no descriptor holds it.
    let ended = String(owner.dropLast(4)) + "0000"
    let target = folder.appendingPathComponent("target")
    try Data("target".utf8).write(to: target)
    try FileManager.default.createSymbolicLink(
      at: folder.appendingPathComponent("\(ended)_l.part"), withDestinationURL: target)
    // The lock is created last, because the first file of this process has started a removal of orphans as well.
    let names = ["\(ended)_a.part", "\(ended)", "Alamofire_b.tmp", "Alamofire_c.lock", "\(ended).lock"]
    for name in names { try Data(name.utf8).write(to: folder.appendingPathComponent(name)) }
    step("removal")
    TemporaryFiles.removeOrphans(in: folder.path)
    // Each removal unlinks the lock last.
    let isRemoved = await eventually {
      !FileManager.default.fileExists(atPath: folder.appendingPathComponent("\(ended).lock").path)
    }
    #expect(isRemoved)
    step("files that are left")
    let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(
      Set(left) == [
        lock, String(own.split(separator: "/").last ?? ""), "target", ended, "Alamofire_b.tmp",
        "Alamofire_c.lock",
        "\(ended)_l.part",
      ])
    #expect(try Data(contentsOf: target) == Data("target".utf8))
  }

  @Test("Downloads that end without a file leave none") func endings() async {
    await #expect(processExitsWith: .success) {
      let folder = FileManager.default.temporaryDirectory
        .appendingPathComponent("endings-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      setenv("TMPDIR", folder.path, 1)
      try #require(FileManager.default.temporaryDirectory.path == folder.path)
      defer { try? FileManager.default.removeItem(at: folder) }
      try await TemporaryFileTests.end(in: folder, validator: nil)
      try await TemporaryFileTests.end(in: folder, validator: #""v""#)
    }
  }

  @Test("A cancelled background download leaves no file") func cancelledInBackground() async {
    await #expect(processExitsWith: .success) {
      let temporary = try TemporaryFolder()
      defer { withExtendedLifetime(temporary) {} }
      setenv("TMPDIR", temporary.url.path, 1)
      let fixture = try BackgroundFixture()
      let server = try HTTPTestServer(routes: StallingFile(size: 60_000, stallingAfter: 40_000).routes)
      let session = fixture.session()
      let arrived = Latch()
      let request = session.download(server.url("/file"), to: fixture.destination("file"))
        .downloadProgress(queue: .global()) { if $0.completedUnitCount >= 40_000 { arrived.open() } }
      async let ending = request.ended()
      await arrived.wait()
      request.cancel()
      #expect(await ending.resumeData == nil)
      #expect(await fixture.isEmptied())
      #expect(
        try TemporaryFileTests.names(in: temporary.url) == [fixture.folder.url.lastPathComponent])
    }
  }

  /// Ends downloads in several ways, and checks their temporary files.
  private static func end(in folder: URL, validator: String?) async throws {
    let server = try HTTPTestServer(routes: .none)
    let session = Session(configuration: .isolated)
    defer { withExtendedLifetime(session) {} }
    func reply(_ reply: Reply) -> Reply {
      validator.map { reply.with(header: "ETag", value: $0) } ?? reply
    }
    func expectParts(_ count: Int, _ location: SourceLocation = #_sourceLocation) throws {
      let names = try names(in: folder)
      #expect(names.count == count, "\(names)", sourceLocation: location)
      #expect(names.allSatisfy { $0.hasSuffix(".tmp") }, "\(names)", sourceLocation: location)
      for name in names { try FileManager.default.removeItem(at: folder.appendingPathComponent(name)) }
    }
    let kept = validator == nil ? 0 : 1
    // Cancelled, without and with resume data.
    for wantsData in [false, true] {
      server.enqueue(reply(.stallAfterBody(bytes: 200_000)))
      let request = session.download(server.url("/"))
      request.downloadProgress(queue: DispatchQueue(label: "progress")) { [weak request] _ in
        request?.cancel(producingResumeData: wantsData)
      }
      let response = await request.serializingDownloadedFileURL().response
      #expect(response.error?.isExplicitlyCancelledError == true)
      #expect((response.resumeData != nil) == (wantsData && validator != nil))
      try expectParts(wantsData ? kept : 0)
    }
    // The server breaks off.
    server.enqueue(reply(.resetAfterBody(bytes: 200_000)))
    let broken = await session.download(server.url("/")).serializingDownloadedFileURL().response
    #expect((broken.resumeData != nil) == (validator != nil))
    try expectParts(kept)
    // Cancelled when the file is complete.
    server.enqueue(reply(.bytes(1000)))
    let complete = session.download(server.url("/"))
    complete.validate { [weak complete] _, _, _ in
      complete?.cancel()
      return .success(())
    }
    #expect(await complete.serializingDownloadedFileURL().response.error?.isExplicitlyCancelledError == true)
    #expect(complete.fileURL == nil)
    try expectParts(0)
  }

  @Test("A download on a full disk keeps the bytes of its checkpoint") func fullDiskAfterCheckpoint() async {
    await #expect(processExitsWith: .success) {
      let temporary = try TemporaryFolder()
      defer { withExtendedLifetime(temporary) {} }
      setenv("TMPDIR", temporary.url.path, 1)
      let server = try HTTPTestServer(routes: .none)
      let gate = Gate()
      server.enqueue(
        Reply(
          status: 200, headers: [.init(name: "ETag", value: "\"v\"")],
          body: .parts([.pattern(100_000), .gate(gate), .pattern(400_000)])))
      let session = Session(configuration: .isolated)
      defer { withExtendedLifetime(session) {} }
      // The limit makes writes beyond it fail.
      signal(SIGXFSZ, SIG_IGN)
      var limit = rlimit()
      getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
      limit.rlim_cur = 200_000
      #expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
      let arrived = Latch()
      let request = session.download(server.url("/"))
        .downloadProgress(queue: .global()) { if $0.completedUnitCount >= 100_000 { arrived.open() } }
      async let ending = request.serializingDownloadedFileURL().response
      await arrived.wait()
      let checkpoint = try #require(request.checkpoint())
      gate.open()
      let response = await ending
      #expect((response.error?.underlyingError as? URLError)?.code == .cannotWriteToFile)
      let file = try part(namedBy: checkpoint)
      #expect(try Data(contentsOf: file).count == 100_000)
      let data = try #require(response.resumeData)
      #expect(try part(namedBy: data) == file)
    }
  }

  @Test("A download on a full disk removes its part") func fullDisk() async {
    await #expect(processExitsWith: .success) {
      let folder = FileManager.default.temporaryDirectory
        .appendingPathComponent("full-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      setenv("TMPDIR", folder.path, 1)
      defer { try? FileManager.default.removeItem(at: folder) }
      let file = VersionedFile(size: 500_000)
      let server = try HTTPTestServer(routes: file.routes)
      let session = Session(configuration: .isolated)
      defer { withExtendedLifetime(session) {} }
      file.breakAfter(50_000)
      let part = await session.download(server.url("/file")).serializingDownloadedFileURL().response
      let data = try #require(part.resumeData)
      let before = try TemporaryFileTests.names(in: folder)
      // The limit makes writes beyond it fail.
      signal(SIGXFSZ, SIG_IGN)
      var limit = rlimit()
      getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
      let usual = limit.rlim_cur
      limit.rlim_cur = 200_000
      #expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
      let new = await session.download(server.url("/file")).serializingDownloadedFileURL().response
      #expect((new.error?.underlyingError as? URLError)?.code == .cannotWriteToFile)
      #expect(new.resumeData == nil)
      #expect(try TemporaryFileTests.names(in: folder) == before)
      let rest = await session.download(resumingWith: data).serializingDownloadedFileURL().response
      #expect((rest.error?.underlyingError as? URLError)?.code == .cannotWriteToFile)
      #expect(try TemporaryFileTests.names(in: folder) == before)
      let size =
        try FileManager.default.attributesOfItem(
          atPath: folder.appendingPathComponent(before[0]).path)[.size] as? Int
      #expect(size == 50_000)
      limit.rlim_cur = usual
      setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
      let whole = try await session.download(resumingWith: rest.resumeData ?? data).serializingData().value
      #expect(whole == file.bytes)
    }
  }
}
