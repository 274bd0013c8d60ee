import Alamofire
import Foundation
import HTTPTestServer
import Testing

/// Downloads that are cancelled when their file is complete or nearly complete.
@Suite("Cancelled downloads", .timeLimit(.minutes(5)))
struct CancelledDownloadTests {
  private let server: HTTPTestServer
  private let folder: TemporaryFolder
  private let session = Session.real()

  init() throws {
    server = try HTTPTestServer()
    folder = try TemporaryFolder()
  }

  private func end(_ request: DownloadRequest) async -> AFDownloadResponse<URL?> {
    await withCheckedContinuation { continuation in
      request.response(queue: .global()) { continuation.resume(returning: $0) }
    }
  }

  private func check(_ request: DownloadRequest, _ response: AFDownloadResponse<URL?>) {
    #expect(response.error?.isExplicitlyCancelledError == true)
    #expect(response.fileURL == nil)
    #expect(request.fileURL == nil)
    #expect(request.isCancelled)
  }

  @Test("A download that its destination cancels moves no file")
  func byDestination() async throws {
    let target = folder["file"]
    let (made, sources) = (Recorder<DownloadRequest>(), Recorder<URL>())
    let destination: DownloadRequest.Destination = { source, _ in
      sources.add(source)
      made.values.first?.cancel()
      return (target, [])
    }
    let spy = EventSpy()
    let request = session.download(server.url("/bytes/20"), to: destination).eventMonitor(spy)
    made.add(request)
    check(request, await end(request))
    #expect(try folder.names.isEmpty)
    // Monitors get no URL of a file that is gone.
    let reported = spy.reported.filter {
      $0.contains("didFinishDownloadingUsing") || $0.contains("Destination")
    }
    #expect(reported == ["didFinishDownloadingUsing failure"])
    #expect(sources.values.allSatisfy { !FileManager.default.fileExists(atPath: $0.path) })
    #expect(sources.count == 1)
  }

  @Test("A download that its validator cancels has no file URL", arguments: [false, true])
  func byValidator(hasDestination: Bool) async throws {
    let target = folder["file"]
    let files = Recorder<URL>()
    let destination: DownloadRequest.Destination = { _, _ in (target, []) }
    let request = session.download(server.url("/bytes/20"), to: hasDestination ? destination : nil)
    request.validate { [weak request] _, _, fileURL in
      if let fileURL { files.add(fileURL) }
      request?.cancel()
      return .success(())
    }
    check(request, await end(request))
    #expect(files.count == 1)
    // A temporary file is removed; the one at a destination is the caller's.
    #expect(files.values.allSatisfy { FileManager.default.fileExists(atPath: $0.path) == hasDestination })
    #expect(try folder.names == (hasDestination ? ["file"] : []))
  }

  @Test("A download that is cancelled at its last byte calls no destination")
  func atLastByte() async throws {
    let calls = Recorder<Int>()
    let target = folder["file"]
    let gate = Latch()
    let reached = Latch()
    let fake = FakeTransport(.text("body").held(by: gate, reached: reached))
    let destination: DownloadRequest.Destination = { _, _ in
      calls.add(1)
      return (target, [])
    }
    let request = Session.retained(fake: fake).download("http://a.test/", to: destination)
    async let response = end(request)
    await reached.wait()
    request.cancel()
    gate.open()
    check(request, await response)
    #expect(calls.count == 0)
  }
}
