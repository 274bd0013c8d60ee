import Alamofire
@testable import AlamofireImage
import Foundation
import FoundationNetworking
import Testing

@Suite("What a cache of images keeps, and when memory runs low")
struct CacheOrderTests {
  /// Makes an image of so many bytes of pixels.
  private func image(_ bytes: Int, _ red: UInt8 = 0) throws -> Image {
    try Drawing(of: [red, 0, 0], bytes / 4, 1).image()
  }

  private func request(_ path: String) throws -> URLRequest {
    URLRequest(url: try #require(URL(string: "http://example.com/\(path)")))
  }

  @Test("A cache has the sizes that it was given, and the defaults")
  func sizes() {
    func sizes(_ cache: AutoPurgingImageCache) -> [UInt64] {
      [cache.memoryCapacity, cache.preferredMemoryUsageAfterPurge]
    }
    #expect(AutoPurgingImageCache().pressure != nil)
    #expect(sizes(AutoPurgingImageCache()) == [100_000_000, 60_000_000])
    #expect(sizes(AutoPurgingImageCache(memoryCapacity: 70_000_000)) == [70_000_000, 60_000_000])
    #expect(sizes(AutoPurgingImageCache(memoryCapacity: 50)) == [50, 50])
    #expect(sizes(AutoPurgingImageCache(preferredMemoryUsageAfterPurge: 7)) == [100_000_000, 7])
    #expect(sizes(AutoPurgingImageCache(memoryCapacity: 9, preferredMemoryUsageAfterPurge: 9)) == [9, 9])
    #expect(sizes(AutoPurgingImageCache(memoryCapacity: 9, preferredMemoryUsageAfterPurge: 3)) == [9, 3])
  }

  @Test("Storing and reading count as reading, and what was read first is removed first")
  func order() throws {
    let cache = AutoPurgingImageCache(400, 300, pressure: nil)
    func fill() throws {
      for name in ["a", "b", "c", "d"] { cache.add(try image(100), withIdentifier: name) }
    }
    func names() -> String {
      ["a", "b", "c", "d", "e"].filter { cache.removeImage(withIdentifier: $0) }.joined()
    }
    try fill()
    #expect(cache.memoryUsage == 400, "the capacity itself is not too much")
    #expect(names() == "abcd")
    let cases: [(String, () throws -> Void)] = [
      ("cde", {}), ("ade", { _ = cache.image(withIdentifier: "a") }),
      ("ade", { cache.add(try image(100), withIdentifier: "a") }),
      ("abe", { for name in ["b", "a"] { _ = cache.image(withIdentifier: name) } }),
      ("bce", { for name in ["a", "d", "b", "c"] { _ = cache.image(withIdentifier: name) } }),
      ("cde", { _ = cache.image(withIdentifier: "nothing") }),
      ("bcde", { cache.removeImage(withIdentifier: "a") }),
      ("cde", { cache.add(try image(200), withIdentifier: "d") }),
    ]
    for (index, (left, change)) in cases.enumerated() {
      try fill()
      try change()
      cache.add(try image(100, 9), withIdentifier: "e")
      #expect(cache.memoryUsage <= 400)
      #expect(names() == left, "case \(index)")
      #expect(cache.memoryUsage == 0)
    }
  }

  @Test("An image as large as the cache is stored, and a larger one removes only the one of its name")
  func largest() throws {
    let cache = AutoPurgingImageCache(400, 300, pressure: nil)
    cache.add(try image(400, 1), withIdentifier: "a")
    #expect(cache.memoryUsage == 400)
    cache.add(try image(404, 1), withIdentifier: "b")
    #expect(cache.memoryUsage == 400)
    #expect(try cache.image(withIdentifier: "a") == image(400, 1))
    cache.add(try image(404, 1), withIdentifier: "a")
    #expect(cache.memoryUsage == 0)
    cache.add(try image(200), withIdentifier: "a")
    cache.add(try image(200), withIdentifier: "b")
    cache.add(try image(404), for: try request("c"))
    #expect(cache.memoryUsage == 400)
  }

  @Test("An image counts as its pixels, or as its file if that is larger")
  func costs() throws {
    let frames = try [Drawing(of: [1, 2, 3], 5, 3).image(), Drawing(of: [4, 5, 6], 5, 3).image()]
    #expect(RecentlyRead.cost(frames[0]) == 60)
    #expect(try RecentlyRead.cost(Image(frames: frames)) == 120)
    let (small, large) = try (
      Drawing(gradientOf: 2, 2).file(.png), Drawing(of: [1, 2, 3], 200, 200).file(.png)
    )
    #expect(try RecentlyRead.cost(Image(data: small)) == UInt64(small.count))
    #expect(try RecentlyRead.cost(Image(data: large)) == 160_000)
    let image = try Image(data: small)
    image.af.inflate()
    #expect(RecentlyRead.cost(image) == 16)
  }

  @Test("The images of a request are found by it and their identifiers, and removed together or one by one")
  func requests() throws {
    let cache = AutoPurgingImageCache(100_000, 50_000, pressure: nil)
    let (first, second) = try (request("a"), request("ab"))
    let stored: [(URLRequest, String?, UInt8)] = [
      (first, nil, 1), (first, "x", 2), (first, "y", 3), (second, nil, 4), (second, "x", 5),
    ]
    func fill() throws {
      for (request, identifier, red) in stored {
        cache.add(try image(100, red), for: request, withIdentifier: identifier)
      }
      cache.add(try image(100, 6), withIdentifier: "http://example.com/a-z")
    }
    func found() throws -> [UInt8?] {
      try stored.map { try cache.image(for: $0.0, withIdentifier: $0.1)?.pixel(0, 0)[0] }
        + [cache.image(withIdentifier: "http://example.com/a-z")?.pixel(0, 0)[0]]
    }
    try fill()
    #expect(try found() == [1, 2, 3, 4, 5, 6])
    #expect(cache.memoryUsage == 600)
    #expect(cache.removeImages(matching: first))
    #expect(try found() == [nil, nil, nil, 4, 5, 6], "what was stored by a name alone is not the request's")
    #expect(!cache.removeImages(matching: first))
    #expect(cache.memoryUsage == 300)
    try fill()
    #expect(cache.removeImage(for: first))
    #expect(!cache.removeImage(for: first))
    #expect(cache.removeImage(for: second, withIdentifier: "x"))
    #expect(try found() == [nil, 2, 3, 4, nil, 6])
    #expect(cache.removeImages(matching: second))
    #expect(cache.removeAllImages())
    #expect(!cache.removeAllImages())
    #expect(!cache.removeImages(matching: first))
    #expect(try found() == [nil, nil, nil, nil, nil, nil])
    // An image that was stored by the name of the request is the request's.
    cache.add(try image(100, 7), withIdentifier: "http://example.com/a")
    #expect(cache.removeImages(matching: first))
    #expect(cache.memoryUsage == 0)
    cache.add(try image(100, 8), for: URLRequest(url: URL(fileURLWithPath: "/a", relativeTo: nil)))
    #expect(cache.image(withIdentifier: "file:///a") != nil)
    var nowhere = first
    nowhere.url = nil
    #expect(cache.imageCacheKey(for: nowhere, withIdentifier: nil) == "")
    #expect(cache.imageCacheKey(for: nowhere, withIdentifier: "x") == "-x")
  }

  @Test("Memory runs low from nineteen twentieths of the limit, or a tenth of the time")
  func readings() {
    func isLow(_ used: UInt64?, _ limit: UInt64?, _ stall: Double? = nil) -> Bool {
      MemoryPressure.Reading(used: used, limit: limit, stall: stall).isLow
    }
    #expect(isLow(950, 1_000) && !isLow(949, 1_000))
    #expect(isLow(19, 20) && !isLow(18, 20))
    #expect(isLow(1_000, 1_000) && isLow(2_000, 1_000))
    #expect(!isLow(nil, 1_000) && !isLow(1_000, nil) && !isLow(nil, nil))
    #expect(!isLow(0, 0) && !isLow(9, 0), "a limit of 0 is none")
    #expect(isLow(nil, nil, 10) && isLow(0, 1_000, 10.1) && !isLow(0, 1_000, 9.99))
    #expect(isLow(950, 1_000, 0))
    #expect(isLow(9, 0, 50))
  }

  @Test("The answer holds for a second, whatever it is", arguments: [false, true])
  func once(isLow: Bool) {
    let time = Mutex(ContinuousClock.now)
    let reads = Mutex(0)
    let pressure = MemoryPressure(
      read: {
        reads.withLock { reads in
          reads += 1
          return MemoryPressure.Reading(stall: (reads == 2) == isLow ? 0 : 50)
        }
      }, now: { time.withLock { $0 } })
    #expect(pressure.isLow() == isLow)
    for step in [Duration.zero, .milliseconds(999)] {
      time.withLock { $0 += step }
      #expect(pressure.isLow() == isLow)
      #expect(reads.withLock { $0 } == 1)
    }
    time.withLock { $0 += .milliseconds(1) }
    #expect(pressure.isLow() == !isLow)
    #expect(reads.withLock { $0 } == 2)
    time.withLock { $0 += .milliseconds(999) }
    #expect(pressure.isLow() == !isLow)
    #expect(reads.withLock { $0 } == 2)
  }

  @Test("The numbers are taken from their files, in the folder of the group")
  func files() {
    let all = [
      "/proc/self/cgroup": "1:cpu:/wrong\n0::/a/b\n",
      "/proc/pressure/memory": "some avg10=7.00\nfull avg10=1.50\n",
      "/sys/fs/cgroup/a/b/memory.current": "1000\n", "/sys/fs/cgroup/a/b/memory.max": "4000\n",
      "/sys/fs/cgroup/a/b/memory.stat": "active_file 900\ninactive_file_x 1\ninactive_file 300\n",
    ]
    typealias Reading = MemoryPressure.Reading
    func reading(_ change: (inout [String: String]) -> Void) -> Reading {
      var files = all
      change(&files)
      return MemoryPressure.reading { files[$0] }
    }
    #expect(reading { _ in } == Reading(used: 700, limit: 4_000, stall: 1.5))
    #expect(reading { $0["/proc/pressure/memory"] = nil } == Reading(used: 700, limit: 4_000, stall: nil))
    #expect(
      reading { $0["/sys/fs/cgroup/a/b/memory.max"] = "max\n" } == Reading(used: 700, limit: nil, stall: 1.5))
    #expect(
      reading { $0["/sys/fs/cgroup/a/b/memory.stat"] = nil } == Reading(used: 1_000, limit: 4_000, stall: 1.5)
    )
    #expect(
      reading { $0["/sys/fs/cgroup/a/b/memory.stat"] = "inactive_file 5000\n" }
        == Reading(used: 0, limit: 4_000, stall: 1.5))
    #expect(
      reading { $0["/sys/fs/cgroup/a/b/memory.current"] = nil }
        == Reading(used: nil, limit: 4_000, stall: 1.5))
    // Without a group, or in its root, the files are at the top.
    for group in [nil, "0::/\n", "1:cpu:/a/b\n"] {
      let reading = reading { files in
        files["/proc/self/cgroup"] = group
        files["/sys/fs/cgroup/memory.current"] = "50\n"
        files["/sys/fs/cgroup/memory.max"] = "60\n"
      }
      #expect(reading == Reading(used: 50, limit: 60, stall: 1.5), "\(group ?? "no group")")
    }
    let hasStall = FileManager.default.contents(atPath: "/proc/pressure/memory") != nil
    #expect((MemoryPressure.readFiles().stall != nil) == hasStall)
  }

  @Test("Each line is found by its whole name")
  func lines() {
    #expect(MemoryPressure.groupPath("0::/a\n0::/b\n") == "/a")
    #expect(MemoryPressure.groupPath("10::/a\n") == nil)
    #expect(MemoryPressure.groupPath("") == nil)
    #expect(MemoryPressure.number(" 12 \n") == 12)
    #expect(MemoryPressure.number("12 13") == nil)
    #expect(MemoryPressure.number("-1") == nil)
    #expect(MemoryPressure.field("file", "filex 1\nfile 2\nfile 3\n") == 2)
    #expect(MemoryPressure.field("file", "file x\n") == nil)
    #expect(MemoryPressure.stall("some avg10=1.00 avg60=2.00\n") == nil)
    #expect(MemoryPressure.stall("full avg60=2.00 avg10=3.25\n") == 3.25)
    #expect(MemoryPressure.stall("full avg60=2.00\n") == nil)
  }
}
