import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

@testable import Alamofire

/// `file:` and `data:` URLs, in sessions whose engine is not used.
@Suite(.timeLimit(.minutes(5))) struct LocalURLTests {
  private let folder: TemporaryFolder
  private let fake = FakeTransport()

  init() throws { folder = try TemporaryFolder() }

  private func session(_ options: TransportOptions = TransportOptions()) -> Session {
    .retained(fake: fake, options: options)
  }

  private func code(_ error: AFError?) -> URLError.Code? { (error?.underlyingError as? URLError)?.code }

  @Test("A file is read") func file() async throws {
    let file = try folder.file("people.json", Data(#"{"name":"Ada"}"#.utf8))
    struct Person: Decodable, Sendable { var name: String }
    let response = await session().request(file).validate().serializingDecodable(Person.self).response
    #expect(response.value?.name == "Ada")
    #expect(response.response == nil)
    #expect(response.metrics?.transactionMetrics.isEmpty == true)
    #expect(fake.requests.isEmpty)
  }

  @Test("Paths are decoded and queries are ignored") func paths() async throws {
    let file = try folder.file("a b%ä.txt", Data("x".utf8))
    #expect(await session().request(file).serializingString().response.value == "x")
    let odd = file.absoluteString.replacingOccurrences(of: "file://", with: "file://localhost") + "?v=1#top"
    #expect(await session().request(odd).serializingString().response.value == "x")
  }

  @Test(
    "The media type of a file follows from its extension",
    arguments: [
      ("a.json", "application/json"), ("a.b.JSON", "application/json"), ("json", "application/octet-stream"),
      (".json", "application/octet-stream"), ("a.json.", "application/octet-stream"),
    ])
  func mediaType(name: String, type: String) throws {
    let content = try LocalContent(try folder.file(name).absoluteString)
    #expect(content.head.block.value(of: "Content-Type") == type)
  }

  @Test("An empty file and a file without a size are read") func sizes() async throws {
    let file = try folder.file("empty", Data())
    let empty = await session().request(file).serializingData().response
    #expect(empty.error != nil)
    #expect(empty.data == nil)
    let made = await session().request("file:///proc/self/status").serializingString().response
    #expect(made.value?.contains("Name:") == true)
  }

  @Test("A large file is downloaded in chunks") func largeFile() async throws {
    let content = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    let file = try folder.file("large.bin", content)
    let target = folder["copies/large.bin"]
    let moved = Recorder<Int64>()
    let seen = Recorder<HTTPURLResponse>()
    let request = session().download(
      file,
      to: { _, response in
        seen.add(response)
        return (target, [.createIntermediateDirectories])
      }
    )
    .downloadProgress(queue: .global()) { moved.add($0.totalUnitCount) }
    let response = await request.serializingDownloadedFileURL().response
    #expect(response.value == target)
    #expect(try Data(contentsOf: target) == content)
    #expect(try Data(contentsOf: file) == content)
    #expect(moved.count > 10)
    #expect(Set(moved.values) == [3_000_000])
    #expect(request.downloadProgress.fractionCompleted == 1)
    #expect(seen.values.first?.expectedContentLength == 3_000_000)
    #expect(seen.values.first?.suggestedFilename == "large.bin")
  }

  @Test("A file that becomes shorter while it is read is an error") func shorterFile() async throws {
    let file = try folder.file("shrinking.bin", Data())
    #expect(truncate(file.path, 16 << 20) == 0)
    let isCut = Mutex(false)
    let request = session().streamRequest(file).responseStream(on: .global()) { stream in
      guard case .stream = stream.event else { return }
      // So little has been read ahead that the rest is missed.
      isCut.withLock { isCut in
        if !isCut { truncate(file.path, 8 << 20) }
        isCut = true
      }
    }
    await request.finished()
    #expect(code(request.error) == .resourceUnavailable)
  }

  @Test("A file that becomes longer is read as far as announced") func longerFile() throws {
    let file = try folder.file("growing.bin", Data(count: 10))
    let content = try LocalContent(file.absoluteString)
    #expect(content.most(after: 0, atMost: 4) == 4 && content.most(after: 8, atMost: 4) == 2)
    #expect(content.most(after: 10, atMost: 4) == 0)
    #expect(content.failure(ofEndAt: 10) == nil && content.failure(ofEndAt: 9) != nil)
    let unknown = try LocalContent(try folder.file("empty.bin", Data()).absoluteString)
    #expect(unknown.most(after: 10, atMost: 4) == 4 && unknown.failure(ofEndAt: 10) == nil)
  }

  @Test("Progress that is asked for after the end counts all bytes") func lateProgress() async throws {
    let content = Data(count: 300_000)
    let file = try folder.file("late.bin", content)
    let data = session().request(file)
    _ = await data.serializingData().response
    let download = session().download(file)
    let response = await download.serializingDownloadedFileURL().response
    response.removeFile()
    let stream = session().streamRequest(file)
    for await _ in stream.streamTask().streamingData() {}
    for request in [data, download, stream] as [Request] {
      #expect(request.downloadProgress.completedUnitCount == 300_000, "\(type(of: request))")
      #expect(request.downloadProgress.totalUnitCount == 300_000, "\(type(of: request))")
    }
  }

  @Test("An unreadable file has a specific error") func unreadableFile() async throws {
    let missing = await session().request(folder["nothing"]).serializingData().response
    #expect(code(missing.error) == .fileDoesNotExist)
    #expect(missing.error?.localizedDescription.contains("nothing") == true)
    #expect(code(await session().request(folder.url).serializingData().response.error) == .fileIsDirectory)
    let missingDownload = await session().download(folder["nothing"]).serializingData().response
    #expect(code(missingDownload.error) == .fileDoesNotExist)
    #expect(
      code(await session().request("file:///dev/zero").serializingData().response.error)
        == .resourceUnavailable)
    #expect(
      code(await session().request("file://other.test/etc/hosts").serializingData().response.error)
        == .unsupportedURL)
    #expect(code(await session().request("file:///a%00b").serializingData().response.error) == .badURL)
    #expect(code(await session().request("file:").serializingData().response.error) == .badURL)
  }

  @Test("A path that is not UTF-8 does not read another file") func pathOfBytes() async throws {
    let file = try folder.file("\u{FFFD}", Data("x".utf8))
    #expect(await session().request(file).serializingString().response.value == "x")
    for byte in ["%FF", "%80", "%C3"] {
      let other = file.absoluteString.replacingOccurrences(of: "%EF%BF%BD", with: byte)
      #expect(other.hasSuffix(byte))
      #expect(code(await session().request(other).serializingData().response.error) == .badURL, "\(byte)")
    }
  }

  @Test("A file without permission is not read") func permissions() async throws {
    let file = try folder.file("secret")
    try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: file.path)
    let mayReadAnything = FileHandle(forReadingAtPath: file.path) != nil
    let response = await session().request(file).serializingData().response
    // The superuser can read it.
    #expect(code(response.error) == (mayReadAnything ? nil : .noPermissionsToReadFile))
  }

  @Test("An upload to a file URL is refused") func upload() async throws {
    let file = try folder.file("kept")
    let response = await session().upload(Data("new".utf8), to: file).serializingData().response
    #expect(code(response.error) == .unsupportedURL)
    #expect(try String(contentsOf: file, encoding: .utf8) == "content")
  }

  @Test("A data URL is decoded") func dataURL() async throws {
    let session = session()
    let plain = await session.request("data:text/plain;charset=utf-8,%C3%A4%20b").validate()
      .serializingString().response
    #expect(plain.value == "ä b")
    #expect(plain.response == nil)
    #expect(await session.request("DATA:,capitals").serializingString().response.value == "capitals")
    let base64 = await session.download("data:;base64,SGVsbG8=").serializingString().response
    defer { base64.removeFile() }
    #expect(base64.value == "Hello")
    #expect(code(await session.request("data:x").serializingData().response.error) == .badURL)
    #expect(
      code(await session.request("data:;base64,a").serializingData().response.error)
        == .cannotDecodeContentData)
    #expect(fake.requests.isEmpty)
  }

  @Test("Other schemes are unsupported") func otherSchemes() async {
    for url in ["ftp://example.com/a", "gopher://example.com/", "mailto:ada@example.com"] {
      let error = await session().request(url).serializingData().response.error
      #expect(code(error) == .unsupportedURL)
      #expect(error?.localizedDescription.contains("\(url.prefix { $0 != ":" }):") == true)
    }
  }

  @Test("A body above the limit is refused", arguments: [3, 6, 7] as [Int64])
  func bodySizeLimit(limit: Int64) async throws {
    var options = TransportOptions()
    options.bodySizeLimit = limit
    let file = try folder.file("x", Data("content".utf8))
    let error = await session(options).request(file).serializingData().response.error
    #expect(code(error) == (limit < 7 ? .dataLengthExceedsMaximum : nil))
  }

  @Test("Schemes can be restricted") func restrictedSchemes() async throws {
    var options = TransportOptions()
    options.allowedSchemes = ["https"]
    let fake = FakeTransport(.redirect(302, to: "http://example.com/"), .text("ok"))
    let session = Session.retained(fake: fake, options: options)
    let file = try folder.file("x")
    #expect(code(await session.request(file).serializingData().response.error) == .unsupportedURL)
    #expect(code(await session.request("data:,x").serializingData().response.error) == .unsupportedURL)
    #expect(
      code(await session.request("http://example.com/").serializingData().response.error) == .unsupportedURL)
    #expect(
      code(await session.request("https://example.com/").serializingData().response.error)
        == .unsupportedURL)
    #expect(fake.urls == ["https://example.com/"])
    #expect(await session.request("https://example.com/").serializingString().response.value == "ok")
  }

  @Test("A redirect to a local URL is refused", arguments: ["file:///etc/hostname", "data:,x"]) func redirect(
    target: String
  ) async {
    let fake = FakeTransport(.redirect(302, to: target))
    let response = await Session.retained(fake: fake).request("https://example.com/").serializingData()
      .response
    #expect(code(response.error) == .unsupportedURL)
    #expect(fake.requests.count == 1)
  }

  @Test("Requests can be cancelled and suspended") func cancelAndSuspend() async throws {
    let file = try folder.file("large.bin", Data(count: 2_000_000))
    let session = Session.retained(fake: fake, startRequestsImmediately: false)
    let request = session.request(file)
    let ended = Recorder<AFError?>()
    let suspended = Latch()
    request.response(queue: .global()) {
      ended.add($0.error)
      suspended.open()
    }
    request.downloadProgress(queue: .global()) { _ in
      request.suspend()
      suspended.open()
    }
    request.resume()
    await suspended.wait()
    request.cancel()
    #expect(await ended.wait(for: 1).count == 1)
  }

  @Test("A session with the engine reads local URLs, too") func engine() async throws {
    let file = try folder.file("real.txt", Data("real".utf8))
    #expect(await Session.real().request(file).serializingString().response.value == "real")
    let download = await Session.real().download(file).serializingString().response
    defer { download.removeFile() }
    #expect(download.value == "real")
  }
}
