import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// Files of `/proc` and `/sys`, whose size in the file system is not the number of their bytes.
@Suite("Generated files", .timeLimit(.minutes(5))) struct GeneratedFileTests {
  // A separate root may lack `/sys`.
  private static let paths = ["/proc/version", "/sys/devices/system/cpu/online", "/proc/self/limits"]
    .filter { FileManager.default.fileExists(atPath: $0) }

  private let server: HTTPTestServer
  private let session = Session.real()

  init() throws { server = try HTTPTestServer(routes: .none) }

  private func content(_ path: String) throws -> Data {
    let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
    defer { try? handle.close() }
    let data = try #require(try handle.readToEnd())
    #expect(!data.isEmpty)
    return data
  }

  @Test("Such a file is uploaded to its end, with its length", arguments: paths) func upload(path: String)
    async throws
  {
    server.enqueue(.ok)
    let content = try content(path)
    let response = await session.upload(URL(fileURLWithPath: path), to: server.url("/")).end()
    #expect(response.error == nil)
    let request = try await server.takeRequest()
    #expect(Data(request.body) == content)
    #expect(request.header("Content-Length") == "\(content.count)")
  }

  @Test("Such a file is sent again after a redirect") func redirect() async throws {
    server.enqueue(.redirect(to: "/next", status: 307), .ok)
    let content = try content("/proc/version")
    _ = await session.upload(URL(fileURLWithPath: "/proc/version"), to: server.url("/")).end()
    for _ in 0..<2 { #expect(Data(try await server.takeRequest().body) == content) }
  }

  @Test("A link to such a file is uploaded too") func link() async throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createSymbolicLink(
      atPath: folder["link"].path, withDestinationPath: "/proc/version")
    server.enqueue(.ok)
    _ = await session.upload(folder["link"], to: server.url("/")).end()
    #expect(Data(try await server.takeRequest().body) == (try content("/proc/version")))
  }

  @Test("Such a file is a part of a form", arguments: paths, [0, UInt64.max]) func form(
    path: String, threshold: UInt64
  )
    async throws
  {
    server.enqueue(.ok)
    let content = try content(path)
    let response = await session.upload(
      multipartFormData: {
        $0.append(URL(fileURLWithPath: path), withName: "a", fileName: "f", mimeType: "a/b")
      },
      to: server.url("/"), usingThreshold: threshold
    ).end()
    #expect(response.error == nil)
    let body = Data(try await server.takeRequest().body)
    #expect(body.range(of: Data("\r\n\r\n".utf8) + content + Data("\r\n--".utf8)) != nil)
  }

  @Test("Such a file is a resumable upload") func resumable() async throws {
    let content = try content("/proc/version")
    server.enqueue(.ok)
    let response = await session.upload(URL(fileURLWithPath: "/proc/version"), to: server.url("/"))
      .resumable().end()
    #expect(response.error == nil)
    #expect(server.recordedRequests.contains { Data($0.body) == content })
  }

  @Test("Such a file is a background upload") func background() async throws {
    let fixture = try BackgroundFixture()
    let content = try content("/proc/version")
    server.enqueue(.ok)
    let session = fixture.session()
    let request = session.upload(URL(fileURLWithPath: "/proc/version"), to: server.url("/"))
    #expect(await request.ended().error == nil)
    #expect(Data(try await server.takeRequest().body) == content)
    #expect(await fixture.isEmptied())
    withExtendedLifetime(session) {}
  }

  @Test("A file: URL of such a file has no length", arguments: paths) func localURL(path: String) async throws
  {
    let content = try content(path)
    let totals = Recorder<Int64>()
    let response = await session.request("file://\(path)")
      .downloadProgress(queue: .global()) { totals.add($0.totalUnitCount) }.end()
    #expect(response.data == content)
    #expect(totals.values.allSatisfy { $0 != 0 && $0 != 4096 }, "\(totals.values)")
  }

  @Test("Empty and sparse files are what they are") func honestFiles() async throws {
    let folder = try TemporaryFolder()
    let sparse = try folder.file("sparse", Data())
    let handle = try FileHandle(forWritingTo: sparse)
    try handle.truncate(atOffset: 100_000)
    try handle.close()
    for (url, count) in [(try folder.file("empty", Data()), 0), (sparse, 100_000)] {
      server.enqueue(.ok)
      _ = await session.upload(url, to: server.url("/")).end()
      let request = try await server.takeRequest()
      #expect(request.body == [UInt8](repeating: 0, count: count))
      #expect(request.header("Content-Length") == "\(count)")
    }
  }
}
