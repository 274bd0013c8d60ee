import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Scenarios
import Testing

@Suite("A cache whose process is killed", .timeLimit(.minutes(10))) struct KilledCacheTests {
  private func store(_ text: String, _ body: String, in cache: URLCache) throws {
    let request = try URLRequest(url: text, method: .get)
    let url = try #require(request.url)
    let head = try #require(HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: [:]))
    cache.storeCachedResponse(CachedURLResponse(response: head, data: Data(body.utf8)), for: request)
  }

  private func body(_ text: String, in cache: URLCache) throws -> String? {
    cache.cachedResponse(for: try URLRequest(url: text, method: .get)).map {
      String(decoding: $0.data, as: UTF8.self)
    }
  }

  @Test("A process that is killed while it writes loses no earlier response", .steps) func killedWriter()
    async throws
  {
    let folder = try TemporaryFolder()
    let path = folder["cache"]
    func cache(memory: Int = 1 << 20) -> HTTPCache {
      HTTPCache(memoryCapacity: memory, diskCapacity: 1_000_000_000, directory: path)
    }
    step("responses before")
    let before = cache()
    for number in 0..<50 {
      try store("http://a.test/kept/\(number)", "kept \(number)", in: before)
      try store("http://a.test/old/\(number)", String(repeating: "z", count: 20_000), in: before)
    }
    before.settle()
    for seed in 0..<100 {
      step("kill \(seed)")
      let child = try ChildProcess(
        ["cache", path.path, "\(seed)"], folder: folder.url, complaints: folder["complaints"])
      let end = await child.end()
      #expect(end == .killed, "\(child.said)")
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: path.path)
    #expect(names.count > 100)
    step("responses after")
    let after = cache(memory: 0)
    for number in 0..<50 {
      #expect(try body("http://a.test/kept/\(number)", in: after) == "kept \(number)")
      let replaced = try #require(try body("http://a.test/old/\(number)", in: after))
      #expect(replaced.utf8.count >= 20_000 && Set(replaced.utf8).count == 1)
    }
    step("files")
    // Each file with the name of an entry is complete.
    for name in names where EntryID(name: name) != nil {
      #expect(StoredResponse.decode(try Data(contentsOf: path.appendingPathComponent(name))) != nil)
    }
  }
}
