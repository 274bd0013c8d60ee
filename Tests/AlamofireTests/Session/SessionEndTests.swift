import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@testable import Alamofire

@Suite("Requests at the end of a session", .timeLimit(.minutes(5)))
struct SessionEndTests {
  @Test("A hundred eager requests that were not started end once each") func unstartedRequests() async throws
  {
    let server = try HTTPTestServer()
    let errors = Recorder<AFError?>()
    var session: Session? = Session(startRequestsImmediately: false, requestSetup: .eager)
    let requests = (0..<100).compactMap { _ in session?.request(server.url("/get")) }
    for request in requests { request.response(queue: .global()) { errors.add($0.error) } }
    session = nil
    let values = await errors.wait(for: 100)
    #expect(values.allSatisfy { $0?.isSessionDeinitializedError == true })
    #expect(requests.allSatisfy { $0.isFinished })
    #expect(server.requestCount == 0)
    for request in requests { #expect(await request.end().error?.isSessionDeinitializedError == true) }
    #expect(errors.count == 100)
  }

  @Test("Requests in flight end once each") func runningRequests() async throws {
    let server = try HTTPTestServer(routes: .none.adding("/**") { _, _ in .stall })
    let errors = Recorder<AFError?>()
    var session: Session? = Session()
    let requests = (0..<20).compactMap { _ in session?.request(server.url("/")) }
    for request in requests { request.response(queue: .global()) { errors.add($0.error) } }
    for _ in 0..<6 { _ = try await server.takeRequest() }
    weak let released = session
    session = nil
    #expect(await errors.wait(for: 20).allSatisfy { $0?.isSessionDeinitializedError == true })
    #expect(released == nil)
    #expect(requests.allSatisfy { $0.isFinished })
    #expect(errors.count == 20)
  }

  @Test("A request that has ended keeps its outcome when its session ends") func endedRequest() async {
    let request = Session.retained(fake: FakeTransport()).request("http://a.test/")
    #expect(await request.end().error == nil)
    request.core.abandon(request, with: .sessionDeinitialized)
    #expect(request.error == nil && request.isFinished)
    #expect(await request.end().value == Data("ok".utf8), "a later handler gets the same")
  }

  @Test("A request of a released session fails with sessionDeinitialized") func releasedSession() async {
    let fake = FakeTransport()
    let request = Session(fake: fake).request("http://a.test/")
    #expect(await request.end().error?.isSessionDeinitializedError == true)
    let task = Session(fake: fake).request("http://a.test/").serializingString()
    #expect(await task.response.error?.isSessionDeinitializedError == true)
    #expect(fake.requests.isEmpty)
  }

  @Test("The first end of a session is the reason for later requests") func firstEnd() {
    let registry = RunRegistry()
    _ = registry.end(.sessionInvalidated(error: URLError(.badURL)))
    _ = registry.end(.sessionDeinitialized)
    #expect(registry.reasonOfEnd?.isSessionInvalidatedError == true)
    #expect(registry.refuseMore().reason.isSessionInvalidatedError)
  }

  @Test("Requests are active while they run") func activeRequests() async throws {
    let gate = Latch()
    let fake = FakeTransport { _, _ in .ok.held(by: gate) }
    let session = Session.retained(fake: fake)
    let requests = (0..<5).map { _ in session.request("http://a.test/").resume() }
    let lazy = session.request("http://a.test/")
    let seen = Recorder<Set<Request>>()
    session.withAllRequests { seen.add($0) }
    #expect(try await seen.value(0) == Set(requests))
    #expect(!seen.values[0].contains(lazy))
    gate.open()
    for request in requests { _ = await request.end() }
    session.withAllRequests { seen.add($0) }
    #expect(try await seen.value(1).isEmpty)
    #expect(session.core.activeCount == 0)
  }

  @Test("All requests can be cancelled") func cancelAll() async throws {
    let server = try HTTPTestServer(routes: .none.adding("/**") { _, _ in .stall })
    let session = Session.real()
    let errors = Recorder<AFError?>()
    for _ in 0..<10 { session.request(server.url("/")).response(queue: .global()) { errors.add($0.error) } }
    let done = Recorder<Bool>()
    let key = DispatchSpecificKey<Bool>()
    let queue = DispatchQueue(label: "done")
    queue.setSpecific(key: key, value: true)
    session.cancelAllRequests(completingOnQueue: queue) {
      done.add(DispatchQueue.getSpecific(key: key) ?? false)
    }
    #expect(await done.wait(for: 1) == [true])
    #expect(await errors.wait(for: 10).allSatisfy { $0?.isExplicitlyCancelledError == true })
    session.cancelAllRequests()
    #expect(session.core.activeCount == 0, "a request leaves before its handlers are served")
    #expect(await session.request("").end().error?.isInvalidURLError == true)
  }

  @Test("The configuration is a copy") func configuration() {
    let configuration = URLSessionConfiguration.af.default
    configuration.timeoutIntervalForRequest = 7
    let session = Session(configuration: configuration)
    configuration.timeoutIntervalForRequest = 8
    session.sessionConfiguration.timeoutIntervalForRequest = 9
    #expect(session.sessionConfiguration.timeoutIntervalForRequest == 7)
  }

  @Test("The delegate queue is serial and targets the root queue") func delegateQueue() {
    let session = Session(rootQueue: DispatchQueue(label: "root", attributes: .concurrent))
    let queue = session.session.delegateQueue
    #expect(queue.maxConcurrentOperationCount == 1)
    #expect(queue.underlyingQueue === session.rootQueue)
    #expect(queue.name == "root.sessionDelegate")
  }

  @Test("Queues are named after the root queue") func queueNames() {
    let session = Session(rootQueue: DispatchQueue(label: "root", attributes: .concurrent))
    #expect(session.rootQueue.label == "root")
    #expect(session.requestQueue.label == "root.requestQueue")
    #expect(session.serializationQueue.label == "root.serializationQueue")
    let request = session.request("")
    #expect(request.underlyingQueue === session.rootQueue)
    #expect(request.serializationQueue === session.serializationQueue)
  }
}
