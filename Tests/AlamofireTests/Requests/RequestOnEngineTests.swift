import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Lifecycle of a request on the engine", .timeLimit(.minutes(5)))
struct RequestOnEngineTests {
  @Test("Methods can be called repeatedly") func repeatedCalls() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.text("in").held(by: gate))
    let request = Session.real().request(server.url("/"))
    for _ in 0..<100 { request.resume() }
    #expect(request.isResumed)
    await gate.waitUntilReached()
    for _ in 0..<100 { request.suspend() }
    #expect(request.isSuspended)
    for _ in 0..<100 { request.resume() }
    gate.open()
    #expect(await request.end().value == Data("in".utf8))
    #expect(request.isFinished)
    for _ in 0..<100 { request.resume().suspend().cancel() }
    #expect(request.isFinished)
    #expect(request.error == nil)
    #expect(server.requestCount == 1)
  }

  @Test("Threads call methods concurrently and the request ends") func concurrentCalls() async throws {
    let server = try HTTPTestServer()
    let session = Session.real()
    for round in 0..<20 {
      let request = session.request(server.url("/bytes/100000"))
      async let response = request.end()
      await withTaskGroup(of: Void.self) { group in
        for index in 0..<8 {
          group.addTask {
            for _ in 0..<25 { _ = index.isMultiple(of: 2) ? request.suspend() : request.resume() }
          }
        }
      }
      if round.isMultiple(of: 4) {
        await withTaskGroup(of: Void.self) { group in for _ in 0..<4 { group.addTask { request.cancel() } } }
        let error = await response.error
        #expect(error == nil || error?.isExplicitlyCancelledError == true)
      } else {
        request.resume()
        let response = await response
        #expect(response.error == nil, "round \(round)")
        #expect(response.data?.count == 100_000, "round \(round)")
      }
    }
  }

  @Test("Concurrent cancellations end the request once") func cancellations() async throws {
    let server = try HTTPTestServer()
    server.enqueue(.stall)
    let request = Session.real().request(server.url("/"))
    let errors = Recorder<AFError?>()
    request.response(queue: .global()) { errors.add($0.error) }
    _ = try await server.takeRequest()
    await withTaskGroup(of: Void.self) { group in for _ in 0..<100 { group.addTask { request.cancel() } } }
    await errors.wait(for: 1)
    #expect(await request.end().error?.isExplicitlyCancelledError == true)
    #expect(errors.count == 1)
    #expect(request.isCancelled)
  }

  @Test("A body can be suspended in the middle") func suspendedBody() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(Reply(body: .parts(["first ", .gate(gate), .pattern(1_000_000)])))
    let session = Session.real()
    let request = session.request(server.url("/"))
    let counts = Recorder<Int64>()
    request.downloadProgress(queue: .global()) { counts.add($0.completedUnitCount) }
    async let response = request.end()
    await counts.wait(for: 1)
    request.suspend()
    // The loop handles commands in order, so the suspension is done when this request has ended.
    _ = await session.request(server.url("/get")).end()
    gate.open()
    _ = await session.request(server.url("/get")).end()
    #expect(request.isSuspended)
    #expect(request.metrics == nil, "it has not ended")
    request.resume()
    #expect(await response.value??.count == 1_000_006)
  }

  @Test("A request that is suspended before its start is not sent") func suspendedStart() async throws {
    let server = try HTTPTestServer()
    let session = Session.real()
    let request = session.request(server.url("/get")).suspend()
    let results = Recorder<Int?>()
    request.response(queue: .global()) { results.add($0.response?.statusCode) }
    _ = await session.request(server.url("/ip")).end()
    #expect(server.requestCount == 1)
    request.resume()
    #expect(await results.wait(for: 1) == [200])
  }

  @Test(
    "A request that is cancelled before its start is not sent",
    arguments: [Session.RequestSetup.lazy, .eager])
  func cancelledFirst(setup: Session.RequestSetup) async throws {
    let server = try HTTPTestServer()
    let session = Session.real(requestSetup: setup)
    for _ in 0..<20 {
      let request = session.request(server.url("/get"))
      request.cancel()
      request.resume()
      #expect(await request.end().error?.isExplicitlyCancelledError == true)
      #expect(request.isCancelled)
    }
    #expect(server.requestCount == 0)
    #expect(server.connectionCount == 0)
  }

  @Test("A lazy request has no effect before resume") func lazyRequest() async throws {
    let server = try HTTPTestServer()
    let made = Recorder<URLRequest>()
    let session = Session.real(startRequestsImmediately: false)
    let request = session.request(server.url("/get")).onURLRequestCreation(on: .global()) { made.add($0) }
    let results = Recorder<AFError?>()
    request.response(queue: .global()) { results.add($0.error) }
    #expect(request.isInitialized)
    #expect(session.core.activeCount == 0)
    #expect(made.count == 0)
    request.resume()
    await results.wait(for: 1)
    #expect(await made.wait(for: 1).count == 1)
    #expect(results.values.allSatisfy { $0 == nil })
  }

  @Test("An eager request is created and waits") func eagerRequest() async throws {
    let server = try HTTPTestServer()
    let session = Session.real(startRequestsImmediately: false, requestSetup: .eager)
    let request = session.request(server.url("/get"))
    let made = Recorder<URLRequest>()
    request.onURLRequestCreation(on: .global()) { made.add($0) }
    #expect(await made.wait(for: 1).count == 1)
    #expect(request.isInitialized)
    #expect(server.requestCount == 0)
    request.resume()
    #expect(await request.end().error == nil)
    #expect(server.requestCount == 1)
  }

  @Test("The option of the request has priority") func priority() async throws {
    let server = try HTTPTestServer()
    let waiting = Session.real(startRequestsImmediately: false)
    let eager = waiting.request(server.url("/get"), shouldAutomaticallyResume: true)
    #expect(eager.shouldAutomaticallyResume == true)
    #expect(await eager.end().error == nil)
    let starting = Session.real()
    let pausedSession = starting.request(server.url("/get"), shouldAutomaticallyResume: false)
    let results = Recorder<AFError?>()
    pausedSession.response(queue: .global()) { results.add($0.error) }
    #expect(pausedSession.isInitialized)
    pausedSession.resume()
    #expect(await results.wait(for: 1).allSatisfy { $0 == nil })
  }

  @Test("Requests are equal by identity") func equality() {
    let session = Session.retained(fake: FakeTransport(), startRequestsImmediately: false)
    let one = session.request("http://a.test/")
    let two = session.request("http://a.test/")
    #expect(one == one)
    #expect(one != two)
    #expect(Set<Request>([one, two, one]).count == 2)
    #expect(one.id == one.id)
    #expect(one.id != two.id)
  }
}
