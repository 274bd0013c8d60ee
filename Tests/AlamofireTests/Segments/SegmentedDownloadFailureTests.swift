import Alamofire
import ChildProcesses
import Foundation
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

private let KiB = 1024

@Suite("Failures of downloads in segments", .timeLimit(.minutes(5))) struct SegmentedDownloadFailureTests {
  private let folder: SegmentedDownloadFolder

  init() throws { folder = try SegmentedDownloadFolder() }

  private func download(
    _ server: HTTPTestServer, session: Session = .real(), mirrors: [HTTPTestServer] = [],
    checksum: FileChecksum? = nil, options: DownloadRequest.Options = []
  ) -> SegmentedDownload {
    session.segmentedDownload(
      server.url("/file"), minimumSegmentSize: 64 * KiB, mirrors: mirrors.map { $0.url("/file") },
      checksum: checksum, to: folder.destination, options: options)
  }

  private func failure(_ error: AFError?) -> SegmentedDownload.Failure? {
    error?.underlyingError as? SegmentedDownload.Failure
  }

  private func hash(_ algorithm: DigestChallenge.Algorithm, _ data: Data) throws -> [UInt8] {
    try #require(OpenSSLHashes().hash(algorithm, Array(data)))
  }

  @Test("The remaining time of any length at any rate has a value")
  func remainingTime() {
    defer { folder.remove() }
    #expect(SegmentedDownload.Progress.time(of: 10, at: 4) == .seconds(2.5))
    for rate in [1e-300, 1e-3, 1, 1e300] {
      #expect(SegmentedDownload.Progress.time(of: .max, at: rate) >= .zero)
    }
  }

  @Test("A checksum is verified over the whole file")
  func checksum() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    let server = try file.server()
    let right = try #require(FileDigest(.sha256, try hash(.sha256, file.bytes))).hex
    #expect(await download(server, checksum: .sha256(right)).response.error == nil)
    #expect(folder.hasOnly(file.bytes))
    let wrong = FileChecksum.sha256(String(repeating: "0", count: 64))
    let response = await download(server, checksum: wrong, options: .removePreviousFile).response
    #expect(failure(response.error) == .checksumMismatch(expected: wrong, actual: right))
    #expect(response.error?.localizedDescription.contains("has the SHA-256 \(right), not 0000") == true)
    // The earlier file stays.
    #expect(folder.hasOnly(file.bytes))
    let unreadable = await download(server, checksum: .sha512("0"), options: .removePreviousFile).response
    #expect(failure(unreadable.error) == .checksumMismatch(expected: .sha512("0"), actual: ""))
    #expect(
      unreadable.error?.localizedDescription.contains(
        #"The checksum "0" is not a SHA-512: 128 hexadecimal digits are needed."#) == true)
  }

  @Test("A file that a download does not own alone is left unchanged")
  func foreignFile() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    let server = try file.server()
    let victim = folder.url.appendingPathComponent("victim")
    try Data("victim".utf8).write(to: victim)
    let partial = URL(fileURLWithPath: folder.destination.path + ".alamofire-partial")
    try FileManager.default.linkItem(at: victim, to: partial)
    let response = await download(server).response
    #expect((response.error?.underlyingError as? URLError)?.code == .cannotCreateFile)
    #expect(try Data(contentsOf: victim) == Data("victim".utf8))
    #expect(file.questions.isEmpty)
  }

  @Test("The digest of the response is verified", arguments: ["Repr-Digest", "Digest"], [false, true])
  func digest(name: String, isRight: Bool) async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    let hash = try hash(.sha512, isRight ? file.bytes : Data())
    let text = Data(hash).base64EncodedString()
    file.script { $1.with(header: name, value: name == "Digest" ? "SHA-512=\(text)" : "sha-512=:\(text):") }
    let server = try file.server()
    let response = await download(server).response
    if isRight {
      #expect(response.error == nil)
      #expect(folder.hasOnly(file.bytes))
    } else {
      guard case .checksumMismatch? = failure(response.error) else {
        Issue.record("\(String(describing: response.error))")
        return
      }
      #expect(folder.names == [])
    }
  }

  @Test("The digest of a whole response instead of a range is verified", arguments: [false, true])
  func digestOfWhole(isRight: Bool) async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    let text = Data(try hash(.sha256, isRight ? file.bytes : Data())).base64EncodedString()
    let other = Data(try hash(.sha256, Data([1]))).base64EncodedString()
    let whole = Reply.data(Array(file.bytes)).with(header: "ETag", value: "\"v1\"")
      .with(header: "Repr-Digest", value: "sha-256=:\(text):")
    file.script { question, reply in
      question.index == 0 ? reply.with(header: "Repr-Digest", value: "sha-256=:\(other):") : whole
    }
    let server = try file.server()
    let response = await download(server).response
    #expect(response.progress.restartCount == 1)
    if isRight {
      #expect(response.error == nil)
      #expect(folder.hasOnly(file.bytes))
    } else {
      guard case .checksumMismatch? = failure(response.error) else {
        Issue.record("\(response.result)")
        return
      }
      #expect(folder.names == [])
    }
  }

  @Test("The digest of a broken stream does not hold for the next one")
  func digestOfBrokenStream() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 100 * KiB, hasRanges: false)
    let texts = [Data(), file.bytes].map { Data((try? hash(.sha256, $0)) ?? []).base64EncodedString() }
    file.script { question, reply in
      let described = reply.with(header: "Repr-Digest", value: "sha-256=:\(texts[min(question.index, 1)]):")
      return question.index == 0 ? described.with(effect: .closeAfterBody(bytes: 0)) : described
    }
    let server = try file.server()
    let response = await download(server).response
    #expect(response.error == nil)
    #expect(file.questions.count == 2)
    #expect(folder.hasOnly(file.bytes))
  }

  @Test("A file that cannot be flushed to the disk is an error")
  func failedFlush() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 100 * KiB)
    let gate = Gate()
    file.script { question, reply in question.index == 0 ? reply.held(after: 100, by: gate) : reply }
    let server = try file.server()
    let download = download(server)
    download.resume()
    #expect(await eventually { download.currentProgress.completedBytes > 0 })
    let partial = folder.destination.path + ".alamofire-partial"
    #expect(try #require(OpenFile(path: partial)).makeUnflushable())
    gate.open()
    let error = await download.response.error
    #expect((error?.underlyingError as? URLError)?.code == .cannotWriteToFile)
    #expect(folder.names == [])
  }

  @Test("A mirror with the same validator gets segments")
  func mirror() async throws {
    defer { folder.remove() }
    let (file, copy) = (SegmentedFile(size: 400 * KiB), SegmentedFile(size: 400 * KiB))
    let (server, mirror) = (try file.server(), try copy.server())
    let response = await AF.segmentedDownload(
      server.url("/file"), headers: ["Authorization": "secret"], minimumSegmentSize: 64 * KiB,
      mirrors: [mirror.url("/file")], to: folder.destination
    ).response
    #expect(response.error == nil)
    #expect(response.droppedMirrors == [])
    #expect(folder.hasOnly(file.bytes))
    #expect(!file.questions.isEmpty && !copy.questions.isEmpty)
    // Another origin does not get the credentials of the first one.
    #expect(copy.questions.allSatisfy { $0.request.header("Authorization") == nil })
    #expect(file.questions.allSatisfy { $0.request.header("Authorization") == "secret" })
  }

  @Test(
    "A mirror that differs is dropped; with a checksum another validator is allowed",
    arguments: [false, true])
  func differentMirror(hasChecksum: Bool) async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    let copy = SegmentedFile(size: 400 * KiB, tag: { "\"mirror-\($0)\"" })
    let (server, mirror) = (try file.server(), try copy.server())
    let hash = try #require(FileDigest(.sha256, try hash(.sha256, file.bytes))).hex
    let response = await download(
      server, mirrors: [mirror], checksum: hasChecksum ? .sha256(hash) : nil
    ).response
    #expect(response.error == nil)
    #expect(response.droppedMirrors == (hasChecksum ? [] : [.init(index: 0, reason: .differs)]))
    #expect(folder.hasOnly(file.bytes))
  }

  @Test("Mirrors that fail are dropped, and the first server sends the rest")
  func brokenMirrors() async throws {
    defer { folder.remove() }
    let (file, missing, plain) = (
      SegmentedFile(size: 800 * KiB), SegmentedFile(size: 1), SegmentedFile(size: 800 * KiB, hasRanges: false)
    )
    missing.script { _, _ in .status(404) }
    let servers = [try file.server(), try missing.server(), try plain.server()]
    let response = await download(servers[0], mirrors: [servers[1], servers[2]]).response
    #expect(response.error == nil)
    #expect(
      response.droppedMirrors == [
        .init(index: 0, reason: .status(404)), .init(index: 1, reason: .hasNoRanges),
      ])
    #expect(folder.hasOnly(file.bytes))
  }

  @Test("A mirror is used if the first server has no file")
  func onlyMirror() async throws {
    defer { folder.remove() }
    let (missing, file) = (SegmentedFile(size: 1), SegmentedFile(size: 400 * KiB))
    missing.script { _, _ in .status(404) }
    let (server, mirror) = (try missing.server(), try file.server())
    #expect(await download(server, mirrors: [mirror]).response.error == nil)
    #expect(folder.hasOnly(file.bytes))
  }

  @Test("A refused request is an error with its status, and leaves nothing")
  func refused() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 1)
    file.script { _, _ in .status(404) }
    let server = try file.server()
    let response = await download(server).response
    #expect(response.error?.responseCode == 404)
    #expect(response.response?.statusCode == 404)
    #expect(folder.names == [])
    #expect(file.questions.count == 1)
  }

  @Test("A server that is unavailable is asked five times")
  func unavailable() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 1)
    file.script { _, _ in .status(503) }
    let server = try file.server()
    let response = await download(server).response
    #expect(response.error?.responseCode == 503)
    #expect(file.questions.count == 5)
  }

  @Test("A server that allows two connections gets two")
  func connectionLimit() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    let gate = Gate()
    file.script { question, reply in
      switch question.index {
      case 0, 1: reply.held(after: 100, by: gate)
      case 2, 3: .status(503)
      default: reply
      }
    }
    let server = try file.server()
    let download = download(server)
    download.resume()
    #expect(await eventually { file.questions.count == 4 })
    gate.open()
    #expect(await download.response.error == nil)
    #expect(folder.hasOnly(file.bytes))
  }

  @Test("A server that sends other ranges than requested is an error")
  func wrongRanges() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    file.script { question, reply in
      guard question.index > 0, let range = question.range else { return reply }
      var reply = reply
      reply.headers.removeAll { $0.name == "Content-Range" }
      return reply.with(
        header: "Content-Range", value: "bytes \(range.lowerBound + 1)-\(range.upperBound)/\(file.size)")
    }
    let server = try file.server()
    let response = await download(server).response
    #expect((response.error?.underlyingError as? URLError)?.code == .badServerResponse)
    #expect(!folder.names.contains("file"))
  }

  @Test("A server that stops to send ranges sends the whole file")
  func rangesEnd() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    file.script { question, reply in
      guard question.index > 0 else { return reply }
      return Reply.data(Array(file.bytes)).with(header: "ETag", value: "\"v1\"")
    }
    let server = try file.server()
    let response = await download(server).response
    #expect(response.error == nil)
    #expect(response.progress.restartCount == 1)
    #expect(folder.hasOnly(file.bytes))
  }

  @Test(
    "A destination that is a folder is an error before any request, and the folder stays",
    arguments: [[], .removePreviousFile] as [DownloadRequest.Options])
  func folderAsDestination(options: DownloadRequest.Options) async throws {
    defer { folder.remove() }
    let inner = folder.destination.appendingPathComponent("inner")
    try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: true)
    let file = SegmentedFile(size: 100 * KiB)
    let server = try file.server()
    let error = await download(server, options: options).response.error
    guard case .downloadedFileMoveFailed(let reason, _, let destination)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect((reason as NSError).code == (options.isEmpty ? EEXIST : EISDIR))
    #expect(destination == folder.destination)
    #expect(file.questions.isEmpty)
    #expect(folder.names == ["file"] && FileManager.default.fileExists(atPath: inner.path))
  }

  @Test("A destination that is a pipe is an error before any request, and the pipe stays")
  func pipeAsDestination() async throws {
    defer { folder.remove() }
    try #require(mkfifo(folder.destination.path, 0o600) == 0)
    let file = SegmentedFile(size: 100 * KiB)
    let server = try file.server()
    let error = await download(server, options: .removePreviousFile).response.error
    guard case .downloadedFileMoveFailed(let reason, _, _)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect((reason as NSError).code == EINVAL)
    #expect(file.questions.isEmpty)
    var information = stat()
    #expect(lstat(folder.destination.path, &information) == 0 && information.st_mode & S_IFMT == S_IFIFO)
  }

  @Test("An interrupted stream begins again, and fails after five attempts")
  func brokenStream() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 100 * KiB, hasRanges: false)
    file.script { $1.with(effect: .closeAfterBody(bytes: 50_000)) }
    let server = try file.server()
    let response = await download(server).response
    #expect((response.error?.underlyingError as? URLError)?.code == .networkConnectionLost)
    #expect(file.questions.count == 5)
    #expect(folder.names == [])
  }

  @Test("A file that another program creates at the destination during the download stays")
  func destinationThatAppears() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 100 * KiB)
    let destination = folder.destination
    file.script { _, reply in
      try? Data("of another program".utf8).write(to: destination)
      return reply
    }
    let server = try file.server()
    let response = await download(server).response
    guard case .downloadedFileMoveFailed? = response.error else {
      Issue.record("\(String(describing: response.error))")
      return
    }
    #expect(try Data(contentsOf: destination) == Data("of another program".utf8))
  }

  @Test("A destination that exists is an error before any request, unless it is to be replaced")
  func existingDestination() async throws {
    defer { folder.remove() }
    try Data("old".utf8).write(to: folder.destination)
    let file = SegmentedFile(size: 100 * KiB)
    let server = try file.server()
    let response = await download(server).response
    guard case .downloadedFileMoveFailed? = response.error else {
      Issue.record("\(String(describing: response.error))")
      return
    }
    #expect(file.questions.isEmpty)
    #expect(await download(server, options: .removePreviousFile).response.error == nil)
    #expect(folder.hasOnly(file.bytes))
  }

  @Test("A folder that does not exist is an error, unless it is to be created")
  func missingFolder() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 100 * KiB)
    let server = try file.server()
    let destination = folder.url.appendingPathComponent("a/b/file")
    let refused = await AF.segmentedDownload(server.url("/file"), to: destination).response
    #expect((refused.error?.underlyingError as? URLError)?.code == .cannotCreateFile)
    let response = await AF.segmentedDownload(
      server.url("/file"), to: destination, options: .createIntermediateDirectories
    ).response
    #expect(response.error == nil)
    let isWhole = try Data(contentsOf: destination) == file.bytes
    #expect(isWhole)
  }

  @Test("The reason why a folder could not be created is the error")
  func obstructedFolder() async throws {
    defer { folder.remove() }
    let obstacle = folder.url.appendingPathComponent("obstacle")
    try Data("x".utf8).write(to: obstacle)
    let destination = obstacle.appendingPathComponent("b/file")
    let response = await AF.segmentedDownload(
      "http://127.0.0.1:1/file", to: destination, options: .createIntermediateDirectories
    ).response
    guard case .downloadedFileMoveFailed(let error, _, destination)? = response.error else {
      return _ = Issue.record("\(String(describing: response.error))")
    }
    var expected: NSError?
    let parent = obstacle.appendingPathComponent("b")
    do {
      try FileManager.default.createDirectory(at: parent, withIntermediateDirectories: true)
    } catch let failure { expected = failure as NSError }
    #expect((error as NSError).domain == expected?.domain && (error as NSError).code == expected?.code)
    #expect(!"\(error)".contains("No such file"), "\(error)")
  }

  @Test("Requests that cannot be divided are errors")
  func unsuitable() async throws {
    defer { folder.remove() }
    var request = try URLRequest(url: "http://127.0.0.1:1/file", method: .post)
    request.httpBody = Data("x".utf8)
    let post = await AF.segmentedDownload(request, to: folder.destination).response
    #expect(failure(post.error) == .unsuitableRequest)
    let ranged = await AF.segmentedDownload(
      "http://127.0.0.1:1/file", headers: ["Range": "bytes=5-"], to: folder.destination
    ).response
    #expect(failure(ranged.error) == .unsuitableRequest)
    let target = try #require(URL(string: "https://example.com/"))
    let remote = await AF.segmentedDownload("http://127.0.0.1:1/file", to: target).response
    #expect(failure(remote.error) == .unsuitableDestination(target))
    let invalid = await AF.segmentedDownload("", to: folder.destination).response
    #expect(invalid.error?.isInvalidURLError == true)
    #expect(folder.names == [])
  }

  @Test("The release of the session ends the download, whose bytes stay")
  func releasedSession() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    let gate = Gate()
    file.script { $1.held(after: 10_000, by: gate) }
    let server = try file.server()
    var session: Session? = Session(configuration: .uncached)
    let download = session.map { self.download(server, session: $0) }
    download?.resume()
    #expect(await eventually { download?.currentProgress.completedBytes == 40_000 })
    session = nil
    let response = await download?.response
    #expect(response?.error?.isSessionDeinitializedError == true)
    #expect(folder.names == ["file.alamofire-partial", "file.alamofire-ranges"])
    gate.open()
  }
}
