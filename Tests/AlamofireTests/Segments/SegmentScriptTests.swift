import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@testable import Alamofire

private let KiB = 1024

/// Servers whose answers to requests for ranges are not what was asked for.
@Suite("Scripted answers to segments", .timeLimit(.minutes(5))) struct SegmentScriptTests {
  private let folder: SegmentedDownloadFolder

  init() throws { folder = try SegmentedDownloadFolder() }

  private func download(
    _ server: HTTPTestServer, mirrors: [HTTPTestServer] = [], segments: Int = 4, checksum: FileChecksum? = nil
  ) -> SegmentedDownload {
    Session.real().segmentedDownload(
      server.url("/file"), segments: segments, minimumSegmentSize: 64 * KiB,
      mirrors: mirrors.map { $0.url("/file") }, checksum: checksum, to: folder.destination)
  }

  private static func without(_ name: String, _ reply: Reply) -> Reply {
    var reply = reply
    reply.headers.removeAll { $0.name == name }
    return reply
  }

  /// Returns the range of another version of the file, as a server sends it that ignores `If-Range`.
  private static func otherVersion(_ question: SegmentedFile.Question, _ reply: Reply) -> Reply {
    guard let range = question.range else { return reply }
    var reply = reply
    reply.body = .bytes([UInt8](repeating: 0, count: range.count))
    return reply
  }

  // MARK: Validators

  @Test(
    "A range without the strong validator of the first one is not combined with it",
    arguments: ["none", "weak", "date"])
  func unprovenVersion(tag: String) async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    file.script { question, reply in
      guard question.index > 0, question.range != nil else { return reply }
      let other = Self.without("ETag", Self.otherVersion(question, reply))
      switch tag {
      case "weak": return other.with(header: "ETag", value: "W/\"v1\"")
      case "date": return other.with(header: "Last-Modified", value: "Mon, 01 Jan 2024 00:00:00 GMT")
      default: return other
      }
    }
    let server = try file.server()
    let response = await download(server).response
    #expect(response.error == nil)
    #expect(folder.hasOnly(file.bytes), "parts of two versions are in one file")
    // A range that was requested before may reach the server later.
    let ranges = file.questions.map { $0.range.map { "\($0)" } ?? "all" }
    #expect(ranges.count { $0 == "all" } == 1, "the whole file is requested by one request: \(ranges)")
    #expect(response.progress.restartCount == 1)
  }

  @Test("The bytes of an earlier process are not combined with a range without validator")
  func unprovenContinuation() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    let gate = Gate()
    file.script { question, reply in question.index == 0 ? reply : reply.held(after: 10, by: gate) }
    let server = try file.server()
    let first = download(server)
    first.resume()
    #expect(await eventually { first.currentProgress.completedBytes == 64 * KiB + 40 })
    first.cancel()
    #expect(await first.response.error != nil)
    gate.open()
    let count = file.questions.count
    file.script { question, reply in
      question.range == nil ? reply : Self.without("ETag", Self.otherVersion(question, reply))
    }
    #expect(await download(server).response.error == nil)
    #expect(folder.hasOnly(file.bytes), "parts of two versions are in one file")
    #expect(file.questions[count].request.header("If-Range") == "\"v1\"")
    #expect(file.questions.last?.range == nil)
  }

  @Test("A date of modification is a validator, and has to be in each range", arguments: [true, false])
  func dates(areRepeated: Bool) async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB, readsConditions: false)
    file.script { question, reply in
      let plain = Self.without("ETag", reply).with(header: "Date", value: "Mon, 01 Jul 2024 00:00:00 GMT")
      guard areRepeated || question.index == 0 || question.range == nil else { return plain }
      return plain.with(header: "Last-Modified", value: "Mon, 01 Jan 2024 00:00:00 GMT")
    }
    let server = try file.server()
    let response = await download(server).response
    #expect(response.error == nil)
    #expect(folder.hasOnly(file.bytes))
    #expect(response.progress.restartCount == (areRepeated ? 0 : 1))
  }

  @Test("A mirror whose later ranges have no validator is dropped")
  func unprovenMirror() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 800 * KiB)
    let copy = SegmentedFile(size: 800 * KiB)
    copy.script { question, reply in
      if question.index == 0 { return reply }
      return Self.without("ETag", Self.otherVersion(question, reply))
    }
    let (server, mirror) = (try file.server(), try copy.server())
    let response = await download(server, mirrors: [mirror]).response
    #expect(response.error == nil)
    #expect(folder.hasOnly(file.bytes), "parts of two versions are in one file")
    #expect(response.droppedMirrors == [.init(index: 0, reason: .differs)])
  }

  @Test("A first range without a strong validator leads to one request for the whole file")
  func weakFirstRange() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB, tag: { "W/\"v\($0)\"" })
    let server = try file.server()
    #expect(await download(server).response.error == nil)
    #expect(folder.hasOnly(file.bytes))
    #expect(file.questions.map { $0.range == nil } == [false, true])
  }

  // MARK: Ranges

  @Test(
    "A first answer that is not the requested range leads to one request for the whole file",
    arguments: [
      "bytes 1-65536/409600", "bytes 0-65535/*", "bytes 0-65535/65535", "bytes 0-65535", "lines 0-1/2",
    ])
  func firstRange(range: String) async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    file.script { question, reply in
      guard question.range != nil else { return reply }
      return Self.without("Content-Range", reply).with(header: "Content-Range", value: range)
    }
    let server = try file.server()
    #expect(await download(server).response.error == nil)
    #expect(folder.hasOnly(file.bytes))
    #expect(file.questions.map { $0.range == nil } == [false, true])
  }

  @Test("A response with several ranges is not mistaken for one")
  func multipartRanges() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 200 * KiB)
    file.script { question, reply in
      guard question.range != nil else { return reply }
      return Self.without("Content-Range", reply).with(
        header: "Content-Type", value: "multipart/byteranges; boundary=x")
    }
    let server = try file.server()
    #expect(await download(server).response.error == nil)
    #expect(folder.hasOnly(file.bytes))
  }

  @Test("Bytes that follow the announced range are not written")
  func longerBodies() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    file.script { question, reply in
      guard question.range != nil, case .bytes(let bytes) = reply.body else { return reply }
      var reply = reply
      reply.body = .bytes(bytes + [UInt8](repeating: 0, count: 5000))
      return reply.framed(.chunked)
    }
    let server = try file.server()
    #expect(await download(server).response.error == nil)
    #expect(folder.hasOnly(file.bytes))
  }

  @Test("A server that sends more than the requested range sends it for nothing")
  func widerRanges() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    file.script { question, reply in
      guard let range = question.range else { return reply }
      let end = file.size
      var wide = Self.without("Content-Range", reply)
        .with(header: "Content-Range", value: "bytes \(range.lowerBound)-\(end - 1)/\(end)")
      wide.body = .bytes(Array(file.bytes[range.lowerBound..<end]))
      return wide
    }
    let server = try file.server()
    #expect(await download(server).response.error == nil)
    #expect(folder.hasOnly(file.bytes))
  }

  @Test("A length that changes from range to range is a changed file")
  func changingLength() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    file.script { question, reply in
      guard question.index > 0, let range = question.range else { return reply }
      let text = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(file.size + question.index)"
      return Self.without("Content-Range", reply).with(header: "Content-Range", value: text)
    }
    let server = try file.server()
    let error = await download(server).response.error
    #expect(error?.underlyingError as? SegmentedDownload.Failure == .resourceChanged)
    #expect(!folder.names.contains("file"))
  }

  @Test("An empty file, which has no range to send, is downloaded whole")
  func emptyFile() async throws {
    defer { folder.remove() }
    let server = try HTTPTestServer(
      routes: .none.adding("/file") { request, _ in
        request.header("Range") == nil
          ? .data([]) : Reply.status(416).with(header: "Content-Range", value: "bytes */0")
      })
    #expect(await download(server).response.error == nil)
    #expect(folder.hasOnly(Data()))
    #expect(server.requestCount == 2)
  }

  // MARK: Statuses

  @Test(
    "A status of success other than 200 and 206 is not the file", arguments: [201, 202, 203, 204, 205, 226])
  func otherSuccess(status: Int) async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 1)
    file.script { _, reply in
      let isEmpty = [204, 205].contains(status)
      return (isEmpty ? Reply.status(status) : Reply(status: status, body: .bytes(Array("page".utf8))))
        .with(header: "ETag", value: "\"v1\"")
    }
    let server = try file.server()
    let response = await download(server).response
    #expect(response.error?.responseCode == status)
    #expect(folder.names == [])
  }

  @Test(
    "A status of success other than 206 instead of a later range is not the whole file",
    arguments: [203, 204])
  func otherSuccessLater(status: Int) async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    file.script { question, reply in
      question.index == 0 ? reply : Reply.status(status).with(header: "ETag", value: "\"v1\"")
    }
    let server = try file.server()
    let response = await download(server).response
    #expect(response.error?.responseCode == status)
    #expect(!folder.names.contains("file"))
  }

  @Test("A redirect that cannot be followed is not the file") func brokenRedirect() async throws {
    defer { folder.remove() }
    let server = try HTTPTestServer(routes: .none.adding("/file") { _, _ in .status(304) })
    let response = await download(server).response
    #expect(response.error?.responseCode == 304)
    #expect(folder.names == [])
  }

  @Test(
    "A server that refuses ranges and allows the whole file sends it by one request",
    arguments: [400, 403, 405, 501])
  func refusedRanges(status: Int) async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    file.script { question, reply in question.range == nil ? reply : .status(status) }
    let server = try file.server()
    let response = await download(server).response
    #expect(response.error == nil)
    #expect(folder.hasOnly(file.bytes))
    #expect(file.questions.map { $0.range == nil } == [false, true])
    #expect(response.progress.restartCount == 0)
  }

  @Test("A server that refuses ranges and the whole file is an error, with two requests")
  func refusedFile() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 1)
    file.script { question, _ in .status(question.range == nil ? 410 : 403) }
    let server = try file.server()
    #expect(await download(server).response.error?.responseCode == 410)
    #expect(file.questions.count == 2)
    #expect(folder.names == [])
  }

  @Test("The bytes of an earlier process stay if a server refuses ranges and the whole file")
  func refusedContinuation() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    let gate = Gate()
    file.script { question, reply in question.index == 0 ? reply : reply.held(after: 10, by: gate) }
    let server = try file.server()
    let first = download(server)
    first.resume()
    #expect(await eventually { first.currentProgress.completedBytes == 64 * KiB + 40 })
    first.cancel()
    #expect(await first.response.error != nil)
    gate.open()
    file.script { _, _ in .status(403) }
    #expect(await download(server).response.error?.responseCode == 403)
    #expect(folder.names == ["file.alamofire-partial", "file.alamofire-ranges"])
    let count = file.questions.count
    file.script(nil)
    #expect(await download(server).response.error == nil)
    #expect(folder.hasOnly(file.bytes))
    #expect(file.ranges(after: count).first?.lowerBound != 0, "the download has begun again")
  }

  @Test("A server that refuses a further request with 403 gets no more than it accepted")
  func refusedConnection() async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 400 * KiB)
    let gate = Gate()
    file.script { question, reply in
      switch question.index {
      case 0, 1: reply.held(after: 100, by: gate)
      case 2, 3: .status(403)
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

  @Test("A server that answers 429 is asked again, not before its Retry-After", arguments: [429, 503])
  func retryAfter(status: Int) async throws {
    defer { folder.remove() }
    let file = SegmentedFile(size: 100 * KiB)
    file.script { question, reply in
      question.index == 0 ? Reply.status(status).with(header: "Retry-After", value: "1") : reply
    }
    let server = try file.server()
    let beginning = ContinuousClock.now
    #expect(await download(server).response.error == nil)
    #expect(ContinuousClock.now - beginning >= .seconds(1))
    #expect(folder.hasOnly(file.bytes))
    #expect(file.questions.count >= 2)
  }

  @Test("A download that is cancelled during a delay is released", .timeLimit(.minutes(1)))
  func releasedDuringDelay() async throws {
    defer { folder.remove() }
    let (file, gone) = (SegmentedFile(size: 100 * KiB), Latch())
    file.script { _, _ in Reply.status(503).with(header: "Retry-After", value: "60") }
    let server = try file.server()
    let session = Session.real()
    func cancelled() async {
      let token = ReleaseSignal(gone)
      let adapter = Adapter { request, _, completion in
        withExtendedLifetime(token) { completion(.success(request)) }
      }
      let download = session.segmentedDownload(
        server.url("/file"), interceptor: adapter, to: folder.destination)
      download.resume()
      #expect(await eventually { download.core.state.withLock { !$0.delays.isEmpty } })
      download.cancel()
      #expect(await download.response.error?.isExplicitlyCancelledError == true)
    }
    await cancelled()
    await gone.wait()
  }

  @Test("A mirror that answers 429 is used again after its delay")
  func busyMirror() async throws {
    defer { folder.remove() }
    let (missing, copy) = (SegmentedFile(size: 1), SegmentedFile(size: 100 * KiB))
    missing.script { _, _ in .status(404) }
    copy.script { question, reply in question.index < 2 ? .status(429) : reply }
    let (server, mirror) = (try missing.server(), try copy.server())
    let response = await download(server, mirrors: [mirror]).response
    #expect(response.error == nil)
    #expect(response.droppedMirrors == [])
    #expect(folder.hasOnly(copy.bytes))
  }

  // MARK: Other URLs

  @Test("A file of this machine has no segments", arguments: ["", "text"])
  func localFile(text: String) async throws {
    defer { folder.remove() }
    let local = folder.url.appendingPathComponent("local")
    try Data(text.utf8).write(to: local)
    let response = await Session.real().segmentedDownload(local, to: folder.destination).response
    #expect((response.error?.underlyingError as? URLError)?.code == .badServerResponse)
    #expect(folder.names == ["local"])
  }

  @Test("A mirror that is a file of this machine is dropped, and its end is not the end of the download")
  func localMirror() async throws {
    let other = try SegmentedDownloadFolder()
    defer {
      folder.remove()
      other.remove()
    }
    try Data("text".utf8).write(to: other.destination)
    let file = SegmentedFile(size: 100 * KiB, hasRanges: false)
    file.script { question, reply in
      let whole = reply.framed(.chunked)
      return question.index == 0 ? whole.with(effect: .closeAfterBody(bytes: 50_000)) : whole
    }
    let server = try file.server()
    let response = await Session.real().segmentedDownload(
      server.url("/file"), mirrors: [other.destination], to: folder.destination
    ).response
    #expect(response.error == nil)
    #expect(folder.hasOnly(file.bytes))
    #expect(response.droppedMirrors == [.init(index: 0, reason: .hasNoRanges)])
  }
}
