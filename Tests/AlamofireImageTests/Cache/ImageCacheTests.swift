import Alamofire
@testable import AlamofireImage
import Foundation
import FoundationNetworking
import Randomness
import Testing

@Suite("Image cache")
struct ImageCacheTests {
  /// Makes an image of so many bytes of pixels.
  private func image(_ bytes: Int, _ red: UInt8 = 0) throws -> Image {
    try Drawing(of: [red, 0, 0], bytes / 4, 1).image()
  }

  private func cache(_ capacity: UInt64 = 1_000, _ preferred: UInt64 = 600) -> AutoPurgingImageCache {
    AutoPurgingImageCache(capacity, preferred, pressure: nil)
  }

  @Test("The names of tiny images are limited as well") func overhead() throws {
    let cache = AutoPurgingImageCache(memoryCapacity: 100_000, preferredMemoryUsageAfterPurge: 60_000)
    let pixel = try Image(pixels: Data([1, 2, 3]), width: 1, height: 1, format: .rgb)
    let names = (0..<2_000).map { "\($0)" + String(repeating: "x", count: 1_000) }
    for name in names { cache.add(pixel, withIdentifier: name) }
    let kept = names.filter { cache.image(withIdentifier: $0) != nil }
    #expect(kept.count < 700 && kept.contains(names[1_999]), "\(kept.count)")
  }

  @Test("Images are stored, replaced and removed by name")
  func names() throws {
    let cache = cache()
    #expect(cache.image(withIdentifier: "a") == nil)
    cache.add(try image(100, 1), withIdentifier: "a")
    cache.add(try image(200, 2), withIdentifier: "a")
    #expect(cache.image(withIdentifier: "a") == (try image(200, 2)))
    #expect(cache.memoryUsage == 200)
    #expect(cache.removeImage(withIdentifier: "a"))
    #expect(!cache.removeImage(withIdentifier: "a"))
    #expect(cache.memoryUsage == 0)
    cache.add(try image(100), withIdentifier: "b")
    #expect(cache.removeAllImages())
    #expect(!cache.removeAllImages())
    #expect(cache.memoryUsage == 0)
  }

  @Test("Over the capacity, the images that were not read for the longest time are removed")
  func purging() throws {
    let cache = cache()
    for name in ["a", "b", "c", "d", "e"] { cache.add(try image(200), withIdentifier: name) }
    #expect(cache.memoryUsage == 1_000)
    _ = cache.image(withIdentifier: "a")
    cache.add(try image(200), withIdentifier: "f")
    #expect(cache.memoryUsage == 600)
    let left = ["a", "b", "c", "d", "e", "f"].filter { cache.image(withIdentifier: $0) != nil }
    #expect(left == ["a", "e", "f"])
  }

  @Test("An image that is larger than the cache is not stored")
  func tooLarge() throws {
    let cache = cache()
    cache.add(try image(100), withIdentifier: "small")
    cache.add(try image(2_000), withIdentifier: "a")
    #expect(cache.removeImage(withIdentifier: "small"))
    #expect(cache.image(withIdentifier: "a") == nil)
    #expect(cache.memoryUsage == 0)
    cache.add(try image(100), withIdentifier: "a")
    cache.add(try image(2_000), withIdentifier: "a")
    #expect(cache.image(withIdentifier: "a") == nil, "an image that was stored before must not be left")
    #expect(
      AutoPurgingImageCache(memoryCapacity: 5, preferredMemoryUsageAfterPurge: 9)
        .preferredMemoryUsageAfterPurge == 5)
  }

  @Test("The name of a request is its URL and the identifier")
  func requests() throws {
    let cache = cache()
    let request = URLRequest(url: try #require(URL(string: "http://example.com/a?b=1#c")))
    let other = URLRequest(url: try #require(URL(string: "http://example.com/a?b=12")))
    #expect(cache.imageCacheKey(for: request, withIdentifier: nil) == "http://example.com/a?b=1#c")
    #expect(cache.imageCacheKey(for: request, withIdentifier: "x") == "http://example.com/a?b=1#c-x")
    cache.add(try image(100, 1), for: request, withIdentifier: "x")
    cache.add(try image(100, 2), for: request)
    cache.add(try image(100, 3), for: other)
    let dashed = URLRequest(url: try #require(URL(string: "http://example.com/a?b=1#c-x.png")))
    cache.add(try image(100, 3), for: dashed)
    #expect(cache.image(for: request, withIdentifier: "x") == (try image(100, 1)))
    #expect(cache.image(for: request) == (try image(100, 2)))
    #expect(cache.removeImage(for: request))
    #expect(cache.image(for: request) == nil)
    cache.add(try image(100, 2), for: request)
    #expect(cache.removeImages(matching: request))
    #expect(!cache.removeImages(matching: request))
    #expect(cache.image(for: request, withIdentifier: "x") == nil)
    #expect(cache.image(for: other) != nil)
    #expect(cache.image(for: dashed) != nil)
  }

  @Test("An image of a request is removed by its identifier alone, and the others of the request stay")
  func removingByIdentifier() throws {
    let cache = cache()
    let request = URLRequest(url: try #require(URL(string: "http://example.com/a")))
    cache.add(try image(100, 1), for: request, withIdentifier: "x")
    cache.add(try image(100, 2), for: request)
    #expect(cache.removeImage(for: request, withIdentifier: "x"))
    #expect(cache.image(for: request, withIdentifier: "x") == nil)
    #expect(cache.image(for: request) == (try image(100, 2)))
    #expect(!cache.removeImage(for: request, withIdentifier: "x"), "it is removed already")
    #expect(cache.image(for: request) != nil, "the image without an identifier is another one")
  }

  @Test("All frames of an animation count")
  func animations() throws {
    let cache = cache()
    cache.add(try Image(frames: [image(100, 1), image(100, 2), image(100, 3)]), withIdentifier: "a")
    #expect(cache.memoryUsage == 300)
  }

  @Test("A file that is larger than its pixels counts, and what was counted is taken off again")
  func largeFiles() throws {
    let file = try Drawing(of: [1, 2, 3], 1, 1).file(.png)
    let cache = cache()
    let image = try Image(data: file)
    cache.add(image, withIdentifier: "a")
    #expect(cache.memoryUsage == UInt64(file.count))
    image.af.inflate()
    cache.removeImage(withIdentifier: "a")
    #expect(cache.memoryUsage == 0)
  }

  @Test("When memory runs low, the cache is emptied with the next image")
  func pressure() throws {
    let reading = Mutex(MemoryPressure.Reading())
    let time = Mutex(ContinuousClock.now)
    let cache = AutoPurgingImageCache(
      1_000, 600,
      pressure: MemoryPressure(read: { reading.withLock { $0 } }, now: { time.withLock { $0 } }))
    cache.add(try image(100), withIdentifier: "a")
    reading.withLock { $0.stall = 50 }
    cache.add(try image(100), withIdentifier: "b")
    #expect(cache.memoryUsage == 200, "the files are read once per second")
    time.withLock { $0 += .seconds(1) }
    cache.add(try image(100), withIdentifier: "c")
    #expect(cache.memoryUsage == 100)
    #expect(cache.image(withIdentifier: "c") != nil)
  }

  @Test("Memory runs low near the limit of the group, or when the system waits for memory")
  func readings() {
    #expect(MemoryPressure.Reading(used: 960, limit: 1_000).isLow)
    #expect(!MemoryPressure.Reading(used: 940, limit: 1_000).isLow)
    #expect(!MemoryPressure.Reading(used: 940, limit: nil).isLow)
    #expect(!MemoryPressure.Reading(used: 0, limit: 0).isLow)
    #expect(MemoryPressure.Reading(stall: 10).isLow)
    #expect(!MemoryPressure.Reading(stall: 9.9).isLow)
    #expect(MemoryPressure.Reading(used: 10, limit: 1_000, stall: 10).isLow, "the system waits for memory")
    #expect(MemoryPressure.number("max\n") == nil)
    #expect(MemoryPressure.number("123\n") == 123)
    #expect(MemoryPressure.groupPath("12:cpu:/x\n0::/user.slice/a\n") == "/user.slice/a")
    #expect(MemoryPressure.groupPath("0::/\n") == "")
    #expect(MemoryPressure.stall("some avg10=9.00 avg60=0\nfull avg10=1.25 avg60=0.00\n") == 1.25)
    #expect(MemoryPressure.field("inactive_file", "file 9\ninactive_file 77\n") == 77)
    #expect(MemoryPressure.field("inactive_file", "") == nil)
    #expect(MemoryPressure.stall("nonsense") == nil)
    #expect(MemoryPressure.stall("full avg10=x") == nil)
  }

  @Test("Files that can be dropped are no memory in use")
  func droppableFiles() {
    let files = [
      "/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/memory.current": "1000\n",
      "/sys/fs/cgroup/a/memory.stat": "anon 100\ninactive_file 700\n",
      "/sys/fs/cgroup/a/memory.max": "2000\n",
      "/proc/pressure/memory": "full avg10=0.50 avg60=0.00\n",
    ]
    #expect(
      MemoryPressure.reading { files[$0] } == MemoryPressure.Reading(used: 300, limit: 2_000, stall: 0.5))
    #expect(MemoryPressure.reading { _ in nil } == MemoryPressure.Reading())
  }

  @Test("The usage is the sum of what is stored, and never above the capacity", .seeded)
  func walk() throws {
    let cache = cache()
    var generator = Seed.generator()
    var sizes: [String: Int] = [:]
    for _ in 0..<3_000 {
      let name = "\(Int.random(in: 0..<12, using: &generator))"
      switch Int.random(in: 0..<4, using: &generator) {
      case 0: #expect(cache.removeImage(withIdentifier: name) == (sizes.removeValue(forKey: name) != nil))
      case 1: #expect((cache.image(withIdentifier: name) != nil) == (sizes[name] != nil))
      default:
        let size = 4 * Int.random(in: 1...100, using: &generator)
        cache.add(try image(size), withIdentifier: name)
        sizes[name] = size
        for stored in sizes.keys where cache.image(withIdentifier: stored) == nil { sizes[stored] = nil }
      }
      #expect(cache.memoryUsage == UInt64(sizes.values.reduce(0, +)))
      #expect(cache.memoryUsage <= 1_000)
    }
  }
}
