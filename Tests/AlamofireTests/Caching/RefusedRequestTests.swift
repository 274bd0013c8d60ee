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
}
