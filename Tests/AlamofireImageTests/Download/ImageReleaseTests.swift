import Alamofire
import AlamofireImage
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

/// The release of the objects that callers attach to the request of an image.
@Suite("Released requests of images", .timeLimit(.minutes(2))) struct ImageReleaseTests {
  /// Asks the downloader for its counts when it is released.
  private final class Probe: Sendable {
    let downloader: ImageDownloader
    let active: AsyncStream<Int>.Continuation

    init(_ downloader: ImageDownloader, _ active: AsyncStream<Int>.Continuation) {
      self.downloader = downloader
      self.active = active
    }

    deinit {
      active.yield(downloader.counts.active)
      active.finish()
    }
  }

  /// Adds a download whose request nothing else refers to, with a handler that holds a probe.
  private func add(
    _ request: URLRequest, to downloader: ImageDownloader, _ active: AsyncStream<Int>.Continuation
  ) {
    let probe = Probe(downloader, active)
    downloader.download(request)?.request.onHTTPResponse(on: .global()) { [probe] _ in
      withExtendedLifetime(probe) {}
    }
  }

  @Test("An object of the caller may use the downloader when it is released with the request")
  func lastReference() async throws {
    let images = try ImageServer()
    let downloader = ImageDownloader.isolated()
    let (active, continuation) = AsyncStream.makeStream(of: Int.self)
    // The download begins when the handler is there.
    downloader.stop()
    add(try images.request("/image/8x8"), to: downloader, continuation)
    downloader.start()
    var counts: [Int] = []
    for await count in active { counts.append(count) }
    #expect(counts == [0], "the request is released after its download has ended")
  }
}
