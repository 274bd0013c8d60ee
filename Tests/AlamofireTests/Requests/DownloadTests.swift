import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite(.timeLimit(.minutes(5))) struct DownloadTests {
  private let server: HTTPTestServer
  private let session = Session.real()
  private let scratch: TemporaryFolder
  private var folder: URL { scratch.url }

  init() throws {
    server = try HTTPTestServer()
    scratch = try TemporaryFolder()
  }

  private func end(_ request: DownloadRequest) async -> AFDownloadResponse<URL?> {
    await withCheckedContinuation { continuation in
      request.response(queue: .global()) { continuation.resume(returning: $0) }
    }
  }

  private func to(_ name: String, _ options: DownloadRequest.Options = []) -> DownloadRequest.Destination {
    let url = folder.appendingPathComponent(name)
    return { _, _ in (url, options) }
  }

  @Test("Without a destination the file stays in the temporary folder") func noDestination() async throws {
    let response = await end(session.download(server.url("/bytes/100000")))
    let file = try #require(response.fileURL)
    defer { try? FileManager.default.removeItem(at: file) }
    #expect(file.lastPathComponent.hasPrefix("Alamofire_"))
    #expect(file.deletingLastPathComponent().path == FileManager.default.temporaryDirectory.path)
    #expect(try Data(contentsOf: file) == Data((0..<100_000).map { Reply.patternByte(at: $0) }))
    #expect(response.value == file)
    #expect(response.response?.statusCode == 200)
    #expect(response.resumeData == nil)
  }

  @Test("A retry for a late handler keeps the file that an earlier handler got") func lateRetry() async throws
  {
    let fake = FakeTransport(.text("not JSON"), .json("[1]"))
    let request = Session.retained(fake: fake, interceptor: SpyInterceptor(retries: 1))
      .download("http://a.test/")
    let first = try #require(await end(request).fileURL)
    defer { try? FileManager.default.removeItem(at: first) }
    let late = await request.serializingDecodable([Int].self).response
    defer { late.removeFile() }
    #expect(late.value == [1] && late.fileURL != first && fake.requests.count == 2)
    #expect(try Data(contentsOf: first) == Data("not JSON".utf8))
  }

  @Test("The file is moved to its destination") func destination() async throws {
    let request = session.download(server.url("/bytes/10"), to: to("a"))
    let response = await end(request)
    #expect(response.fileURL?.lastPathComponent == "a")
    #expect(request.fileURL == response.fileURL)
    #expect(try Data(contentsOf: folder.appendingPathComponent("a")).count == 10)
  }

  @Test("The options create folders and remove a previous file") func options() async throws {
    let deep = await end(
      session.download(server.url("/bytes/10"), to: to("x/y/z", [.createIntermediateDirectories])))
    #expect(deep.error == nil)
    let again = await end(session.download(server.url("/bytes/20"), to: to("x/y/z", [.removePreviousFile])))
    #expect(again.error == nil)
    #expect(try Data(contentsOf: folder.appendingPathComponent("x/y/z")).count == 20)
  }

  @Test("Without the options both are errors") func noOptions() async throws {
    try Data("old".utf8).write(to: folder.appendingPathComponent("taken"))
    for (name, code) in [("missing/folder", CocoaError.fileNoSuchFile), ("taken", .fileWriteFileExists)] {
      let response = await end(session.download(server.url("/bytes/10"), to: to(name)))
      guard case .downloadedFileMoveFailed(let error, let source, let target)? = response.error else {
        Issue.record("\(name): \(String(describing: response.error))")
        continue
      }
      #expect((error as? CocoaError)?.code == code)
      #expect(target.path.hasSuffix(name))
      #expect(!FileManager.default.fileExists(atPath: source.path))
    }
    #expect(try Data(contentsOf: folder.appendingPathComponent("taken")) == Data("old".utf8))
  }

  @Test("The suggested destination has the file name of the response") func suggestedName() async throws {
    let path = "/response-headers?Content-Disposition=attachment;%20filename=../../evil.txt"
    let destination = DownloadRequest.suggestedDownloadDestination(
      for: .cachesDirectory, options: [.removePreviousFile, .createIntermediateDirectories])
    let response = await end(session.download(server.url(path), to: destination))
    let file = try #require(response.fileURL)
    defer { try? FileManager.default.removeItem(at: file) }
    let caches = try #require(FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask).first)
    #expect(file.deletingLastPathComponent().path == caches.path)
  }

  @Test(
    "Without a suggested name the URL names the file",
    arguments: [
      ("http://a.test/files/report.pdf?x=1", nil, "report.pdf"),
      ("http://a.test/a%2Fb%20c.txt", nil, "b c.txt"),
      ("http://a.test/x", "attachment; filename=\"named.txt\"", "named.txt"),
      ("http://a.test/", nil, "a.test"),
    ] as [(String, String?, String)])
  func nameOfURL(url: String, disposition: String?, name: String) throws {
    let destination = DownloadRequest.suggestedDownloadDestination(for: .cachesDirectory)
    let address = try #require(URL(string: url))
    let fields = disposition.map { ["Content-Disposition": $0] }
    let response = try #require(
      HTTPURLResponse(url: address, statusCode: 200, httpVersion: nil, headerFields: fields))
    let made = destination(URL(fileURLWithPath: "/tmp/x"), response)
    #expect(made.destinationURL.lastPathComponent == name)
    #expect(made.destinationURL.lastPathComponent == name)
    #expect(made.options == [])
    let replacing = DownloadRequest.suggestedDownloadDestination(
      for: .cachesDirectory, options: [.removePreviousFile, .createIntermediateDirectories])
    let replaced = replacing(URL(fileURLWithPath: "/tmp/x"), response)
    #expect(replaced.destinationURL == made.destinationURL)
    #expect(replaced.options == [.removePreviousFile, .createIntermediateDirectories])
  }

  private struct Refusing: DownloadResponseSerializerProtocol {
    let seen: Recorder<URL>

    func serializeDownload(
      request: URLRequest?, response: HTTPURLResponse?, fileURL: URL?, error: (any Error)?
    ) throws -> URL {
      let file = try #require(fileURL)
      seen.add(file)
      if seen.count == 1 { throw URLError(.cannotParseResponse) }
      return file
    }
  }

  @Test("A retry removes the temporary file of the previous attempt") func retriedFile() async throws {
    let seen = Recorder<URL>()
    let request = session.download(server.url("/bytes/10"))
      .retry(using: Retrier { _, _, _, completion in completion(.retry) })
    let file = try await request.serializingDownload(using: Refusing(seen: seen)).value
    defer { try? FileManager.default.removeItem(at: file) }
    let first = try #require(seen.values.first)
    #expect(seen.count == 2)
    #expect(first != file)
    #expect(!FileManager.default.fileExists(atPath: first.path))
    #expect(FileManager.default.fileExists(atPath: file.path))
  }

  @Test("A redirect that is not followed is an empty file") func redirectResponse() async throws {
    var reply = Reply.redirect(to: "/get")
    reply.body = .bytes(Array("elsewhere".utf8))
    server.enqueue(reply, reply)
    let kept = await end(session.download(server.url("/")).redirect(using: .doNotFollow))
    let file = try #require(kept.fileURL)
    defer { try? FileManager.default.removeItem(at: file) }
    #expect(kept.error == nil && kept.response?.statusCode == 302)
    #expect(try Data(contentsOf: file).isEmpty)
    let moved = await end(session.download(server.url("/"), to: to("page")).redirect(using: .doNotFollow))
    #expect(moved.error == nil && moved.fileURL?.lastPathComponent == "page")
    #expect(try Data(contentsOf: folder.appendingPathComponent("page")).isEmpty)
    #expect(server.requestCount == 2)
  }

  @Test("Bodies of redirects and challenges are not in the file") func redirectsAndChallenges() async throws {
    let redirect = await end(session.download(server.url("/redirect-to?url=/bytes/5"), to: to("r")))
    #expect(redirect.error == nil)
    #expect(try Data(contentsOf: folder.appendingPathComponent("r")).count == 5)
    let challenge = session.download(server.url("/basic-auth/u/p"), to: to("c"))
      .authenticate(username: "u", password: "p")
    #expect(await end(challenge).response?.statusCode == 200)
  }

  @Test("Progress counts bytes") func progress() async throws {
    let fractions = Recorder<Double>()
    let request = session.download(server.url("/bytes/3000000"), to: to("p"))
      .downloadProgress(queue: .global()) { fractions.add($0.fractionCompleted) }
    #expect(await end(request).error == nil)
    #expect(request.downloadProgress.completedUnitCount == 3_000_000)
    #expect(request.downloadProgress.fractionCompleted == 1)
    #expect(!fractions.values.isEmpty)
  }

  @Test("Progress is complete afterwards without an observer") func unobservedProgress() async throws {
    let request = session.download(server.url("/bytes/30000"), to: to("p"))
    #expect(await end(request).error == nil)
    #expect(request.downloadProgress.completedUnitCount == 30_000)
    #expect(request.downloadProgress.totalUnitCount == 30_000)
    let encoded = session.download(server.url("/gzip"), to: to("g"))
    let file = try #require(await end(encoded).fileURL)
    #expect(encoded.downloadProgress.completedUnitCount == (try Data(contentsOf: file).count))
    #expect(encoded.downloadProgress.totalUnitCount == -1)
  }

  @Test("Validators receive the file") func validators() async throws {
    let seen = Recorder<Int>()
    let good = session.download(server.url("/bytes/10"), to: to("v"))
      .validate { _, _, file in
        seen.add(file.flatMap { try? Data(contentsOf: $0).count } ?? -1)
        return .success(())
      }
    #expect(await end(good).error == nil)
    #expect(seen.values == [10])
    let bad = await end(session.download(server.url("/status/404"), to: to("w")).validate())
    #expect(bad.error?.responseCode == 404)
    let type = await end(
      session.download(server.url("/json"), to: to("t")).validate(contentType: ["image/*"]))
    #expect(type.error?.isResponseValidationError == true)
  }

  @Test("Serializers read the file") func serializers() async throws {
    struct Document: Decodable, Sendable { let url: String }
    let request = session.download(server.url("/get"))
    let document = try await request.serializingDecodable(Document.self).value
    #expect(document.url.hasSuffix("/get"))
    #expect(try await request.serializingString().value.contains("/get"))
    #expect(try await request.serializingData().value.isEmpty == false)
    let file = try await request.serializingDownloadedFileURL().value
    #expect(FileManager.default.fileExists(atPath: file.path))
    try FileManager.default.removeItem(at: file)
    let gone = await request.serializingData().response
    guard case .responseSerializationFailed(.inputFileReadFailed(let place))? = gone.error else {
      Issue.record("\(String(describing: gone.error))")
      return
    }
    #expect(place == file)
  }

  /// Uses a serializer that reads the file, and one that reads its bytes.
  @Test("Serializers of the user receive the file") func ownSerializers() async throws {
    struct Name: DownloadResponseSerializerProtocol {
      func serializeDownload(
        request: URLRequest?, response: HTTPURLResponse?, fileURL: URL?, error: (any Error)?
      ) throws -> String {
        if let error { throw error }
        return "\(fileURL?.lastPathComponent ?? "") \(response?.statusCode ?? 0)"
      }
    }
    struct Count: ResponseSerializer {
      func serialize(
        request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
      ) throws -> Int {
        guard let data else { throw CancellationError() }
        return data.count
      }
    }
    let request = session.download(server.url("/bytes/7"), to: to("seven"))
    #expect(try await request.serializingDownload(using: Name()).value == "seven 200")
    #expect(try await request.serializingDownload(using: Count()).value == 7)
    let none = await session.download("").serializingDownload(using: Name()).response
    #expect(none.error?.isInvalidURLError == true)
  }

  @Test("Handlers are called in their order") func handlers() async throws {
    let order = Recorder<String>()
    let queue = DispatchQueue(label: "handlers")
    session.download(server.url("/encoding/utf8"), to: to("h"))
      .responseURL(queue: queue) { order.add("url \($0.value != nil)") }
      .responseData(queue: queue) { order.add("data \($0.value != nil)") }
      .responseString(queue: queue) { order.add("string \($0.value != nil)") }
      .responseDecodable(of: Empty.self, queue: queue) { order.add("decodable \($0.error != nil)") }
      .response(queue: queue) { order.add("plain \($0.error == nil)") }
    #expect(
      await order.wait(for: 5) == [
        "url true", "data true", "string true", "decodable true", "plain true",
      ])
  }

  @Test("Handlers are called on their queue") func queues() async throws {
    let (key, queue) = (DispatchSpecificKey<Bool>(), DispatchQueue(label: "handlers"))
    queue.setSpecific(key: key, value: true)
    let places = Recorder<String>()
    let note: @Sendable (String) -> Void = {
      places.add("\($0) \(DispatchQueue.getSpecific(key: key) == true)")
    }
    session.download(server.url("/encoding/utf8"), to: to("q"))
      .responseURL(queue: queue) { _ in note("url") }
      .responseData(queue: queue) { _ in note("data") }
      .responseString(queue: queue) { _ in note("string") }
      .responseDecodable(of: Empty.self, queue: queue) { _ in note("decodable") }
      .response(queue: queue, responseSerializer: URLResponseSerializer()) { _ in note("serializer") }
      .response(queue: queue) { _ in note("plain") }
    #expect(
      await places.wait(for: 6) == [
        "url true", "data true", "string true", "decodable true", "serializer true", "plain true",
      ])
  }

  @Test("A refused host leaves no file at the destination") func refusedHost() async throws {
    let response = await end(session.download("http://127.0.0.1:1/", to: to("n")))
    #expect(response.error != nil)
    #expect(response.fileURL == nil)
    #expect(!FileManager.default.fileExists(atPath: folder.appendingPathComponent("n").path))
  }

  @Test("A retry starts with an empty file") func freshFile() async throws {
    let replies = try HTTPTestServer(routes: .none)
    replies.enqueue(.status(500), .text("at last"))
    let response = await end(
      session.download(replies.url("/"), interceptor: OneRetry(), to: to("again", [.removePreviousFile]))
        .validate())
    #expect(response.error == nil)
    #expect(try Data(contentsOf: folder.appendingPathComponent("again")) == Data("at last".utf8))
  }
}

private struct OneRetry: RequestInterceptor {
  func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    completion(request.retryCount == 0 ? .retry : .doNotRetry)
  }
}
