import Alamofire
import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Scenarios
import Synchronization
import Testing

@Suite("HTTPCache as a URLCache", .timeLimit(.minutes(5))) struct HTTPCacheTests {
  private let folder: TemporaryFolder
  private var path: URL { folder["cache"] }

  init() throws { folder = try TemporaryFolder() }

  private func cache(memory: Int = 1 << 20, disk: Int = 1 << 24) -> HTTPCache {
    HTTPCache(memoryCapacity: memory, diskCapacity: disk, directory: path)
  }

  private func request(_ text: String, _ fields: [String: String] = [:]) throws -> URLRequest {
    var request = try URLRequest(url: text, method: .get)
    request.allHTTPHeaderFields = fields
    return request
  }

  private func response(
    _ request: URLRequest, _ body: String, _ fields: [String: String] = [:],
    status: Int = 200, policy: URLCache.StoragePolicy = .allowed, info: [AnyHashable: Any]? = nil
  ) throws -> CachedURLResponse {
    let url = try #require(request.url)
    let head = try #require(
      HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields))
    return CachedURLResponse(response: head, data: Data(body.utf8), userInfo: info, storagePolicy: policy)
  }

  private func store(_ text: String, _ body: String, in cache: URLCache, _ fields: [String: String] = [:])
    throws
  {
    let request = try request(text)
    cache.storeCachedResponse(try response(request, body, fields), for: request)
  }

  private func body(_ text: String, in cache: URLCache, _ fields: [String: String] = [:]) throws -> String? {
    cache.cachedResponse(for: try request(text, fields)).map { String(decoding: $0.data, as: UTF8.self) }
  }

  @Test("The members of URLCache store, find and remove responses") func members() throws {
    let cache: URLCache = cache()
    #expect(cache.memoryCapacity == 1 << 20 && cache.diskCapacity == 1 << 24)
    #expect(cache.currentMemoryUsage == 0 && cache.currentDiskUsage == 0)
    try store("http://a.test/x?y=1", "one", in: cache)
    try store("http://a.test/x?y=2", "two", in: cache)
    #expect(try body("http://a.test/x?y=1", in: cache) == "one")
    #expect(try body("http://a.test/x?y=2#part", in: cache) == "two")
    #expect(try body("https://a.test/x?y=1", in: cache) == nil)
    #expect(cache.currentMemoryUsage > 6 && cache.currentDiskUsage == 8192)
    cache.removeCachedResponse(for: try request("http://a.test/x?y=1"))
    #expect(try body("http://a.test/x?y=1", in: cache) == nil)
    cache.removeAllCachedResponses()
    #expect(try body("http://a.test/x?y=2", in: cache) == nil)
    #expect(cache.currentMemoryUsage == 0 && cache.currentDiskUsage == 0)
  }

  @Test("Removing the response for a request removes those of single sessions, too")
  func responsesOfOneSession()
    async throws
  {
    let fixture = CacheFixture(FakeTransport { _, index in .cacheable("\(index)", "max-age=60") })
    func get(_ path: String, refuses: Bool = true) async -> String {
      let request = fixture.session.request("http://a.test/\(path)")
        .transportOptions { $0.refusesPrivateAddresses = refuses }
      return CacheFixture.Received(await request.end()).description
    }
    for path in ["x", "y"] { _ = await get(path) }
    _ = await get("x", refuses: false)
    fixture.cache.removeCachedResponse(for: try request("http://a.test/x"))
    #expect(await get("x") == "200 3 n")
    #expect(await get("x", refuses: false) == "200 4 n")
    #expect(await get("y") == "200 1 c")
  }

  @Test("A request without the fields of Vary finds the newest variant") func newestVariant() throws {
    for languages in [["en", "de"], ["de", "en"]] {
      let cache = cache(disk: 0)
      for (index, language) in languages.enumerated() {
        let request = try request("http://a.test/x", ["Accept-Language": language])
        let fields = [
          "Vary": "Accept-Language", "ETag": "\"\(language)\"",
          "Date": "Mon, 01 Jan 2024 00:00:0\(index) GMT",
        ]
        cache.storeCachedResponse(try response(request, language, fields), for: request)
      }
      #expect(try body("http://a.test/x", in: cache) == languages.last)
      for language in languages {
        #expect(try body("http://a.test/x", in: cache, ["Accept-Language": language]) == language)
      }
      #expect(try body("http://a.test/x", in: cache, ["Accept-Language": "fr"]) == nil)
    }
  }

  @Test("The members for tasks use the request that was sent last") func tasks() async throws {
    let request = Session.retained(fake: FakeTransport(.redirect(302, to: "/next"))).request(
      "http://a.test/first")
    _ = await request.end()
    let task = try #require(request.task as? URLSessionDataTask)
    let cache: URLCache = cache()
    func found() async -> Data? {
      await withCheckedContinuation { found in
        cache.getCachedResponse(for: task) { found.resume(returning: $0?.data) }
      }
    }
    cache.storeCachedResponse(try response(try self.request("http://a.test/next"), "kept"), for: task)
    #expect(try body("http://a.test/next", in: cache) == "kept")
    #expect(try body("http://a.test/first", in: cache) == nil)
    #expect(await found() == Data("kept".utf8))
    try store("http://a.test/first", "other", in: cache)
    cache.removeCachedResponse(for: task)
    #expect(await found() == nil)
    #expect(try body("http://a.test/first", in: cache) == "other")
  }

  @Test("Only responses to GET are stored") func storableMethods() throws {
    let cache = cache()
    var post = try request("http://a.test/x")
    post.httpMethod = "POST"
    cache.storeCachedResponse(try response(post, "x"), for: post)
    let get = try request("http://a.test/x")
    cache.storeCachedResponse(try response(get, "x", policy: .notAllowed), for: get)
    let other = URLResponse(
      url: try #require(get.url), mimeType: nil, expectedContentLength: 1, textEncodingName: nil)
    cache.storeCachedResponse(CachedURLResponse(response: other, data: Data()), for: get)
    #expect(cache.cachedResponse(for: post) == nil && cache.cachedResponse(for: get) == nil)
    #expect(cache.cachedResponse(for: URLRequest(url: path)) == nil)
    cache.removeCachedResponse(for: URLRequest(url: path))
  }

  @Test("A response with a status that no server sends is not stored", arguments: [Int.min, -1, 99, 1000])
  func impossibleStatus(status: Int) throws {
    let cache = cache()
    let request = try request("http://a.test/x")
    cache.storeCachedResponse(try response(request, "x", status: status), for: request)
    cache.settle()
    #expect(try body("http://a.test/x", in: cache) == nil)
    #expect(cache.currentMemoryUsage == 0 && cache.currentDiskUsage == 0)
    for possible in [100, 999] {
      cache.storeCachedResponse(try response(request, "\(possible)", status: possible), for: request)
      #expect(try body("http://a.test/x", in: cache) == "\(possible)")
    }
  }

  @Test("Variants are found by their fields") func variants() throws {
    let cache = cache()
    for type in ["a/a", "b/b"] {
      let request = try request("http://a.test/x", ["Accept": type])
      cache.storeCachedResponse(try response(request, type, ["Vary": "Accept"]), for: request)
    }
    #expect(try body("http://a.test/x", in: cache, ["Accept": "a/a"]) == "a/a")
    #expect(try body("http://a.test/x", in: cache, ["Accept": "b/b"]) == "b/b")
    #expect(try body("http://a.test/x", in: cache, ["Accept": "c/c"]) == nil)
    // A request without the field gets any variant.
    #expect(try body("http://a.test/x", in: cache) != nil)
  }

  @Test("Another cache with the same folder finds stored responses") func sharedFolder() throws {
    let request = try request("https://a.test/x?y=1")
    let first = cache()
    first.storeCachedResponse(
      try response(request, "body", ["ETag": "\"1\"", "Set-Cookie": "a=b"], info: ["key": [1, 2]]),
      for: request)
    let memory = try self.request("http://a.test/memory")
    first.storeCachedResponse(try response(memory, "m", policy: .allowedInMemoryOnly), for: memory)
    first.settle()
    let second = cache()
    let found = try #require(second.cachedResponse(for: request))
    let head = try #require(found.response as? HTTPURLResponse)
    #expect(head.url == request.url && head.statusCode == 200 && found.data == Data("body".utf8))
    #expect(head.value(forHTTPHeaderField: "ETag") == "\"1\"")
    #expect(found.userInfo?["key"] as? [Int] == [1, 2])
    #expect(second.currentDiskUsage == 4096)
    #expect(second.cachedResponse(for: memory) == nil)
    #expect(try body("http://a.test/memory", in: first) == "m")
    second.removeCachedResponse(for: request)
    second.settle()
    #expect(try FileManager.default.contentsOfDirectory(atPath: path.path).isEmpty)
  }

  @Test("A removal also removes files that another process has written", .steps)
  func filesOfAnotherProcess() throws {
    let (first, second) = (cache(), cache())
    step("a folder that is opened before the other process writes")
    #expect(second.currentDiskUsage == 0)
    for name in ["x", "y", "z"] { try store("http://a.test/\(name)", "of the first", in: first) }
    first.settle()
    step("the removal of one response")
    second.removeCachedResponse(for: try request("http://a.test/x"))
    second.removeCachedResponse(for: try request("http://a.test/y"))
    try store("http://a.test/y", "of the second", in: second)
    second.settle()
    let found = cache()
    #expect(try body("http://a.test/x", in: found) == nil)
    #expect(try body("http://a.test/y", in: found) == "of the second")
    #expect(try body("http://a.test/z", in: found) == "of the first")
    step("the removal by date")
    second.removeCachedResponses(since: .distantFuture)
    #expect(try body("http://a.test/z", in: cache()) == "of the first")
    second.removeCachedResponses(since: .distantPast)
    #expect(try FileManager.default.contentsOfDirectory(atPath: path.path).isEmpty)
  }

  @Test("The least recently used responses are removed first") func leastRecentlyUsed() throws {
    let cache = cache(memory: 0, disk: 40_960)
    for number in 0..<10 { try store("http://a.test/\(number)", "x", in: cache) }
    cache.settle()
    _ = try body("http://a.test/0", in: cache)
    try store("http://a.test/10", "x", in: cache)
    cache.settle()
    #expect(try body("http://a.test/0", in: cache) == "x" && body("http://a.test/1", in: cache) == nil)
    #expect(cache.currentDiskUsage == 40_960)
    cache.diskCapacity = 8_192
    cache.settle()
    #expect(cache.currentDiskUsage <= 8_192)
    #expect(try FileManager.default.contentsOfDirectory(atPath: path.path).count == 2)
  }

  @Test("Responses since a date are removed") func removalByDate() throws {
    let time = Mutex<Int64>(1_000)
    let path = path.path
    let first = HTTPCache(memoryCapacity: 0, diskCapacity: 1 << 20, files: { EntryFolder(path: path) }) {
      time.withLock { $0 }
    }
    try store("http://a.test/old", "x", in: first)
    time.withLock { $0 = 2_000 }
    try store("http://a.test/new", "x", in: first)
    first.settle()
    first.removeCachedResponses(since: Date(timeIntervalSince1970: 1_500))
    #expect(try body("http://a.test/old", in: first) == "x" && body("http://a.test/new", in: first) == nil)
    first.removeCachedResponses(since: .distantFuture)
    first.removeCachedResponses(since: .distantPast)
    #expect(try body("http://a.test/old", in: first) == nil)
  }

  @Test("Corrupt files are removed and foreign files are not") func corruptFiles() throws {
    let first = cache()
    for number in 0..<8 { try store("http://a.test/\(number)", "body \(number)", in: first) }
    first.settle()
    let names = try FileManager.default.contentsOfDirectory(atPath: path.path).sorted()
    #expect(names.count == 8)
    let stranger = path.appendingPathComponent("notes.txt")
    try Data("mine".utf8).write(to: stranger)
    for (index, name) in names.enumerated() {
      let file = path.appendingPathComponent(name)
      var bytes = try Data(contentsOf: file)
      switch index {
      case 0: bytes = Data()
      case 1: bytes = bytes.dropLast()
      case 2: bytes[bytes.count / 2] ^= 1
      case 3: bytes = Data(repeating: 0xFF, count: bytes.count)
      case 4: bytes = try Data(contentsOf: path.appendingPathComponent(names[7]))
      default: continue
      }
      try bytes.write(to: file)
    }
    let second = cache()
    let found = try (0..<8).compactMap { try body("http://a.test/\($0)", in: second) }
    #expect(found.count == 3)
    second.settle()
    #expect(try FileManager.default.contentsOfDirectory(atPath: path.path).count == 4)
    second.removeAllCachedResponses()
    #expect(try Data(contentsOf: stranger) == Data("mine".utf8))
  }

  @Test("A folder that other users can write to is not used") func sharedPermissions() throws {
    try FileManager.default.createDirectory(at: path, withIntermediateDirectories: true)
    try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: path.path)
    let cache = cache()
    try store("http://a.test/x", "x", in: cache)
    cache.settle()
    #expect(try body("http://a.test/x", in: cache) == "x" && cache.diskCapacity == 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: path.path).isEmpty)
  }

  @Test("Files are accessible for their owner only") func permissions() throws {
    let cache = cache()
    try store("http://a.test/x", "x", in: cache)
    cache.settle()
    let name = try #require(try FileManager.default.contentsOfDirectory(atPath: path.path).first)
    for (place, permissions) in [(path, 0o700), (path.appendingPathComponent(name), 0o600)] {
      let found = try FileManager.default.attributesOfItem(atPath: place.path)[.posixPermissions] as? NSNumber
      #expect(found?.intValue == permissions)
    }
  }

  @Test("Without a folder the cache is in memory") func memoryOnly() throws {
    let cache = HTTPCache(memoryCapacity: 100_000, diskCapacity: 1 << 20, directory: nil)
    try store("http://a.test/x", "x", in: cache)
    #expect(try body("http://a.test/x", in: cache) == "x")
    #expect(cache.diskCapacity == 0 && cache.currentDiskUsage == 0)
    cache.memoryCapacity = 0
    #expect(try body("http://a.test/x", in: cache) == nil && cache.memoryCapacity == 0)
  }

  /// Uses two objects for two processes, because they share no state.
  @Test("Two caches can use one folder") func twoCaches() async throws {
    let caches = [cache(memory: 0), cache(memory: 0)]
    await withTaskGroup(of: Void.self) { group in
      for (index, cache) in caches.enumerated() {
        group.addTask {
          for number in 0..<200 {
            try? store("http://a.test/\(number % 20)", "\(index) \(number % 20)", in: cache)
            if number % 7 == 0 { cache.removeCachedResponse(for: URLRequest(url: path)) }
            if let body = try? body("http://a.test/\(number % 20)", in: cache) {
              #expect(body.hasSuffix(" \(number % 20)"))
            }
          }
        }
      }
    }
    for cache in caches { cache.settle() }
    let third = cache()
    for number in 0..<20 {
      #expect(try body("http://a.test/\(number)", in: third)?.hasSuffix(" \(number)") == true)
    }
  }

  @Test("The time of a lookup does not grow with the number of responses", .steps) func lookupTime() throws {
    /// A folder that only has a list of files.
    struct List: EntryFiles {
      let count: Int
      var location: String { "/a list of \(count)" }
      func list() -> [EntryFile]? {
        (0..<count).map { number in
          let key = CacheKey("http://a.test/\(number)")
          let id = EntryID(hash: key?.hash ?? 0, variant: 0)
          return EntryFile(name: id.name, size: 1_000, used: Int64(number))
        }
      }
      func read(_ name: String) -> EntryReading { .missing }
      func write(_ name: String, _ bytes: Data) -> Bool { true }
      func remove(_ name: String) -> Bool { true }
      func touch(_ name: String) {}
    }
    func duration(_ count: Int) throws -> Duration {
      step("\(count) responses")
      let cache = HTTPCache(
        memoryCapacity: 1 << 24, diskCapacity: 1 << 40, files: { List(count: count) }, clock: nil)
      for number in 0..<1_000 { try store("http://b.test/\(number)", "x", in: cache) }
      #expect(cache.currentDiskUsage >= 4_096 * (count + 1_000))
      let keys = (0..<1_000).compactMap { CacheKey("http://b.test/\($0)") }
      #expect(cache.find(keys[5])?.count == 1)
      let clock = ContinuousClock()
      return (0..<5).map { _ in
        clock.measure {
          for key in keys {
            _ = cache.mayHold(key.hash)
            _ = cache.find(key)
          }
        }
      }.min() ?? .zero
    }
    let few = try duration(100)
    let many = try duration(100_000)
    // A linear search would be a hundred times slower. Some growth remains because more memory is accessed.
    #expect(many < few * 10, "\(few) became \(many)")
  }
}
