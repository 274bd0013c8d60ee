import AlamofireV4
import Foundation
import HTTPTestServer
import Testing

@Suite("Downloads and uploads", .timeLimit(.minutes(5))) struct TransferTests {
  private let server: HTTPTestServer
  private let manager = SessionManager.isolated()

  init() throws { server = try HTTPTestServer() }

  // MARK: Downloads

  @Test("Without a destination the temporary file is not moved") func noDestination() async throws {
    let request = manager.download(server.url("/bytes/100"))
    let response = await request.ended()
    let file = try #require(response.temporaryURL)
    defer { try? FileManager.default.removeItem(at: file) }
    #expect(response.destinationURL == nil && response.error == nil && response.resumeData == nil)
    #expect(try Data(contentsOf: file).count == 100)
    let data = await awaited { done in request.responseData { done(UncheckedBox(value: $0)) } }
    #expect(data.value?.count == 100 && data.temporaryURL == file)
  }

  @Test("The destination and its options apply") func destination() async throws {
    let folder = try Folder()
    let target = folder.file("new/folder/file")
    let seen = Notes<URL>()
    func download(_ options: DownloadRequest.DownloadOptions) async -> DefaultDownloadResponse {
      await manager.download(server.url("/bytes/5")) { temporaryURL, response in
        #expect(response.statusCode == 200)
        seen.add(temporaryURL)
        return (target, options)
      }.ended()
    }
    let missing = await download([])
    #expect(missing.error is CocoaError && missing.destinationURL == target)
    let made = await download(.createIntermediateDirectories)
    #expect(made.error == nil && made.destinationURL == target && made.temporaryURL == seen.all[1])
    #expect(try Data(contentsOf: target).count == 5)
    #expect(await download([]).error is CocoaError)
    #expect(await download(.removePreviousFile).error == nil)
  }

  @Test("A download that cannot be moved has no temporary file") func failedMove() async throws {
    let folder = try Folder()
    let taken = folder.file("taken")
    try Data("here".utf8).write(to: taken)
    let response = await manager.download(server.url("/bytes/10")) { _, _ in (taken, []) }.ended()
    #expect(response.error != nil && response.temporaryURL == nil)
    #expect(try String(contentsOf: taken, encoding: .utf8) == "here")
  }

  @Test("Cancelling a download makes resume data") func resumeData() async throws {
    let body = Reply.patternBytes(100_000)
    server.enqueue(
      Reply.bytes(100_000).with(effect: .stallAfterBody(bytes: 50_000)).with(
        header: "ETag", value: "\"strong\""
      )
      .with(header: "Accept-Ranges", value: "bytes"))
    let request = manager.download(server.url("/"))
    await withCheckedContinuation { continuation in
      let once = Notes<Int>()
      request.downloadProgress(queue: DispatchQueue(label: "progress")) { progress in
        guard progress.completedUnitCount >= 50_000, once.count == 0 else { return }
        once.add(1)
        continuation.resume()
      }
    }
    request.cancel()
    let response = await request.ended()
    #expect((response.error as? URLError)?.code == .cancelled)
    let data = try #require(response.resumeData)
    #expect(request.resumeData == data && response.temporaryURL == nil)
    server.enqueue(
      Reply.data(Array(body[50_000...])).with(header: "ETag", value: "\"strong\"")
        .with(header: "Content-Range", value: "bytes 50000-99999/100000").withStatus(206))
    let folder = try Folder()
    let target = folder.file("all")
    let resumed = await manager.download(resumingWith: data) { _, _ in (target, []) }.ended()
    #expect(resumed.error == nil && resumed.response?.statusCode == 206)
    #expect(server.recordedRequests.last?.header("Range") == "bytes=50000-")
  }

  @Test("A download can be cancelled without resume data") func cancelWithoutResumeData() async {
    server.enqueue(Reply.stallAfterBody(bytes: 500).with(header: "ETag", value: "\"strong\""))
    let request = manager.download(server.url("/"))
    request.cancel(createResumeData: false)
    let response = await request.ended()
    #expect((response.error as? URLError)?.code == .cancelled && response.resumeData == nil)
  }

  @Test("The suggested destination has the file name of the response") func suggestedDestination() throws {
    let url = try #require(URL(string: "http://127.0.0.1/path/pig.png"))
    let response = try #require(
      HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: nil))
    let destination = DownloadRequest.suggestedDownloadDestination(for: .cachesDirectory)
    let (target, options) = destination(URL(fileURLWithPath: "/tmp/x"), response)
    #expect(target.lastPathComponent == "pig.png" && options == [])
  }

  // MARK: Uploads

  @Test("Bytes, files and streams are uploaded") func uploads() async throws {
    let folder = try Folder()
    let file = folder.file("body")
    try Data("from a file".utf8).write(to: file)
    let progress = Notes<Int64>()
    let upload = manager.upload(file, to: server.url("/post"), headers: ["X-A": "b"])
      .uploadProgress(queue: DispatchQueue(label: "progress")) { progress.add($0.completedUnitCount) }
    #expect(await upload.ended().error == nil)
    #expect(upload.uploadProgress.completedUnitCount == 11)
    _ = await manager.upload(Data("from memory".utf8), to: server.url("/put"), method: .put).ended()
    let stream = InputStream(data: Data("from a stream".utf8))
    _ = await manager.upload(stream, with: try URLRequest(url: server.url("/post"), method: .post)).ended()
    let bodies = server.recordedRequests.map { "\($0.method) \(String(decoding: $0.body, as: UTF8.self))" }
    #expect(bodies == ["POST from a file", "PUT from memory", "POST from a stream"])
  }

  @Test("A missing file is an error of the handlers") func missingFile() async {
    let response = await manager.upload(URL(fileURLWithPath: "/nowhere/at/all"), to: server.url("/post"))
      .ended()
    #expect(response.error != nil && server.requestCount == 0)
  }

  private func encoded(
    threshold: UInt64, to url: String, queue: DispatchQueue? = nil,
    _ fill: @escaping (MultipartFormData) -> Void
  ) async -> (SessionManager.MultipartFormDataEncodingResult, isMain: Bool) {
    await awaited { done in
      manager.upload(
        multipartFormData: fill, usingThreshold: threshold, to: url, queue: queue
      ) { done(UncheckedBox(value: ($0, isOnMainQueue))) }
    }
  }

  @Test("A form is encoded in memory") func formInMemory() async throws {
    let (result, isMain) = await encoded(threshold: 1000, to: server.url("/post")) { form in
      #expect(!isOnMainQueue)
      form.append(Data("value".utf8), withName: "name")
    }
    guard case .success(let request, false, nil) = result else {
      Issue.record("\(result)")
      return
    }
    #expect(isMain)
    let json = try #require(await request.json().value as? [String: Any])
    #expect((json["form"] as? [String: String]) == ["name": "value"])
  }

  @Test("A long form is encoded in a file that is removed") func formInFile() async throws {
    let (result, isMain) = await encoded(
      threshold: 10, to: server.url("/post"), queue: DispatchQueue(label: "own")
    ) { $0.append(Data(repeating: 65, count: 50), withName: "name") }
    guard case .success(let request, true, let file?) = result else {
      Issue.record("\(result)")
      return
    }
    #expect(!isMain)
    let json = try #require(await request.json().value as? [String: Any])
    #expect((json["form"] as? [String: String])?["name"]?.count == 50)
    #expect(!FileManager.default.fileExists(atPath: file.path))
    let folder = file.deletingLastPathComponent()
    #expect(!FileManager.default.fileExists(atPath: folder.path))
    #expect(folder.deletingLastPathComponent().path == FileManager.default.temporaryDirectory.path)
  }

  @Test("A form in a file is sent again for credentials that are added after its end")
  func formWithLateCredentials() async throws {
    let (result, _) = await encoded(threshold: 0, to: server.url("/basic-auth/user/pw")) {
      $0.append(Data("value".utf8), withName: "name")
    }
    guard case .success(let request, true, let file?) = result else {
      Issue.record("\(result)")
      return
    }
    #expect(await request.ended().response?.statusCode == 401)
    let response = await request.authenticate(user: "user", password: "pw").ended()
    #expect(response.error == nil && response.response?.statusCode == 200)
    let bodies = server.recordedRequests.map(\.body)
    #expect(bodies.count >= 2 && Set(bodies).count == 1 && bodies.first?.isEmpty == false)
    #expect(!FileManager.default.fileExists(atPath: file.deletingLastPathComponent().path))
  }

  @Test("A form in a file is sent again for a validator that is added after its end")
  func formWithLateValidator() async throws {
    manager.retrier = ScriptedRetrier { _, count in (count == 0, 0) }
    server.enqueue(.status(500), .ok)
    let folder = try await sentTwice()
    // The retrier has kept the request.
    manager.retrier = nil
    #expect(await eventually { !FileManager.default.fileExists(atPath: folder.path) })
  }

  /// Sends a form whose first response is refused after its end. Returns the folder of its file.
  private func sentTwice() async throws -> URL {
    let (result, _) = await encoded(threshold: 0, to: server.url("/")) {
      $0.append(Data("value".utf8), withName: "name")
    }
    guard case .success(let request, true, let file?) = result else { throw Unencoded() }
    #expect(await request.ended().response?.statusCode == 500)
    let response = await request.validate().ended()
    #expect(response.error == nil && response.response?.statusCode == 200 && request.retryCount == 1)
    let bodies = server.recordedRequests.map(\.body)
    #expect(bodies.count == 2 && Set(bodies).count == 1 && bodies.first?.isEmpty == false)
    return file.deletingLastPathComponent()
  }

  private struct Unencoded: Error {}

  @Test("The file of a form that is never started is removed with its request") func unstartedForm()
    async throws
  {
    manager.startRequestsImmediately = false
    let folder = try await dropped()
    #expect(await eventually { !FileManager.default.fileExists(atPath: folder.path) })
    #expect(server.requestCount == 0)
  }

  /// Encodes a form without starting its request, which is released. Returns the folder of its file.
  private func dropped() async throws -> URL {
    let (result, _) = await encoded(threshold: 0, to: server.url("/post")) {
      $0.append(Data(), withName: "a")
    }
    guard case .success(_, true, let file?) = result else { throw Unencoded() }
    #expect(FileManager.default.fileExists(atPath: file.path))
    return file.deletingLastPathComponent()
  }

  @Test("An invalid form is an error of the encoding result") func invalidForm() async {
    let (file, _) = await encoded(threshold: 1000, to: server.url("/post")) {
      $0.append(URL(fileURLWithPath: "/nowhere/at/all"), withName: "file")
    }
    guard case .failure(let error) = file else {
      Issue.record("\(file)")
      return
    }
    #expect((error as? AFError)?.isMultipartEncodingError == true)
    let (url, _) = await encoded(threshold: 1000, to: "") { $0.append(Data(), withName: "a") }
    guard case .failure(let refused) = url else {
      Issue.record("\(url)")
      return
    }
    #expect((refused as? AFError)?.isInvalidURLError == true && server.requestCount == 0)
  }

  /// Runs in a separate process, because Foundation ends the process that changes a copy of such a request.
  @Test("A form with a request that has no URL fails") func formWithoutURL() async {
    await #expect(processExitsWith: .success) {
      var bare = try URLRequest(url: "http://127.0.0.1/", method: .post)
      bare.url = nil
      let (nowhere, manager) = (bare, SessionManager.isolated())
      for threshold in [0, 1_000_000] as [UInt64] {
        let error: (any Error)? = await awaited { done in
          manager.upload(
            multipartFormData: { $0.append(Data(), withName: "a") }, usingThreshold: threshold, with: nowhere,
            queue: .global()
          ) { result in
            switch result {
            case .success(let request, _, _): request.response { done(UncheckedBox(value: $0.error)) }
            case .failure(let error): done(UncheckedBox(value: error))
            }
          }
        }
        #expect((error as? URLError)?.code == .badURL)
      }
    }
  }
}

extension Reply {
  fileprivate func withStatus(_ status: Int) -> Reply {
    var copy = self
    copy.status = status
    return copy
  }
}
