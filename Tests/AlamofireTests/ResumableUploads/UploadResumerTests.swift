import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@testable import Alamofire

/// The requests and the content of a resumable upload, without a transfer.
@Suite("Requests of a resumable upload") struct UploadResumerTests {
  private static let bytes = Data("0123456789".utf8)
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func resumer(checkpoint: Data? = nil) -> UploadResumer {
    var policy = UploadResumption.Policy()
    policy.dialect = .tus
    policy.largestPart = 4
    return UploadResumer(.success(policy), checkpoint: checkpoint)
  }

  private func content(isFile: Bool) throws -> UploadContent {
    isFile ? .file(try folder.file("upload", Self.bytes), shouldRemove: false) : .data(Self.bytes)
  }

  private var original: URLRequest {
    get throws {
      var request = try URLRequest(
        url: "https://a.test/files", method: .put,
        headers: ["Content-Type": "a/b", "Content-Length": "10", "Expect": "100-continue", "X-A": "1"])
      request.httpBodyStream = InputStream(data: Data("other".utf8))
      return request
    }
  }

  /// Gives the response to the current request.
  private func process(
    _ status: Int, _ fields: [(String, String)], by resumer: UploadResumer, at url: String
  ) -> UploadResumption.Verdict {
    let fields = [("Tus-Resumable", "1.0.0")] + fields
    let head = ResponseHead(status: status, fields: fields.map { HTTPHeader(name: $0.0, value: $0.1) })
    return resumer.process(head, body: nil, at: url)
  }

  @Test(
    "A file that is gone, or too short, when a class gets its part is an error", arguments: [false, true])
  func lostFile(exists: Bool) throws {
    let resumer = resumer()
    let content = try content(isFile: true)
    let first = try resumer.request(from: original) { .success(content) }
    #expect(first.httpMethod == "POST")
    let fields = [("Location", "/files/1")]
    #expect(process(201, fields, by: resumer, at: "https://a.test/files") == .proceed)
    _ = try resumer.request(from: original) { .success(content) }
    if exists { try Data("01".utf8).write(to: folder["upload"]) } else { unlink(folder["upload"].path) }
    #expect(throws: AFError.self) { try resumer.contentInMemory() }
  }

  @Test("Each request has its part of the body, in memory and as a source", arguments: [false, true])
  func parts(isFile: Bool) async throws {
    let resumer = resumer()
    let content = try content(isFile: isFile)
    #expect(try !resumer.isActive && resumer.contentInMemory() == Data() && resumer.window == nil)
    #expect(resumer.uploadedCount == nil)
    var offset = 0
    for method in ["POST", "PATCH", "PATCH", "PATCH"] {
      let request = try resumer.request(from: original) { .success(content) }
      #expect(request.httpMethod == method && resumer.isActive)
      #expect(request.httpBody == nil && request.httpBodyStream == nil)
      #expect(request.value(forHTTPHeaderField: "X-A") == "1")
      for name in ["Content-Length", "Expect"] {
        #expect(request.value(forHTTPHeaderField: name) == nil, "\(method) \(name)")
      }
      let url = method == "POST" ? "https://a.test/files" : "https://a.test/files/1"
      #expect(request.url?.absoluteString == url)
      let isCreation = method == "POST"
      let content = try resumer.contentInMemory()
      let count = content.count
      #expect(count <= 4 && content == Self.bytes.dropFirst(offset).prefix(count))
      #expect(resumer.window?.offset == Int64(offset) && resumer.window?.length == 10)
      #expect(try await read(resumer) == Self.bytes.dropFirst(offset).prefix(count))
      offset += count
      let fields =
        (isCreation ? [("Location", "/files/1")] : [])
        + (isCreation && count == 0 ? [] : [("Upload-Offset", "\(offset)")])
      let verdict = process(isCreation ? 201 : 204, fields, by: resumer, at: url)
      #expect(verdict == (offset == 10 ? .result : .proceed))
      #expect(resumer.uploadedCount == Int64(offset))
      if offset == 10 { break }
    }
    #expect(offset == 10)
  }

  /// Reads the content of the current request.
  private func read(_ resumer: UploadResumer) async throws -> Data {
    switch try resumer.content() {
    case .bytes(let data): return data
    case .source(let source):
      if let failure = source.start(wake: {}) { throw failure }
      var data = Data()
      var room = [UInt8](repeating: 0, count: 3)
      while case .bytes(let count) = room.withUnsafeMutableBytes({ source.read(into: $0) }) {
        data += room.prefix(count)
      }
      source.stop()
      return data
    default: return Data()
    }
  }

  @Test("A checkpoint has the method and the URL of the request that created the upload") func checkpoint()
    async throws
  {
    let resumer = resumer()
    let content = try content(isFile: true)
    let first = try resumer.request(from: original) { .success(content) }
    let origin = try #require(Origin(url: "https://a.test/"))
    #expect(resumer.owner(orFirst: first.url?.absoluteString ?? "", origin) == origin)
    #expect(resumer.currentCheckpoint == nil)
    _ = process(201, [("Location", "https://b.test/files/1")], by: resumer, at: "https://a.test/files")
    let data = try #require(resumer.currentCheckpoint)
    let calls = Recorder<Data>()
    resumer.setCheckpointHandler(.global()) { calls.add($0) }
    #expect(await calls.wait(for: 1) == [data], "the upload has a URL already")
    let checkpoint = try UploadCheckpoint(data)
    #expect(checkpoint.method == "PUT" && checkpoint.upload.creationURL == "https://a.test/files")
    #expect(checkpoint.upload.url == "https://b.test/files/1" && checkpoint.file.size == 10)
    // The process that continues it sends credentials to the origin of the creation, wherever the upload is.
    let continued = self.resumer(checkpoint: data)
    let next = try continued.request(from: original) { .success(content) }
    #expect(next.httpMethod == "HEAD" && next.url?.absoluteString == "https://b.test/files/1")
    #expect(next.cachePolicy == .reloadIgnoringLocalCacheData)
    let other = try #require(Origin(url: "https://b.test/"))
    #expect(continued.owner(orFirst: "https://b.test/files/1", other) == origin)
    #expect(try continued.window?.offset == nil && continued.contentInMemory() == Data())
  }

  @Test(
    "The URL of an upload does not leave the TLS of the caller's request, whatever URL named it",
    arguments: [UploadResumption.Dialect.draft, .tus])
  func secureURL(dialect: UploadResumption.Dialect) throws {
    var policy = UploadResumption.Policy()
    policy.dialect = dialect
    policy.createsWithContent = false
    let content = try content(isFile: true)
    let origin = try #require(Origin(url: "https://a.test/"))
    for (asked, location, isUsed) in [
      ("https://a.test/files", "/files/1", true), ("http://b.test/files", "https://b.test/files/1", true),
      ("http://b.test/files", "/files/1", false),
    ] {
      let resumer = UploadResumer(.success(policy))
      let first = try resumer.request(from: original) { .success(content) }
      #expect(resumer.owner(orFirst: first.url?.absoluteString ?? "", origin) == origin)
      let fields = [("Location", location), ("Upload-Draft-Interop-Version", "6")]
      if dialect == .draft {
        let head = ResponseHead(status: 104, fields: fields.map { HTTPHeader(name: $0.0, value: $0.1) })
        resumer.informational(head, at: asked)
        #expect((resumer.currentCheckpoint != nil) == isUsed, "status 104: \(location) at \(asked)")
      }
      let verdict = process(201, fields + [("Upload-Complete", "?0")], by: resumer, at: asked)
      #expect(verdict == (isUsed ? .proceed : .failure(.unusableUploadURL)), "\(location) at \(asked)")
      #expect((resumer.currentCheckpoint != nil) == isUsed, "\(location) at \(asked)")
    }
  }

  @Test("An upload that failed after its last byte stays failed in another process", arguments: [nil, 500])
  func failureAfterLastByte(status: Int?) throws {
    let resource = try #require(UploadResource(url: "https://a.test/files/1"))
    let creation = try #require(UploadResource(url: "https://a.test/files"))
    var upload = StoredUpload(resource, creation: creation, dialect: .tus)
    upload.statusAfterLastByte = status
    let content = try content(isFile: true)
    let identity = try #require(UploadFileIdentity(folder["upload"]))
    let data = try #require(UploadCheckpoint(upload, method: "POST", file: identity).data)
    let resumer = resumer(checkpoint: data)
    _ = try resumer.request(from: original) { .success(content) }
    let fields = [("Upload-Offset", "10"), ("Upload-Length", "10")]
    let verdict = process(200, fields, by: resumer, at: resource.url)
    #expect((verdict == .result) == (status == nil), "\(verdict)")
  }

  @Test("Another attempt continues the file only if it is the same") func changedFile() throws {
    let (resumer, content) = (resumer(), try content(isFile: true))
    _ = try resumer.request(from: original) { .success(content) }
    try Data("another content".utf8).write(to: folder["upload"])
    #expect(throws: ResumableUploadError.self) {
      try resumer.request(from: original) { .success(content) }
    }
  }

  @Test("Without its file an upload is not continued by an ordinary request") func missingFile() throws {
    let resource = try #require(UploadResource(url: "https://a.test/files/1"))
    let creation = try #require(UploadResource(url: "https://a.test/files"))
    let upload = StoredUpload(resource, creation: creation, dialect: .tus)
    let file = UploadFileIdentity(size: 10, modified: 1)
    let data = try #require(UploadCheckpoint(upload, method: "POST", file: file).data)
    for url in [folder["missing"], folder.url, try #require(URL(string: "https://a.test/file"))] {
      #expect(throws: (any Error).self, "\(url)") {
        try resumer(checkpoint: data).request(from: original) { .success(.file(url, shouldRemove: false)) }
      }
    }
  }

  @Test("A source that ends stops the file that it reads") func stop() throws {
    final class Source: BodySource {
      let calls = Recorder<String>()
      var length: Int64 { 10 }
      var isRepeatable: Bool { true }
      var isStored: Bool { true }
      func start(wake: @escaping @Sendable () -> Void) -> TransportFailure? {
        calls.add("start")
        return nil
      }
      func read(into room: UnsafeMutableRawBufferPointer) -> BodyReading { .end }
      func stop() { calls.add("stop") }
    }
    let source = Source()
    let file = URL(fileURLWithPath: #filePath)
    let identity = try #require(UploadFileIdentity(file))
    let part = UploadPartSource(
      source, file, identity, UploadResumption.Part(offset: 3, count: 7, isLast: true), of: resumer())
    #expect(part.length == 7 && part.start {} == nil)
    part.stop()
    #expect(source.calls.values == ["start", "stop"])
  }
}
