import Alamofire
import Foundation
import FoundationNetworking
import Testing

/// The user info that a program attaches to a stored response.
@Suite("The user info of a stored response", .timeLimit(.minutes(5)))
struct StoredUserInfoTests {
  private final class Note: Sendable {}

  private func handler(_ policy: URLCache.StoragePolicy) -> ResponseCacher {
    ResponseCacher(
      behavior: .modify { _, proposed in
        let info: [AnyHashable: Any] = [
          "text": "value", "date": Date(timeIntervalSince1970: 1), "list": [1, 2], 7: "number",
          "object": Note(),
        ]
        return CachedURLResponse(
          response: proposed.response, data: proposed.data, userInfo: info, storagePolicy: policy)
      })
  }

  private func caches() throws -> [(URLCache, TemporaryFolder)] {
    let folders = try (0..<3).map { _ in try TemporaryFolder() }
    return [
      (URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: folders[0]["cache"].path), folders[0]),
      (HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: folders[1].url), folders[1]),
      (HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: folders[2].url), folders[2]),
    ]
  }

  @Test(
    "User info and storage policy are stored",
    arguments: [URLCache.StoragePolicy.allowed, .allowedInMemoryOnly])
  func kept(policy: URLCache.StoragePolicy) async throws {
    for (cache, folder) in try caches() {
      let session = Session.retained(
        fake: FakeTransport(.status(200, "x", headers: [("Cache-Control", "max-age=60")])),
        configuration: .cached(by: cache),
        observers: SessionObservers(cachedResponseHandler: handler(policy)))
      _ = await session.request("http://a.test/").end()
      let request = try URLRequest(url: "http://a.test/", method: .get)
      let stored = try #require(cache.cachedResponse(for: request))
      #expect(stored.storagePolicy == policy)
      #expect(stored.userInfo?["text"] as? String == "value", "\(cache) \(folder)")
      #expect(stored.userInfo?["date"] as? Date == Date(timeIntervalSince1970: 1))
      #expect(stored.userInfo?["list"] as? [Int] == [1, 2])
      // Only property list values with string keys can be serialized.
      #expect(stored.userInfo?[7] == nil)
      #expect(stored.userInfo?["object"] == nil)
    }
  }

  @Test("A file contains the part that can be serialized")
  func file() async throws {
    let folder = try TemporaryFolder()
    let session = Session.retained(
      fake: FakeTransport(.status(200, "x", headers: [("Cache-Control", "max-age=60")])),
      configuration: .cached(
        by: HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: folder.url)),
      observers: SessionObservers(cachedResponseHandler: handler(.allowed)))
    _ = await session.request("http://a.test/").end()
    let request = try URLRequest(url: "http://a.test/", method: .get)
    // Another cache of the same folder has no response in memory.
    #expect(
      await eventually {
        let cache = HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: folder.url)
        return cache.cachedResponse(for: request)?.userInfo?["text"] as? String == "value"
      })
  }
}
