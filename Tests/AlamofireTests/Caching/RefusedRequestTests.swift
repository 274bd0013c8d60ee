import Alamofire
import HTTPWire
import Testing

@Suite("The cache and refused requests", .timeLimit(.minutes(5))) struct RefusedRequestTests {
  @Test(
    "A response that concerns its own request or connection does not answer another request",
    arguments: [407, 412, 417, 421, 428, 429, 431, 511])
  func failedPrecondition(status: Int) async {
    let fixture = CacheFixture(
      FakeTransport { request, _ in
        request.value("If-Match") == nil
          ? .cacheable("one", "max-age=600")
          : .status(status, "no", headers: [("Cache-Control", "public, max-age=600")])
      })
    #expect(await fixture.get().description == "200 one n")
    #expect(await fixture.get(headers: ["If-Match": "\"1\""]).description == "\(status) no n")
    #expect(await fixture.get().description == "200 one c", "the \(status) must leave the stored response")
    #expect(await fixture.get("y", headers: ["If-Match": "\"1\""]).description == "\(status) no n")
    #expect(await fixture.get("y").description == "200 one n", "the \(status) must not be stored")
  }

  @Test(
    "Such a response to a HEAD does not remove the stored response of a GET",
    arguments: [401, 407, 412, 417, 421, 428, 429, 431])
  func refusedHead(status: Int) async {
    let fixture = CacheFixture(
      FakeTransport { request, _ in
        request.method == "GET" ? .cacheable("one", "public, max-age=600") : .status(status)
      })
    #expect(await fixture.get().description == "200 one n")
    let headers: HTTPHeaders = ["Authorization": "Bearer old", "If-Match": "\"1\""]
    let refused = await fixture.get(headers: headers, method: .head, policy: .reloadIgnoringLocalCacheData)
    #expect(refused.status == status)
    #expect(await fixture.get().description == "200 one c", "the \(status) must leave the stored response")
  }

  @Test(
    "A HEAD that fails or is redirected does not remove the stored response of a GET",
    arguments: [302, 400, 401, 403, 405, 408, 425])
  func unsupportedHead(status: Int) async {
    let fixture = CacheFixture(
      FakeTransport { request, _ in
        request.method == "GET" ? .cacheable("one", "public, max-age=600") : .status(status)
      })
    #expect(await fixture.get().description == "200 one n")
    #expect(await fixture.get(method: .head, policy: .reloadIgnoringLocalCacheData).status == status)
    #expect(await fixture.get().description == "200 one c", "the \(status) must leave the stored response")
  }

  @Test("A HEAD still removes a response that is gone", arguments: [404, 410])
  func removingHead(status: Int) async {
    let fixture = CacheFixture(
      FakeTransport { request, index in
        request.method == "GET" ? .cacheable("\(index)", "max-age=600") : .status(status)
      })
    #expect(await fixture.get().description == "200 0 n")
    #expect(await fixture.get(method: .head, policy: .reloadIgnoringLocalCacheData).status == status)
    #expect(await fixture.get().description == "200 2 n", "the \(status) concerns every request")
  }
}
