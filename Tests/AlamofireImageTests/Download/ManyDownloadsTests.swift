import Alamofire
import AlamofireImage
import Foundation
import FoundationNetworking
import HTTPTestServer
import Randomness
import Synchronization
import Testing

/// So many images as `ALAMOFIRE_IMAGES` says, by default 1,000. With 10,000 and alone in its process, it also shows
/// that memory stays flat.
@Suite("Many images", .timeLimit(.minutes(5)))
struct ManyDownloadsTests {
  private let images: ImageServer
  private let count = ProcessInfo.processInfo.environment["ALAMOFIRE_IMAGES"].flatMap { Int($0) } ?? 1_000

  init() throws { images = try ImageServer() }

  /// The completions by receipt.
  private final class Tally: Sendable {
    private let counts: Mutex<[Int]>
    private let failures = Atomic(0)
    private let (stream, continuation) = AsyncStream.makeStream(of: Void.self)

    init(_ count: Int) { counts = Mutex(Array(repeating: 0, count: count)) }

    func complete(_ index: Int, _ result: AFIResult<Image>) {
      if case .failure(let error) = result, !error.isRequestCancelledError {
        failures.add(1, ordering: .relaxed)
      }
      counts.withLock { $0[index] += 1 }
      continuation.yield()
    }

    func next() async { for await _ in stream { return } }

    var completions: [Int] { counts.withLock { $0 } }
    var failureCount: Int { failures.load(ordering: .relaxed) }
  }

  @Test("Each receipt is completed once, the cache keeps its bounds, and memory stays flat", .seeded)
  func flood() async throws {
    let cache = AutoPurgingImageCache(memoryCapacity: 2_000_000, preferredMemoryUsageAfterPurge: 1_000_000)
    let downloader = ImageDownloader.isolated(active: 8, cache: cache)
    let tally = Tally(count)
    let filters: [(any ImageFilter)?] = [
      nil, CircleFilter(), AspectScaledToFillSizeFilter(size: CGSize(width: 20, height: 20)),
    ]
    var generator = Seed.generator()
    var early = 0
    for index in 0..<count {
      let place = Int.random(in: 0..<count / 2, using: &generator)
      let receipt = downloader.download(
        try images.request("/image/\(60 + place % 40)x50?\(place)"), filter: filters[index % 3],
        completionQueue: .global()
      ) { response in tally.complete(index, response.result) }
      if let receipt, Int.random(in: 0..<5, using: &generator) == 0 {
        downloader.cancelRequest(with: receipt)
      }
      #expect(cache.memoryUsage <= 2_000_000)
      if index >= 32 { await tally.next() }
      if index == count / 5 { early = Self.residentMegabytes() }
    }
    for _ in 0..<min(32, count) { await tally.next() }
    #expect(tally.completions.allSatisfy { $0 == 1 })
    #expect(tally.failureCount == 0)
    // The last download ends a moment after its last completion; the suite has a time limit.
    while downloader.counts != (0, 0), !Task.isCancelled { await Task.yield() }
    #expect(downloader.counts == (0, 0))
    let late = Self.residentMegabytes()
    if count >= 10_000 {
      print("ManyDownloadsTests: \(early) MB after a fifth, \(late) MB at the end")
      #expect(late - early < 40, "\(early) MB after a fifth, \(late) MB at the end")
    }
  }

  private static func residentMegabytes() -> Int {
    let pages = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ")
    return (pages?.dropFirst().first.flatMap { Int($0) } ?? 0) / 256
  }
}
