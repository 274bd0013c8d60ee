import Testing

@testable import HTTPSystem

@Suite("Cache of revocation lists") struct RevocationCacheTests {
  @Test("A list that replaces one of the same URL does not count twice")
  func replacement() {
    let cache = RevocationCache()
    cache.keep([], at: "http://a.test/list", size: 10 << 20, until: 100)
    cache.keep([], at: "http://b.test/list", size: 20 << 20, until: 100)
    cache.keep([], at: "http://b.test/list", size: 20 << 20, until: 200)
    #expect(cache.list(at: "http://a.test/list", at: 50) != nil)
    #expect(cache.list(at: "http://b.test/list", at: 150) != nil)
    #expect(cache.list(at: "http://a.test/list", at: 101) == nil)
    cache.keep([], at: "http://c.test/list", size: 3 << 20, until: 100)
    #expect(cache.list(at: "http://a.test/list", at: 50) == nil)
    #expect(cache.list(at: "http://c.test/list", at: 50) != nil)
  }
}
