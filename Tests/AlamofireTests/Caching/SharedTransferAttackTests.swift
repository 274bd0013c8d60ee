import Alamofire
import Foundation
import FoundationNetworking
import HTTPWire
import Testing

/// Requests that must not share a transfer.
@Suite("Attacks on shared transfers", .timeLimit(.minutes(5))) struct SharedTransferAttackTests {
  private static func sharing(_ change: (inout TransportOptions) -> Void = { _ in }) -> TransportOptions {
    var options = TransportOptions()
    options.sharesIdenticalRequests = true
    change(&options)
    return options
  }

  /// Makes a session whose first response waits until the gate is open. Each response is the index of its request.
  private func fixture() -> (Session, FakeTransport, gate: Latch, reached: Latch) {
    let (gate, reached) = (Latch(), Latch())
    let fake = FakeTransport(FakeReply.text("0").held(by: gate, reached: reached)) { _, index in
      .text("\(index)")
    }
    return (Session.retained(fake: fake, options: Self.sharing()), fake, gate, reached)
  }

  @Test("A request after an unsafe one does not share an earlier transfer") func unsafeRequest() async {
    let (session, fake, gate, reached) = fixture()
    async let early = session.request("http://a.test/x").end()
    await reached.wait()
    #expect(await session.request("http://a.test/x", method: .post).end().data == Data("1".utf8))
    async let late = session.request("http://a.test/x").end()
    // It is sent, or waits with the earlier one.
    let shared = session.core.sharedTransfers
    #expect(await eventually { fake.requests.count == 3 || shared.memberCount == 2 })
    gate.open()
    #expect(await early.data == Data("0".utf8))
    #expect(await late.data == Data("2".utf8))
    #expect(fake.requests.count == 3 && session.core.sharedTransfers.memberCount == 0)
  }

  @Test("A request after the head of an unsafe one does not share an earlier transfer") func unsafeHead()
    async
  {
    let (session, fake, gate, reached) = fixture()
    async let early = session.request("http://a.test/x").end()
    await reached.wait()
    let post = OpenPost(session)
    async let posted = post.request.end()
    await post.headReceived()
    async let late = session.request("http://a.test/x").end()
    // It is sent, or waits with the earlier one.
    let shared = session.core.sharedTransfers
    #expect(await eventually { fake.requests.count == 3 || shared.memberCount == 2 })
    gate.open()
    #expect(await early.data == Data("0".utf8))
    #expect(await late.data == Data("2".utf8), "the body of the POST is still open")
    post.finish()
    #expect(await posted.data == Data("1".utf8))
  }

  @Test("A request after the end of an unsafe one does not share a transfer that began before")
  func unsafeEnd() async {
    let (gate, reached) = (Latch(), Latch())
    let fake = FakeTransport(.text("0"), FakeReply.text("1").held(by: gate, reached: reached)) { _, index in
      .text("\(index)")
    }
    let session = Session.retained(fake: fake, options: Self.sharing())
    let post = OpenPost(session)
    async let posted = post.request.end()
    await post.headReceived()
    async let early = session.request("http://a.test/x").end()
    await reached.wait()
    post.finish()
    #expect(await posted.data == Data("0".utf8))
    async let late = session.request("http://a.test/x").end()
    // It is sent, or waits with the earlier one.
    let shared = session.core.sharedTransfers
    #expect(await eventually { fake.requests.count == 3 || shared.memberCount == 2 })
    gate.open()
    #expect(await early.data == Data("1".utf8))
    #expect(await late.data == Data("2".utf8), "the POST may have changed the resource until its end")
  }

  @Test("A request after a removal from the cache does not share an earlier transfer") func removal() async {
    let (gate, reached) = (Latch(), Latch())
    let fake = FakeTransport(FakeReply.text("0").held(by: gate, reached: reached)) { _, index in
      .text("\(index)")
    }
    let cache = HTTPCache(memoryCapacity: 1 << 20, diskCapacity: 0, directory: nil)
    let session = Session.retained(
      fake: fake, configuration: .cached(by: cache), options: Self.sharing())
    async let early = session.request("http://a.test/x").end()
    await reached.wait()
    cache.removeAllCachedResponses()
    async let late = session.request("http://a.test/x").end()
    // It is sent, or waits with the earlier one.
    let shared = session.core.sharedTransfers
    #expect(await eventually { fake.requests.count == 2 || shared.memberCount == 2 })
    gate.open()
    #expect(await early.data == Data("0".utf8))
    #expect(await late.data == Data("1".utf8))
  }

  @Test(
    "Requests with different credentials, fields, options or cookies do not share",
    arguments: ["credential", "letters", "options", "cookies"])
  func differences(difference: String) async throws {
    let (session, fake, gate, reached) = fixture()
    var url = "http://a.test/x"
    var (headers, others) = (HTTPHeaders(), HTTPHeaders())
    switch difference {
    case "credential":
      headers = [.authorization(bearerToken: "a")]
      others = [.authorization(bearerToken: "b")]
    case "letters":
      // Both look the same, and are equal strings in Swift.
      headers = ["X-User": "\u{E9}"]
      others = ["X-User": "e\u{301}"]
    case "cookies":
      url = "http://cookies.test/x"
      headers = ["Cookie": "a=1"]
    default: break
    }
    let (address, first) = (url, headers)
    async let one = session.request(address, headers: first).end()
    await reached.wait()
    let second = session.request(url, headers: others)
    if difference == "options" { second.transportOptions { $0.localInterface = "lo" } }
    #expect(await second.end().data == Data("1".utf8))
    gate.open()
    #expect(await one.data == Data("0".utf8) && fake.requests.count == 2)
  }

  @Test("Each request decides about a retry of the shared transfer") func retry() async {
    let (gate, reached) = (Latch(), Latch())
    let fake = FakeTransport(FakeReply.failure(.connectionLost).held(by: gate, reached: reached))
    let session = Session.retained(fake: fake, options: Self.sharing())
    async let plain = session.request("http://a.test/x").end()
    await reached.wait()
    let retrying = session.request(
      "http://a.test/x", interceptor: RetryPolicy(exponentialBackoffScale: 0))
    async let second = retrying.end()
    #expect(await eventually { session.core.sharedTransfers.memberCount == 2 })
    gate.open()
    #expect(await plain.error != nil)
    #expect(await second.data == Data("ok".utf8) && retrying.retryCount == 1 && fake.requests.count == 2)
  }
}
