import AlamofireV3
import Foundation
import FoundationNetworking
import HTTPTestServer
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(5))) struct TransferTests {
  @Test("Bodies of all kinds are sent") func bodies() async throws {
    let server = try HTTPTestServer()
    let folder = try Folder()
    let file = try folder.file("a.txt", "file")
    let manager = Manager.isolated()
    let url = server.url("/echo")
    let request = NSMutableURLRequest(url: try #require(URL(string: url)))
    request.httpMethod = "PUT"
    #expect(await manager.upload(.POST, url, file: file).end().text == "file")
    #expect(await manager.upload(.POST, url, data: Data("data".utf8)).end().text == "data")
    let stream = InputStream(data: Data("stream".utf8))
    #expect(await manager.upload(.POST, url, stream: stream).end().text == "stream")
    #expect(await manager.upload(request, file: file).end().text == "file")
    #expect(await manager.upload(request, data: Data("data".utf8)).end().text == "data")
    let another = InputStream(data: Data("stream".utf8))
    #expect(await manager.upload(request, stream: another).end().text == "stream")
    #expect(server.recordedRequests.map(\.method) == ["POST", "POST", "POST", "PUT", "PUT", "PUT"])
    let missing = await manager.upload(.POST, url, file: try folder.file("none")).end()
    #expect(missing.error != nil)
    #expect(server.requestCount == 6)
  }

  @Test("Progress of an upload is complete and not reported on the main queue") func uploadProgress()
    async throws
  {
    let server = try HTTPTestServer()
    let notes = Notes()
    let manager = Manager.isolated(starting: false)
    let request = manager.upload(.POST, server.url("/upload-sink"), data: Data(count: 300_000))
      .progress { bytes, total, expected in
        notes.add("\(isOnMain) \(bytes > 0) \(total) \(expected)")
      }
    request.resume()
    #expect(await request.end().status == 200)
    let lines = notes.lines
    #expect(lines.last == "false true 300000 300000")
    #expect(lines.allSatisfy { $0.hasPrefix("false true") })
    #expect(request.progress.completedUnitCount == 300_000)
  }

  @Test("Progress of data and downloads is complete") func downloadProgress() async throws {
    let server = try HTTPTestServer()
    let manager = Manager.isolated(starting: false)
    let folder = try Folder()
    let target = folder.url.appendingPathComponent("body")
    for isDownload in [false, true] {
      let notes = Notes()
      let request =
        isDownload
        ? manager.download(.GET, server.url("/bytes/70000")) { _, _ in target }
        : manager.request(.GET, server.url("/bytes/70000"))
      request.progress { _, total, expected in notes.add("\(isOnMain) \(total) \(expected)") }
      request.resume()
      #expect(await request.end().status == 200)
      #expect(notes.lines.last == "false 70000 70000")
      #expect(request.progress.completedUnitCount == 70_000)
    }
  }

  /// Checks that `Content-Length` is not the total, because it is the number of encoded bytes.
  @Test("Progress of an encoded body has no total") func encodedBody() async throws {
    let server = try HTTPTestServer()
    let notes = Notes()
    let request = Manager.isolated(starting: false).request(.GET, server.url("/gzip"))
      .progress { _, _, expected in notes.add("\(expected)") }
    request.resume()
    let end = await request.end()
    #expect(end.response?.value(forHTTPHeaderField: "Content-Length") != nil)
    #expect(Set(notes.lines) == ["-1"])
  }

  @Test("A stream closure receives the body and handlers receive none") func stream() async throws {
    let server = try HTTPTestServer()
    let notes = Notes()
    let request = Manager.isolated(starting: false).request(.GET, server.url("/stream-bytes/5000"))
      .stream { notes.add("\($0.count)") }
    request.resume()
    let end = await request.end()
    #expect(end.status == 200)
    #expect(end.data == nil)
    #expect(notes.lines.compactMap { Int($0) }.reduce(0, +) == 5000)
  }

  @Test("A stream closure that is added late is called before later handlers") func lateStream() async throws
  {
    let server = try HTTPTestServer()
    let notes = Notes()
    let request = Manager.isolated().request(.GET, server.url("/bytes/5000"))
    #expect(await request.end().data?.count == 5000)
    let end = await request.stream { notes.add("\($0.count)") }.validate(contentType: ["image/png"]).end()
    #expect(notes.lines == ["5000"])
    #expect(end.data == nil && end.fault == "\(Alamofire.Error.Domain) -6002")
  }

  @Test("A stream closure receives all chunks before the failure") func failedStream() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.bytes(200_000).with(effect: .closeAfterBody(bytes: 100_000)))
    let notes = Notes()
    let request = Manager.isolated().request(.GET, server.url("/")).stream { notes.add("\($0.count)") }
    let end = await request.end()
    #expect(end.fault == "\(NSURLErrorDomain) \(NSURLErrorNetworkConnectionLost)")
    let count = notes.lines.compactMap { Int($0) }.reduce(0, +)
    #expect(count > 0 && count <= 100_000)
  }

  /// Runs in a separate process, so that no other test changes the peak of memory.
  @Test("Streamed bodies are not collected in memory") func memory() async {
    await #expect(processExitsWith: .success) {
      let server = try HTTPTestServer()
      let manager = Manager.isolated(starting: false)
      func used(by body: Int) async throws -> Int {
        server.enqueue(.bytes(body))
        let count = Atomic<Int>(0)
        let before = try peakOfMemory()
        let request = manager.request(.GET, server.url("/"))
          .stream { count.wrappingAdd($0.count, ordering: .relaxed) }.validate()
        request.resume()
        let end = await request.end()
        #expect(end.error == nil && count.load(ordering: .relaxed) == body)
        return try peakOfMemory() - before
      }
      _ = try await used(by: 1_000_000)
      let more = try await used(by: 128_000_000)
      #if !ADDRESS_SANITIZER  // It delays the reuse of freed memory.
        #expect(more < 32_000, "\(more) KiB more were needed")
      #endif
    }
  }

  @Test("authenticate answers the challenge") func authenticate() async throws {
    let server = try HTTPTestServer()
    let manager = Manager.isolated(starting: false)
    let path = server.url("/basic-auth/user/password")
    let credential = URLCredential(user: "user", password: "password", persistence: .forSession)
    let accepted = manager.request(.GET, path).authenticate(usingCredential: credential)
    accepted.resume()
    #expect(await accepted.end().status == 200)
    let refused = manager.request(.GET, path).authenticate(user: "user", password: "wrong")
    refused.resume()
    #expect(await refused.end().status == 401)
    let fields = Request.authorizationHeader(user: "user", password: "password")
    #expect(fields == ["Authorization": "Basic dXNlcjpwYXNzd29yZA=="])
  }
}
