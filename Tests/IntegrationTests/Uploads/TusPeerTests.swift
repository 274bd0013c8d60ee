import Alamofire
import Foundation
import Synchronization
import Testing

/// Uploads to a server of tus by other authors.
@Suite("tus with tuspyserver", .needsTusPeer, .serialized, .timeLimit(.minutes(5)))
struct TusPeerTests {
  private let session = Session()

  private static func options(_ scheme: ResumableUpload.Scheme) -> ResumableUpload {
    var options = ResumableUpload(scheme)
    options.metadata = ["filename": "ä.bin", "filetype": "application/octet-stream"]
    options.initialDelay = 0.01
    return options
  }

  private static func content(_ count: Int) -> Data {
    Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
  }

  @Test("Contents of every size arrive", arguments: [1, 1000, 70_000, 5_000_000])
  func contents(count: Int) async throws {
    let peer = try await TusPeer()
    let content = Self.content(count)
    for scheme in [ResumableUpload.Scheme.automatic, .tus] {
      let response = await session.upload(content, to: peer.url).resumable(Self.options(scheme)).validate()
        .serializingData(emptyResponseCodes: [204]).response
      #expect(response.error == nil && response.response?.statusCode == 204)
    }
    #expect(try peer.completed == [content, content])
  }

  @Test("Parts arrive in their order") func parts() async throws {
    let peer = try await TusPeer()
    let content = Self.content(1_000_000)
    var options = Self.options(.tus)
    options.maximumPartSize = 99_999
    let response = await session.upload(content, to: peer.url).resumable(options).validate()
      .serializingData(emptyResponseCodes: [204]).response
    #expect(response.error == nil)
    #expect(try peer.completed == [content])
  }

  @Test("An upload that is cancelled ten times continues from its checkpoint") func checkpoints() async throws
  {
    let peer = try await TusPeer()
    let content = Self.content(32 << 20)
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("tus-\(UUID().uuidString)")
    try content.write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    var options = Self.options(.tus)
    // The server refuses requests until it has seen the end of the cancelled one, however long that takes.
    options.maximumFailureCount = 1000
    options.maximumDelay = 0.1
    var checkpoint: Data?
    try peer.stopReading(after: 3_000_000)
    for step in 1...11 {
      if step == 11 { try peer.stopReading(after: nil) }
      let request =
        if let checkpoint {
          session.upload(resumingWith: checkpoint, file: file, as: options)
        } else {
          session.upload(file, to: peer.url).resumable(options)
        }
      request.uploadProgress(queue: .global()) { [weak request] _ in if step < 11 { request?.cancel() } }
      let response = await request.validate().serializingData(emptyResponseCodes: [204]).response
      #expect(
        response.error?.isExplicitlyCancelledError ?? (step == 11),
        "step \(step) ended with \(String(describing: response.error))")
      let current: Data = try #require(request.uploadCheckpoint)
      checkpoint = current
    }
    #expect(try peer.completed == [content])
  }

  @Test("A removed upload is gone") func removal() async throws {
    let peer = try await TusPeer()
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("tus-\(UUID().uuidString)")
    try Self.content(32 << 20).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let request = session.upload(file, to: peer.url).resumable(Self.options(.tus))
    request.uploadProgress(queue: .global()) { [weak request] _ in request?.cancel() }
    _ = await request.serializingData().response
    let checkpoint = try #require(request.uploadCheckpoint)
    let removal = await session.removeUpload(checkpoint).validate().serializingData(emptyResponseCodes: [204])
      .response
    #expect(removal.error == nil)
    let again = await session.upload(resumingWith: checkpoint, file: file, as: Self.options(.tus))
      .serializingData().response
    #expect(again.error?.underlyingError as? ResumableUploadError == .uploadIsGone)
    #expect(try peer.completed.isEmpty)
  }
}
