import AlamofireV3
import Foundation
import FoundationNetworking
import HTTPTestServer
import Scenarios
import Testing

@Suite(.timeLimit(.minutes(5))) struct MultipartTests {
  typealias Encoding = Manager.MultipartFormDataEncodingResult

  private func encoded(
    _ server: HTTPTestServer, threshold: UInt64 = Manager.MultipartFormDataEncodingMemoryThreshold,
    notes: Notes = Notes(), _ fill: @escaping (MultipartFormData) -> Void
  ) async -> Encoding {
    let box = await withCheckedContinuation { continuation in
      Manager.isolated().upload(
        .POST, server.url("/post"), headers: ["X-A": "1"],
        multipartFormData: { form in
          notes.add("fill \(isOnMain)")
          fill(form)
        }, encodingMemoryThreshold: threshold
      ) { result in
        notes.add("completion \(isOnMain)")
        continuation.resume(returning: UncheckedBox(value: result))
      }
    }
    return box.value
  }

  @Test("A form with all kinds of parts is sent", .steps) func parts() async throws {
    let server = try HTTPTestServer()
    let file = try Folder().file("unicorn.png")
    try FileManager.default.createDirectory(
      at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data("png".utf8).write(to: file)
    let notes = Notes()
    step("encoding of the form")
    let result = await encoded(server, notes: notes) { form in
      form.appendBodyPart(data: Data("1".utf8), name: "a")
      form.appendBodyPart(data: Data("2".utf8), name: "b", mimeType: "text/plain")
      form.appendBodyPart(data: Data("3".utf8), name: "c", fileName: "c.txt", mimeType: "text/plain")
      form.appendBodyPart(fileURL: file, name: "unicorn")
      form.appendBodyPart(fileURL: file, name: "d", fileName: "d.bin", mimeType: "application/x-d")
      form.appendBodyPart(
        stream: InputStream(data: Data("5".utf8)), length: 1, name: "e", fileName: "e", mimeType: "a/b")
      form.appendBodyPart(
        stream: InputStream(data: Data("6".utf8)), length: 1,
        headers: ["Content-Disposition": "form-data; name=\"f\""])
    }
    guard case .Success(let request, false, nil) = result else {
      Issue.record("\(result)")
      return
    }
    step("parts at the server")
    let json = await request.outcome { $0.responseJSON(completionHandler: $1) }.result.value
    #expect(value("form.a", of: json) == "1")
    #expect(value("form.b", of: json) == "2")
    #expect(value("form.f", of: json) == "6")
    #expect(value("files.c", of: json) == "3")
    #expect(value("files.unicorn", of: json) == "png")
    #expect(value("files.d", of: json) == "png")
    #expect(value("files.e", of: json) == "5")
    #expect(value("headers.X-A", of: json) == "1")
    #expect(notes.lines == ["fill false", "completion true"])
    try FileManager.default.removeItem(at: file.deletingLastPathComponent())
  }

  @Test("A large form is sent from a file that is removed") func largeForm() async throws {
    let server = try HTTPTestServer()
    let result = await encoded(server, threshold: 10) { form in
      form.appendBodyPart(data: Data("eleven char".utf8), name: "a")
    }
    guard case .Success(let request, true, let file?) = result else {
      Issue.record("\(result)")
      return
    }
    let folder = file.deletingLastPathComponent()
    #expect(folder.lastPathComponent.hasPrefix("com.alamofire.manager-"))
    #expect(folder.deletingLastPathComponent().path == FileManager.default.temporaryDirectory.path)
    let response = await request.outcome { $0.responseJSON(completionHandler: $1) }
    #expect(value("form.a", of: response.result.value) == "eleven char")
    #expect(!FileManager.default.fileExists(atPath: folder.path))
  }

  @Test("The file of a form whose request is not started is removed", .steps) func unsentForm() async throws {
    let manager = Manager.isolated(starting: false)
    let file = await withCheckedContinuation { (continuation: CheckedContinuation<URL?, Never>) in
      manager.upload(
        .POST, "http://a.test/",
        multipartFormData: { $0.appendBodyPart(data: Data("eleven char".utf8), name: "a") },
        encodingMemoryThreshold: 10
      ) { result in
        guard case .Success(_, true, let file) = result else { return continuation.resume(returning: nil) }
        continuation.resume(returning: file)
      }
    }
    let folder = try #require(file).deletingLastPathComponent()
    step("removal of the file")
    while FileManager.default.fileExists(atPath: folder.path) { await Task.yield() }
  }

  @Test(
    "The file of a form is removed although nothing retains its request, which its task has started", .steps)
  func formOfTask() async throws {
    let server = try HTTPTestServer()
    let manager = Manager.isolated(starting: false)
    defer { withExtendedLifetime(manager) {} }
    let file = await withCheckedContinuation { (continuation: CheckedContinuation<URL?, Never>) in
      manager.upload(
        .POST, server.url("/post"),
        multipartFormData: { $0.appendBodyPart(data: Data("eleven char".utf8), name: "a") },
        encodingMemoryThreshold: 10
      ) { result in
        guard case .Success(let request, true, let file) = result else {
          return continuation.resume(returning: nil)
        }
        request.task?.resume()
        continuation.resume(returning: file)
      }
    }
    let folder = try #require(file).deletingLastPathComponent()
    step("the request")
    let sent = try await server.takeRequest()
    #expect(String(decoding: sent.body, as: UTF8.self).contains("eleven char"))
    step("removal of the file")
    while FileManager.default.fileExists(atPath: folder.path) { await Task.yield() }
  }

  @Test("A form at the threshold is sent from a file", arguments: [(9, true), (10, true), (11, false)])
  func threshold(threshold: UInt64, isFromFile: Bool) async throws {
    let server = try HTTPTestServer()
    let result = await encoded(server, threshold: threshold) { form in
      form.appendBodyPart(data: Data("ten chars.".utf8), name: "a")
    }
    guard case .Success(let request, isFromFile, _) = result else {
      Issue.record("\(result)")
      return
    }
    #expect(await request.end().status == 200)
  }

  @Test("A form that cannot be encoded fails in the completion") func failure() async throws {
    let server = try HTTPTestServer()
    let nowhere = URL(fileURLWithPath: "/nowhere/a.png")
    let missing = await encoded(server) { $0.appendBodyPart(fileURL: nowhere, name: "a") }
    guard case .Failure(let error as NSError) = missing else {
      Issue.record("\(missing)")
      return
    }
    #expect(error.domain == NSURLErrorDomain)
    #expect(error.code == NSURLErrorBadURL)
    let short = await encoded(server) { form in
      form.appendBodyPart(
        stream: InputStream(data: Data("1".utf8)), length: 2, name: "a", fileName: "a", mimeType: "a/b")
    }
    guard case .Failure(let read as NSError) = short else {
      Issue.record("\(short)")
      return
    }
    #expect("\(read.domain) \(read.code)" == "com.alamofire.error -6000")
    #expect(server.requestCount == 0)
  }

  @Test("A form can be encoded directly") func directEncoding() throws {
    let folder = try Folder()
    let form = MultipartFormData()
    form.appendBodyPart(data: Data("1".utf8), name: "a")
    let expected =
      "--\(form.boundary)\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--\(form.boundary)--\r\n"
    #expect(String(decoding: try form.encode(), as: UTF8.self) == expected)
    #expect(form.contentType == "multipart/form-data; boundary=\(form.boundary)")
    #expect(form.contentLength == 1)
    let file = try folder.file("form")
    try form.writeEncodedDataToDisk(file)
    #expect(try String(contentsOf: file, encoding: .utf8) == expected)
    let error = #expect(throws: NSError.self) { try form.writeEncodedDataToDisk(file) }
    #expect(error?.domain == NSURLErrorDomain)
  }
}
