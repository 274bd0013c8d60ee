import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@Suite("Interceptors chained to a request", .timeLimit(.minutes(5)))
struct ChainedInterceptorTests {
  let recorder = Recorder<String>()

  private func spy(_ name: String, retries: Int = 0) -> SpyInterceptor {
    SpyInterceptor(
      name, recorder: recorder, adapt: AdaptationTests.adding(name),
      retry: { _, _, count in count <= retries ? .retry : .doNotRetry })
  }

  @Test("Chained interceptors run last, in the order of their addition") func order() async {
    let fake = FakeTransport(.failure(.connectionLost))
    let request = Session.retained(fake: fake, interceptor: spy("s"))
      .request("http://a.test/", interceptor: spy("r"))
      .adapt(using: spy("1")).interceptor(spy("2")).retry(using: spy("3")).adapt(using: spy("4"))
    #expect(await request.end().error != nil)
    #expect(fake.requests.map { $0.value("X-Trail") } == ["sr124"])
    #expect(
      recorder.values.filter { $0.hasSuffix("retries") } == [
        "s retries", "r retries", "2 retries", "3 retries",
      ]
    )
  }

  @Test("Chained interceptors need no other interceptor") func alone() async {
    let fake = FakeTransport(.failure(.connectionLost))
    let request = Session.retained(fake: fake).request("http://a.test/")
      .adapt(using: spy("a")).retry(using: spy("r", retries: 1))
    #expect(await request.end().error == nil)
    #expect(fake.requests.map { $0.value("X-Trail") } == ["a", "a"])
    #expect(request.retryCount == 1)
  }

  @Test("A request returns its interceptors") func interceptors() {
    let own = spy("r")
    let session = Session.retained(fake: FakeTransport(), interceptor: spy("s"))
    #expect(session.request("http://a.test/").interceptor == nil)
    let request = session.request("http://a.test/", interceptor: own)
    #expect(request.interceptor as? SpyInterceptor === own)
    let row = request.interceptor(spy("1")).interceptor as? Interceptor
    #expect(row?.adapters.compactMap { ($0 as? SpyInterceptor)?.name } == ["r", "1"])
  }

  @Test("An adapter that is added during an attempt applies to the next one") func lateAdapter() async {
    let reached = Latch()
    let gate = Latch()
    let fake = FakeTransport(.failure(.connectionLost).held(by: gate, reached: reached))
    let request = Session.retained(fake: fake).request("http://a.test/")
    async let response = request.end()
    await reached.wait()
    request.adapt(using: spy("late")).retry(using: spy("r", retries: 1))
    gate.open()
    #expect(await response.error == nil)
    #expect(fake.requests.map { $0.value("X-Trail") } == [nil, "late"])
  }

  @Test("A retrier that is added after the end applies to later handlers") func lateRetrier() async {
    struct Item: Decodable, Sendable { let id: Int }
    let fake = FakeTransport(.text("not JSON"), .json(#"{"id": 1}"#))
    let request = Session.retained(fake: fake).request("http://a.test/")
    #expect(await request.end().error == nil)
    request.retry(using: spy("r", retries: 1))
    #expect(fake.requests.count == 1, "adding one sends nothing")
    let item = await withCheckedContinuation { continuation in
      request.responseDecodable(of: Item.self, queue: .global()) { continuation.resume(returning: $0.value) }
    }
    #expect(item?.id == 1)
    #expect(fake.requests.count == 2)
  }
}
