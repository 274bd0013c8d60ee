import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

@testable import Alamofire

/// Runs that wait hold no task. The request, or the transport, has them.
@Suite("Runs that wait", .timeLimit(.minutes(2)))
struct GateTests {
  /// The kinds of requests that send bytes or receive them.
  enum Kind: CaseIterable { case data, upload, download, stream }

  private let gate = Gate()
  /// Monitors of notifications become active while any test observes one.
  private let session = Session.real(configuration: .isolated, eventMonitors: [])

  private func request(_ kind: Kind, _ url: String) -> Request {
    switch kind {
    case .data: session.request(url).response { _ in }
    case .upload: session.upload(Data("body".utf8), to: url).response { _ in }
    case .download: session.download(url).response { _ in }
    case .stream: session.streamRequest(url).responseStream { _ in }
    }
  }

  private func hasTask(_ request: Request) -> Bool { request.core.state.withLock { $0.run.task != nil } }

  /// Waits for the end of a request, and removes the file of a download.
  private func isFinished(_ request: Request) async -> Bool {
    guard await eventually({ request.isFinished }) else { return false }
    if let file = (request as? DownloadRequest)?.fileURL { try? FileManager.default.removeItem(at: file) }
    return true
  }

  @Test("No kind of request needs a task while its server holds the response", arguments: Kind.allCases)
  func transfer(kind: Kind) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("ok").held(by: gate))
    let request = request(kind, server.url("/"))
    #expect(await eventually { server.requestCount == 1 })
    #expect(!hasTask(request), "a task waits for the transfer of a \(kind) request")
    gate.open()
    #expect(await isFinished(request))
    #expect(request.response?.statusCode == 200)
  }

  @Test("A suspended request needs no task, and is sent once", arguments: Kind.allCases)
  func suspension(kind: Kind) async throws {
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.text("ok"))
    let session = Session.real(
      configuration: .isolated, startRequestsImmediately: false, requestSetup: .eager, eventMonitors: [])
    let request: Request =
      switch kind {
      case .data: session.request(server.url("/")).response { _ in }
      case .upload: session.upload(Data("body".utf8), to: server.url("/")).response { _ in }
      case .download: session.download(server.url("/")).response { _ in }
      case .stream: session.streamRequest(server.url("/")).responseStream { _ in }
      }
    #expect(await eventually { request.core.state.withLock { $0.lifecycle.run } == .gated })
    #expect(!hasTask(request))
    request.resume()
    request.resume()
    #expect(await isFinished(request))
    #expect(server.requestCount == 1)
  }

  @Test("A run does not end before monitors are notified of a change of its state")
  func changeAtTheEnd() async {
    let (reached, gate) = (Latch(), Latch())
    let session = Session.retained(
      fake: FakeTransport(.text("ok").held(by: gate, reached: reached)),
      observers: SessionObservers(eventMonitors: []))
    let request = session.request("http://a.test/").response { _ in }
    await reached.wait()
    // As another thread does that changes the state and has not notified monitors yet.
    request.core.state.withLock { $0.observed.beginNotification() }
    gate.open()
    let parked = Recorder<@Sendable () -> Void>()
    _ = await eventually {
      if let proceed = request.core.state.withLock({ $0.run.leave(.notifications) }) { parked.add(proceed) }
      return parked.count > 0 || request.isFinished
    }
    #expect(parked.count == 1, "the run did not wait for the notification")
    #expect(!request.isFinished)
    request.core.state.withLock { _ = $0.observed.endNotification() }
    for proceed in parked.values { proceed() }
    #expect(await eventually { request.isFinished })
    #expect(request.response?.statusCode == 200)
  }

  @Test("A hop is sent when the cookies of the response before it are stored") func cookies() async throws {
    let bench = try CookieFixture(FakeTransport(FakeReply.redirect(302, to: "/next").setting("a=1")))
    let cookies = try #require(bench.session.core.cookies)
    let url = try #require(URL(string: "http://other.test/"))
    let origin = try #require(Origin(url: url.absoluteString))
    let earlier = WireRequest(url: url.absoluteString, origin: origin, profile: ConnectionProfile())
    // The queue on which cookies are stored waits from here on.
    let isReleased = DispatchSemaphore(value: 0)
    repeat {
      cookies.store([Array("b=2".utf8)], of: earlier, for: URLRequest(url: url))
    } while !cookies.stored({ isReleased.wait() })
    // Until then, a request would read the cookies on that queue.
    #expect(await eventually { !cookies.areBeingStored })
    let request = bench.session.request("http://a.test/")
    async let response = request.end()
    let isWaiting = await eventually {
      let waits = cookies.areBeingStored && !request.core.storesCookies.load(ordering: .acquiring)
      return waits && bench.fake.requests.count == 1 || bench.fake.requests.count == 2
    }
    #expect(isWaiting)
    isReleased.signal()
    #expect(await response.error == nil)
    #expect(bench.sent == [nil, "a=1"])
  }

  // MARK: The position of a waiting run

  @Test(
    "A cancellation continues a run that waits until it is resumed, or for a decision",
    arguments: Alamofire.Gate.allCases)
  func cancellation(gate: Alamofire.Gate) {
    var run = ActiveRun()
    let count = Mutex(0)
    run.park(at: gate) { count.withLock { $0 += 1 } }
    run.takeCancellation().perform()
    run.takeCancellation().perform()
    let isContinued = gate == .resumed || gate == .headDecision
    #expect(count.withLock { $0 } == (isContinued ? 1 : 0))
    #expect((run.leave(gate) == nil) == isContinued, "a run at another gate waits on")
  }

  @Test("Another gate does not continue a run, and its own does so once", arguments: Alamofire.Gate.allCases)
  func leaving(gate: Alamofire.Gate) {
    var run = ActiveRun()
    run.park(at: gate) {}
    for other in Alamofire.Gate.allCases where other != gate { #expect(run.leave(other) == nil) }
    #expect(run.leave(gate) != nil)
    #expect(run.leave(gate) == nil)
  }

  @Test("A run is not parked at a gate that is open")
  func openGates() {
    let request = Session.retained(fake: FakeTransport()).request("http://a.test/")
    request.core.state.withLock { _ = $0.lifecycle.resumed() }
    for gate in Alamofire.Gate.allCases {
      #expect(!request.core.park(at: gate) { Issue.record("continued at \(gate)") })
    }
  }
}
