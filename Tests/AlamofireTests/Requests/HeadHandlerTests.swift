import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@testable import Alamofire

@Suite("The head of a response", .timeLimit(.minutes(5)))
struct HeadHandlerTests {
  typealias Decide = @Sendable (Request.ResponseDisposition) -> Void

  @Test("An allowed response is delivered", arguments: [0, 10, 500_000])
  func allowed(size: Int) async throws {
    let server = try HTTPTestServer()
    let request = Session.real().request(server.url("/bytes/\(size)"))
    let codes = Recorder<Int>()
    request.onHTTPResponse(on: .global()) { response, decide in
      codes.add(response.statusCode)
      decide(.allow)
      decide(.cancel)
    }
    let response = await request.end()
    #expect(response.error == nil)
    #expect(response.data?.count ?? 0 == size)
    #expect(codes.values == [200])
  }

  @Test("A cancelled response ends the request as cancelled", arguments: [0, 10, 500_000])
  func cancelled(size: Int) async throws {
    let server = try HTTPTestServer()
    let request = Session.real().request(server.url("/bytes/\(size)"))
    request.onHTTPResponse(on: .global()) { _, decide in decide(.cancel) }
    let response = await request.end()
    #expect(response.error?.isExplicitlyCancelledError == true)
    #expect(request.isCancelled)
  }

  @Test("A completion that is released without a call allows the response", arguments: [0, 10, 500_000])
  func forgotten(size: Int) async throws {
    let server = try HTTPTestServer()
    let request = Session.real().request(server.url("/bytes/\(size)"))
    request.onHTTPResponse(on: .global()) { (_: HTTPURLResponse, _: @escaping Decide) in }
    let response = await request.end()
    #expect(response.error == nil)
    #expect(response.data?.count ?? 0 == size)
  }

  @Test("A head that arrives after a cancellation is not decided about") func afterCancellation() async {
    let (gate, reached) = (Latch(), Latch())
    let fake = FakeTransport(FakeReply.ok.held(by: gate, reached: reached))
    let request = Session.retained(fake: fake).request("http://a.test/")
    let decisions = Recorder<Decide>()
    request.onHTTPResponse(on: .global()) { _, decide in decisions.add(decide) }
    request.resume()
    await reached.wait()
    request.cancel()
    // The transfer had read the head before it was cancelled.
    #expect(request.core.headReceived(ResponseHead(status: 200)) == .proceed)
    #expect(!request.core.park(at: .headDecision) {})
    gate.open()
    #expect(await request.end().error?.isExplicitlyCancelledError == true)
    #expect(decisions.count == 0)
  }

  @Test("The body is not read before the decision") func body() async throws {
    let decisions = Recorder<Decide>()
    let fake = FakeTransport(.text("body"))
    let request = Session.retained(fake: fake).request("http://a.test/")
    let counts = Recorder<Int64>()
    request.downloadProgress(queue: .global()) { counts.add($0.completedUnitCount) }
    request.onHTTPResponse(on: .global()) { _, decide in decisions.add(decide) }
    async let response = request.end()
    let decide = try await decisions.value(0)
    #expect(counts.count == 0)
    request.suspend()
    decide(.allow)
    #expect(fake.controls[0].isClosed, "it is still suspended")
    #expect(counts.count == 0)
    request.resume()
    #expect(await response.value == Data("body".utf8))
  }

  @Test("Resuming the request does not decide") func resume() async throws {
    let decisions = Recorder<Decide>()
    let fake = FakeTransport(.text("body"))
    let request = Session.retained(fake: fake).request("http://a.test/")
    request.onHTTPResponse(on: .global()) { _, decide in decisions.add(decide) }
    async let response = request.end()
    let decide = try await decisions.value(0)
    request.suspend()
    request.resume()
    #expect(fake.controls[0].isClosed)
    decide(.allow)
    #expect(await response.error == nil)
  }

  @Test("Cancelling the request ends the wait for a decision") func cancel() async throws {
    let server = try HTTPTestServer()
    for size in [0, 10, 500_000] {
      let decisions = Recorder<Decide>()
      let request = Session.real().request(server.url("/bytes/\(size)"))
      request.onHTTPResponse(on: .global()) { _, decide in decisions.add(decide) }
      async let response = request.end()
      await decisions.wait(for: 1)
      request.cancel()
      #expect(await response.error?.isExplicitlyCancelledError == true)
    }
  }

  @Test("A decision about the head of an earlier attempt has no effect", arguments: [true, false])
  func outdatedDecision(allows: Bool) async {
    let broken = FakeReply(failure: TransportFailure(.connectionLost, "lost"))
    let fake = FakeTransport(broken, .text("body"))
    let decisions = Recorder<Decide>()
    let request = Session.retained(fake: fake, interceptor: SpyInterceptor(retries: 1)).request(
      "http://a.test/")
    request.onHTTPResponse(on: .global()) { _, decide in decisions.add(decide) }
    async let response = request.end()
    let decides = await decisions.wait(for: 2)
    decides[0](allows ? .allow : .cancel)
    #expect(!request.isCancelled)
    request.suspend().resume()
    #expect(fake.controls[1].isClosed)
    decides[1](.allow)
    #expect(await response.value == Data("body".utf8))
  }

  @Test("The last handler is called for each attempt") func attempts() async {
    let fake = FakeTransport(.status(500), .status(200))
    let codes = Recorder<Int>()
    let request = Session.retained(fake: fake, interceptor: SpyInterceptor(retries: 1)).request(
      "http://a.test/"
    )
    .validate()
    request.onHTTPResponse(on: .global()) { (_: HTTPURLResponse) in
      Issue.record("an earlier handler was called")
    }
    request.onHTTPResponse(on: .global()) { (response: HTTPURLResponse) in codes.add(response.statusCode) }
    #expect(await request.end().error == nil)
    #expect(await codes.wait(for: 2) == [500, 200])
  }

  @Test("The body waits until the handler that decides nothing has returned", arguments: [false, true])
  func plainHandler(isStream: Bool) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("body"))
    let (order, gate) = (Recorder<String>(), DispatchSemaphore(value: 0))
    let handle: @Sendable (HTTPURLResponse) -> Void = { _ in
      order.add("head")
      gate.wait()
      order.add("returned")
    }
    let queue = DispatchQueue(label: "test.body")
    let session = Session.real()
    if isStream {
      session.streamRequest(server.url("/")).onHTTPResponse(on: .global(), perform: handle)
        .responseStream(on: queue) { order.add($0.value == nil ? "end" : "chunk") }
    } else {
      session.request(server.url("/")).onHTTPResponse(on: .global(), perform: handle)
        .response(queue: queue) { _ in order.add("end") }
    }
    await order.wait(for: 1)
    // The whole response was sent, and would be delivered if it did not wait.
    _ = await eventually { server.requestCount == 1 }
    queue.sync {}
    #expect(order.values == ["head"])
    gate.signal()
    let all = isStream ? ["head", "returned", "chunk", "end"] : ["head", "returned", "end"]
    #expect(await order.wait(for: all.count) == all)
  }
}
