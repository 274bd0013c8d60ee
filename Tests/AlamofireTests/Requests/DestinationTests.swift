import Alamofire
import Foundation
import HTTPTestServer
import Testing

/// Invalid destinations.
@Suite(.timeLimit(.minutes(5))) struct DestinationTests {
  private let server: HTTPTestServer
  private let session = Session.real()
  private let folder: TemporaryFolder

  init() throws {
    server = try HTTPTestServer()
    folder = try TemporaryFolder()
  }

  private func end(_ destination: @escaping DownloadRequest.Destination) async -> AFDownloadResponse<URL?> {
    let request = session.download(server.url("/bytes/20"), to: destination)
    return await withCheckedContinuation { continuation in
      request.response(queue: .global()) { continuation.resume(returning: $0) }
    }
  }

  @Test(
    "A URL that is not a file URL is an error",
    arguments: [[], .removePreviousFile, .createIntermediateDirectories] as [DownloadRequest.Options])
  func notAFile(options: DownloadRequest.Options) async throws {
    let kept = try folder.file("kept")
    for text in ["http://host\(kept.path)", "http://host\(folder.url.path)/new/file", "data:,x", "new"] {
      let target = try #require(URL(string: text))
      let temporary = Recorder<URL>()
      let response = await end { source, _ in
        temporary.add(source)
        return (target, options)
      }
      #expect(response.error?.isDownloadedFileMoveError == true, "\(text)")
      #expect(temporary.values.allSatisfy { !FileManager.default.fileExists(atPath: $0.path) })
    }
    #expect(try folder.names == ["kept"])
    #expect(try Data(contentsOf: kept) == Data("content".utf8))
  }

  @Test("A destination that is the temporary file itself is not removed") func temporaryFile() async throws {
    let link = folder["link"]
    try FileManager.default.createSymbolicLink(
      at: link, withDestinationURL: FileManager.default.temporaryDirectory)
    let spellings: [@Sendable (URL) -> URL?] = [
      { $0 }, { URL(string: "file://localhost\($0.path)") },
      { URL(fileURLWithPath: "\($0.deletingLastPathComponent().path)/./\($0.lastPathComponent)") },
      { link.appendingPathComponent($0.lastPathComponent) },
    ]
    for spelling in spellings {
      let response = await end { source, _ in (spelling(source) ?? source, .removePreviousFile) }
      let url = try #require(response.fileURL, "\(String(describing: response.error))")
      #expect(try Data(contentsOf: url).count == 20)
      try FileManager.default.removeItem(at: url)
    }
  }

  @Test("A folder is not replaced by a file, and a link to a folder is replaced as a link")
  func folders() async throws {
    let sub = folder["sub"]
    try FileManager.default.createDirectory(at: sub, withIntermediateDirectories: false)
    let kept = sub.appendingPathComponent("kept")
    try Data("content".utf8).write(to: kept)
    let replacing = DownloadRequest.Options.removePreviousFile
    let cases: [(URL, DownloadRequest.Options)] = [
      (sub, replacing), (folder.url, replacing), (sub, replacing.union(.createIntermediateDirectories)),
      (sub.appendingPathComponent(""), replacing), (sub, DownloadRequest.Options()),
    ]
    for (url, options) in cases {
      let response = await end { _, _ in (url, options) }
      #expect(response.error?.isDownloadedFileMoveError == true, "\(url) \(options)")
      let text = response.error?.localizedDescription ?? ""
      if !options.isEmpty { #expect(text.contains("is a folder, which a file does not replace"), "\(text)") }
      let content = try? Data(contentsOf: kept)
      try #require(content == Data("content".utf8), "\(url)")
    }
    let link = folder["link"]
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: sub)
    #expect(await end { _, _ in (link, .removePreviousFile) }.error == nil)
    #expect(try Data(contentsOf: link).count == 20 && FileManager.default.fileExists(atPath: kept.path))
    #expect(try folder.names.sorted() == ["link", "sub"])
  }

  @Test("A retry that fails leaves the file of the attempt before at its destination")
  func retry() async throws {
    let target = folder["target"]
    server.enqueue(.text("first"), .text("broken").with(effect: .closeAfterBody(bytes: 3)))
    let request = session.download(
      server.url("/"), interceptor: SpyInterceptor(retries: 1), to: { _, _ in (target, .removePreviousFile) })
    let response = await request.serializingDecodable(Int.self).response
    #expect(response.error?.transferCode == .networkConnectionLost && request.retryCount == 1)
    #expect(try Data(contentsOf: target) == Data("first".utf8))
  }

  @Test("A broken symbolic link is replaced") func brokenLink() async throws {
    let link = folder["link"]
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: folder["nowhere"])
    #expect(await end { _, _ in (link, []) }.error != nil)
    let response = await end { _, _ in (link, .removePreviousFile) }
    #expect(response.error == nil)
    #expect(try folder.names == ["link"])
  }
}
