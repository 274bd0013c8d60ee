import Alamofire
import Foundation
import Glibc
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

private let KiB = 1024

/// A folder for one download.
struct SegmentedDownloadFolder {
  let url: URL
  var destination: URL { url.appendingPathComponent("file") }

  init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent("segments-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: url.path))?.sorted() ?? [] }
  func remove() { try? FileManager.default.removeItem(at: url) }

  /// Whether the folder has the complete file and nothing else.
  func hasOnly(_ bytes: Data) -> Bool {
    names == ["file"] && (try? Data(contentsOf: destination)) == bytes
  }

  /// Leaves a partial file with its record, as a killed process does.
  func putPart(_ bytes: Data, _ record: Data) throws {
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    for (name, bytes) in [("partial", bytes), ("ranges", record)] {
      try bytes.write(to: url.appendingPathComponent("file.alamofire-\(name)"))
    }
  }

  /// Returns the record of a file of `size` bytes with the entity tag `"v1"`.
  static func record(_ url: String, size: Int, boot: String = "", _ records: [JournalRecord]) throws -> Data {
    let description = TransferDescription(
      kind: .download, url: url, method: "GET", fields: [:], created: 0, boot: boot)
    let version = Representation(length: size, validator: "\"v1\"")
    let all = [.described(description), .identified(version, boot: boot)] + records
    return try #require(Journal.standard.lines(of: all))
  }
}

@Suite("Downloads in segments", .timeLimit(.minutes(5))) struct SegmentedDownloadTests {
  private let folder: SegmentedDownloadFolder

  init() throws { folder = try SegmentedDownloadFolder() }

  private func download(
    _ server: HTTPTestServer, session: Session = .real(), segments: Int = 4, minimum: Int = 64 * KiB,
    mirrors: [HTTPTestServer] = [], checksum: FileChecksum? = nil, options: DownloadRequest.Options = []
  ) -> SegmentedDownload {
    session.segmentedDownload(
      server.url("/file"), segments: segments, minimumSegmentSize: minimum,
      mirrors: mirrors.map { $0.url("/file") }, checksum: checksum, to: folder.destination, options: options)
  }

  private func failure(_ error: AFError?) -> SegmentedDownload.Failure? {
    error?.underlyingError as? SegmentedDownload.Failure
  }

  @Test("Four connections transfer a file at the same time, and each byte is requested once")
  func parallel() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 380 * KiB)
    let gate = Gate()
    file.script { $1.held(after: 1000, by: gate) }
    let server = try file.server()
    let download = download(server)
    async let response = download.response
    await gate.waitUntilReached(count: 4)
    #expect(file.questions.count == 4)
    gate.open()
    let end = await response
    #expect(end.error == nil)
    #expect(folder.hasOnly(file.bytes))
    #expect(file.ranges.map(\.count).reduce(0, +) == file.size)
    #expect(file.ranges.count == 4)
    #expect(end.progress.completedBytes == Int64(file.size) && end.progress.totalBytes == Int64(file.size))
    #expect(end.progress.connectionCount == 0 && end.progress.restartCount == 0)
    let questions = file.questions
    #expect(questions[0].request.header("If-Range") == nil)
    #expect(questions.dropFirst().allSatisfy { $0.request.header("If-Range") == "\"v1\"" })
    #expect(questions.allSatisfy { $0.request.header("Accept-Encoding") == "identity" })
  }

  @Test("Without ranges or a strong validator, one stream gets the file", arguments: [0, 1, 2])
  func stream(_ kind: Int) async throws {
    defer { folder.remove() }
    let file = SegmentedFile(
      size: kind == 2 ? 0 : 300 * KiB, hasRanges: kind != 0, tag: { (kind == 1 ? "W/" : "") + "\"v\($0)\"" })
    let server = try file.server()
    let response = await download(server).response
    #expect(response.error == nil)
    #expect(folder.hasOnly(file.bytes))
    #expect(file.questions.filter { $0.range == nil }.count == 1)
  }

  @Test("A body with a content coding is decoded in one stream")
  func encoded() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 100 * KiB)
    file.script { question, reply in
      guard question.range == nil else {
        return reply.with(header: "Content-Encoding", value: "gzip")
      }
      return Reply(body: .bytes(Array(file.bytes)))
    }
    let server = try file.server()
    #expect(await download(server).response.error == nil)
    #expect(folder.hasOnly(file.bytes))
  }

  @Test("A change of the file begins again once")
  func change() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 600 * KiB)
    let gate = Gate()
    file.script { question, reply in question.index < 4 ? reply.held(after: 1000, by: gate) : reply }
    let server = try file.server()
    let download = download(server)
    async let response = download.response
    await gate.waitUntilReached(count: 4)
    file.change()
    gate.open()
    let end = await response
    #expect(end.error == nil)
    #expect(end.progress.restartCount == 1)
    #expect(folder.hasOnly(file.bytes))
  }

  @Test("A file that changes with each request is an error, and no file appears")
  func endlessChange() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 380 * KiB)
    file.script { _, reply in
      file.change()
      return reply
    }
    let server = try file.server()
    let response = await download(server).response
    #expect(failure(response.error) == .resourceChanged)
    #expect(!folder.names.contains("file"))
  }

  @Test("Interrupted segments continue with the next byte", arguments: [false, true])
  func resets(hasRetryPolicy: Bool) async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 1000 * KiB)
    file.script { question, reply in
      guard question.index % 2 == 1, question.index < 12, let range = question.range else { return reply }
      return reply.with(effect: .closeAfterBody(bytes: range.count / 2))
    }
    let server = try file.server()
    let session = Session.real(
      interceptor: hasRetryPolicy ? RetryPolicy(retryLimit: 2, exponentialBackoffScale: 0.01) : nil)
    let response = await download(server, session: session).response
    #expect(response.error == nil)
    #expect(folder.hasOnly(file.bytes))
    #expect(response.progress.restartCount == 0)
    // Bytes after the end of a divided segment are received needlessly.
    #expect(response.progress.completedBytes == Int64(file.size))
  }

  @Test("A cancelled download continues with the bytes that are missing")
  func resumed() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 380 * KiB)
    let gate = Gate()
    file.script { $1.held(after: 10_000, by: gate) }
    let server = try file.server()
    let first = download(server)
    first.resume()
    #expect(await eventually { first.currentProgress.completedBytes == 40_000 })
    #expect(first.currentProgress.connectionCount == 4)
    let inUse = await download(server).response
    #expect(failure(inUse.error) == .fileInUse(first.partialFileURL))
    first.cancel()
    #expect(await first.response.error?.isExplicitlyCancelledError == true)
    #expect(folder.names == ["file.alamofire-partial", "file.alamofire-ranges"])
    gate.open()
    file.script(nil)
    let before = file.ranges.count
    let end = await download(server).response
    #expect(end.error == nil)
    #expect(folder.hasOnly(file.bytes))
    let requested = file.ranges.dropFirst(before).map(\.count).reduce(0, +)
    #expect(requested == file.size - 40_000)
    #expect(file.questions[before].request.header("If-Range") == "\"v1\"")
  }

  @Test("The file is free as soon as the end of a cancelled download shows") func freeFile() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    let gate = Gate()
    defer { gate.open() }
    file.script { $1.held(after: 10, by: gate) }
    let server = try file.server()
    for _ in 0..<20 {
      let download = download(server)
      download.resume()
      #expect(await eventually { download.currentProgress.connectionCount == 4 })
      download.cancel()
      let limit = ContinuousClock.now + .seconds(60)
      while download.currentProgress.connectionCount > 0, .now < limit {}
      let descriptor = open(download.partialFileURL.path, O_RDWR)
      #expect(flock(descriptor, LOCK_EX | LOCK_NB) == 0, "the file is locked, or gone")
      close(descriptor)
      #expect(await download.response.error?.isExplicitlyCancelledError == true)
    }
  }

  @Test("The server confirms a file of which an earlier process had all bytes", arguments: [false, true])
  func completePart(isChanged: Bool) async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 200 * KiB)
    let server = try file.server()
    let record = try SegmentedDownloadFolder.record(
      server.url("/file"), size: file.size, [.present(ByteRanges([0..<file.size]))])
    try folder.putPart(file.bytes, record)
    if isChanged { file.change() }
    let response = await download(server).response
    #expect(response.error == nil)
    #expect(folder.hasOnly(file.bytes))
    #expect(file.questions.first?.request.header("If-Range") == "\"v1\"")
    if !isChanged { #expect(file.ranges == [(file.size - 1)..<file.size]) }
  }

  @Test("Bytes of another version, or of another URL, are not continued", arguments: [false, true])
  func staleRecord(isOtherURL: Bool) async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 380 * KiB)
    let gate = Gate()
    file.script { $1.held(after: 10_000, by: gate) }
    let server = try file.server()
    let first = download(server)
    first.resume()
    #expect(await eventually { first.currentProgress.completedBytes == 40_000 })
    first.cancel()
    _ = await first.response
    gate.open()
    file.script(nil)
    let other = try file.server()
    if !isOtherURL { file.change() }
    let count = file.questions.count
    let end = await download(isOtherURL ? other : server).response
    #expect(end.error == nil)
    #expect(file.questions[count].request.header("If-Range") == (isOtherURL ? nil : "\"v1\""))
    #expect(end.progress.restartCount == (isOtherURL ? 0 : 1))
    #expect(folder.hasOnly(file.bytes))
  }

  @Test("A slow connection does not delay the end")
  func workStealing() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 1600 * KiB)
    let gate = Gate()
    // The second segment has the bytes from 64 KiB to 464 KiB.
    file.script { question, reply in
      question.range?.lowerBound == 64 * KiB ? reply.held(after: 0, by: gate) : reply
    }
    let server = try file.server()
    let download = download(server)
    download.resume()
    // The slow connection has less left than two segments of the smallest size.
    #expect(await eventually { download.currentProgress.completedBytes >= Int64(file.size - 128 * KiB) })
    gate.open()
    #expect(await download.response.error == nil)
    #expect(folder.hasOnly(file.bytes))
  }

  @Test("A suspended download does not begin, and continues when it is resumed")
  func suspended() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 380 * KiB)
    let gate = Gate()
    file.script { $1.held(after: 10_000, by: gate) }
    let server = try file.server()
    let download = download(server)
    download.suspend().response { _ in }
    download.resume()
    await gate.waitUntilReached(count: 4)
    download.suspend()
    gate.open()
    download.resume()
    #expect(await download.response.error == nil)
    #expect(folder.hasOnly(file.bytes))
  }

  @Test(
    "Of downloads that were suspended before their start, the resumed one begins", arguments: [true, false])
  func suspendedBeforeStart(isResumed: Bool) async {
    defer { folder.remove() }
    let download = Session.real().segmentedDownload("", to: folder.destination)
    download.suspend()
    if isResumed { download.resume() }
    // It takes effect after the start, which fails because of the URL.
    download.cancel()
    let error = await download.response.error
    #expect(error?.isInvalidURLError == isResumed && error?.isExplicitlyCancelledError == !isResumed)
  }

  @Test("Progress grows to the length of the file")
  func progress() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 2000 * KiB)
    let server = try file.server()
    let download = download(server)
    let queue = DispatchQueue(label: "progress")
    let reports = Recorder<SegmentedDownload.Progress>()
    download.downloadProgress(queue: queue) { reports.add($0) }
    var last: SegmentedDownload.Progress?
    for await progress in download.progress() { last = progress }
    _ = await download.response
    queue.sync {}
    #expect(last?.completedBytes == Int64(file.size))
    #expect(last?.fractionCompleted == 1)
    let counts = reports.values.map(\.completedBytes)
    #expect(counts == counts.sorted())
    #expect(counts.last == Int64(file.size))
  }

  @Test("Credentials answer the challenges of the server, but not of a mirror")
  func credentials() async throws {
    defer { folder.remove() }
    let (file, mirror) = (SegmentedFile(size: 380 * KiB), SegmentedFile(size: 380 * KiB))
    for file in [file, mirror] {
      file.script { question, reply in
        guard question.request.header("Authorization") != "Basic YW5uOnRvcA==" else { return reply }
        return Reply.status(401).with(header: "WWW-Authenticate", value: "Basic realm=\"r\"")
      }
    }
    let (server, other) = (try file.server(), try mirror.server())
    let download = download(server, mirrors: [other]).authenticate(username: "ann", password: "top")
    let response = await download.response
    #expect(response.error == nil)
    #expect(folder.hasOnly(file.bytes))
    #expect(file.ranges.count > 4)
    #expect(!mirror.questions.isEmpty)
    #expect(mirror.questions.allSatisfy { $0.request.header("Authorization") == nil })
    #expect(response.droppedMirrors == [.init(index: 0, reason: .status(401))])
  }

  @Test("Each segment is a request of the session: adapters, header fields and cookies")
  func ordinaryRequests() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 380 * KiB)
    file.script { $1.with(header: "Set-Cookie", value: "a=\($0.index)") }
    let server = try file.server()
    let adapter = Adapter { request, _, completion in
      var request = request
      request.headers.update(name: "X-Adapted", value: "yes")
      completion(.success(request))
    }
    let session = Session.real(configuration: .isolated)
    let response = await session.segmentedDownload(
      server.url("/file"), headers: ["Authorization": "Bearer t"], minimumSegmentSize: 64 * KiB,
      interceptor: adapter, to: folder.destination
    ).response
    #expect(response.error == nil)
    #expect(file.questions.count == 4)
    #expect(
      file.questions.allSatisfy {
        $0.request.header("X-Adapted") == "yes" && $0.request.header("Authorization") == "Bearer t"
      })
    #expect(file.questions.dropFirst().allSatisfy { $0.request.header("Cookie")?.hasPrefix("a=") == true })
  }
}
