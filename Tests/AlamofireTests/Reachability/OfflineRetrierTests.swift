import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Synchronization
import Testing

@testable import Alamofire

@Suite(.timeLimit(.minutes(5))) struct OfflineRetrierTests {
  private let monitors = Recorder<ScriptedMonitor>()

  private func retrier() -> OfflineRetrier {
    OfflineRetrier { [monitors] in
      let monitor = ScriptedMonitor()
      monitors.add(monitor)
      return monitor
    }
  }

  private static func offline() -> FakeReply { .failure(.notConnected) }

  @Test("Requests are retried when the network is available again") func retry() async {
    let reached = [Latch(), Latch()]
    let fake = FakeTransport { _, index in
      guard index < 2 else { return .text("ok") }
      reached[index].open()
      return Self.offline()
    }
    let session = Session.retained(fake: fake, interceptor: retrier())
    async let first = session.request("https://example.com/1").serializingString().response
    async let second = session.request("https://example.com/2").serializingString().response
    await monitors.wait(for: 1)
    for latch in reached { await latch.wait() }
    // Both requests wait once the second one has called the retrier. A second monitor would start another wait.
    let monitor = monitors.values[0]
    await monitor.started.wait(for: 1)
    let answers = Task { [monitors] in
      while !Task.isCancelled {
        for monitor in monitors.values { monitor.end(.pathAvailable) }
        await Task.yield()
      }
    }
    #expect(await first.value == "ok")
    #expect(await second.value == "ok")
    answers.cancel()
    #expect(fake.requests.count == 4)
  }

  @Test("A request that has waited in vain does not wait again, and another one does") func givenUp()
    async throws
  {
    let retrier = retrier()
    let session = Session.retained(fake: FakeTransport())
    let requests = (0..<200).map { session.request("https://example.com/\($0)") }
    let error = AFError.sessionTaskFailed(error: URLError(.notConnectedToInternet))
    let answers = Recorder<String>()
    for request in requests { retrier.retry(request, for: session, dueTo: error) { answers.add("\($0)") } }
    await monitors.values[0].started.wait(for: 1)
    monitors.values[0].end(.timeout)
    await answers.wait(for: 200)
    for request in requests { retrier.retry(request, for: session, dueTo: error) { answers.add("\($0)") } }
    #expect(answers.count == 400 && monitors.count == 1)
    let other = session.request("https://example.com/other")
    retrier.retry(other, for: session, dueTo: error) { answers.add("\($0)") }
    #expect(answers.count == 400 && monitors.count == 2)
  }

  @Test("One monitor serves all waiting requests") func oneMonitor() async throws {
    let retrier = retrier()
    let session = Session.retained(fake: FakeTransport())
    let request = session.request("https://example.com/")
    let answers = Recorder<String>()
    let error = AFError.sessionTaskFailed(error: URLError(.notConnectedToInternet))
    for _ in 0..<3 {
      retrier.retry(request, for: session, dueTo: error) { answers.add("\($0)") }
    }
    #expect(monitors.count == 1)
    #expect(answers.count == 0)
    monitors.values[0].end(.pathAvailable)
    #expect(answers.values == ["retry", "retry", "retry"])
    #expect(monitors.values[0].isStopped)
    retrier.retry(request, for: session, dueTo: error) { answers.add("\($0)") }
    #expect(monitors.count == 2)
    // The first monitor no longer has an effect.
    monitors.values[0].end(.timeout)
    #expect(answers.count == 3)
    monitors.values[1].end(.timeout)
    #expect(answers.values.last == "doNotRetry")
  }

  @Test("After the timeout the error is the result") func timeout() async {
    let fake = FakeTransport(Self.offline())
    let session = Session.retained(fake: fake, interceptor: retrier())
    let request = session.request("https://example.com/")
    async let response = request.serializingString().response
    await monitors.wait(for: 1)
    await monitors.values[0].started.wait(for: 1)
    monitors.values[0].end(.timeout)
    let error = await response.error
    #expect((error?.underlyingError as? URLError)?.code == .notConnectedToInternet)
    #expect(request.retryCount == 0)
  }

  @Test("A later attempt waits again after a timeout") func laterAttempt() async {
    let fake = FakeTransport(Self.offline(), Self.offline())
    let both = Interceptor(interceptors: [retrier(), SpyInterceptor(retries: 1)])
    let request = Session.retained(fake: fake, interceptor: both).request("https://example.com/")
    let ends = Task { [monitors] in
      for (index, result) in [PathResult.timeout, .pathAvailable].enumerated() {
        let monitor = try await monitors.value(index)
        await monitor.started.wait(for: 1)
        monitor.end(result)
      }
    }
    #expect(await request.serializingString().response.value == "ok")
    ends.cancel()
    #expect(monitors.count == 2 && fake.requests.count == 3)
  }

  /// Makes the network available to the first request that waits.
  private func endFirstWait() -> Task<Void, any Error> {
    Task { [monitors] in
      let monitor = try await monitors.value(0)
      await monitor.started.wait(for: 1)
      monitor.end(.pathAvailable)
    }
  }

  @Test(
    "A request that a server may have performed before its redirect is not sent again",
    arguments: [("POST", 301), ("POST", 302), ("POST", 303), ("PATCH", 303)])
  func performed(method: String, status: Int) async {
    let fake = FakeTransport(.redirect(status, to: "https://b.test/result"), Self.offline())
    let session = Session.retained(fake: fake, interceptor: retrier())
    let request = session.request("https://a.test/", method: HTTPMethod(rawValue: method))
    let ending = endFirstWait()
    let error = await request.serializingString().response.error
    ending.cancel()
    #expect((error?.underlyingError as? URLError)?.code == .notConnectedToInternet)
    #expect(fake.requests.map(\.method) == [method, "GET"])
    #expect(monitors.count == 0)
  }

  @Test(
    "A request is sent again after a redirect if its method is kept, or if it may be repeated",
    arguments: [("POST", 307, "POST"), ("POST", 308, "POST"), ("GET", 302, "GET"), ("PUT", 303, "GET")])
  func redirected(method: String, status: Int, next: String) async {
    let fake = FakeTransport(.redirect(status, to: "https://b.test/result"), Self.offline())
    let session = Session.retained(fake: fake, interceptor: retrier())
    let request = session.request("https://a.test/", method: HTTPMethod(rawValue: method))
    let ending = endFirstWait()
    #expect(await request.serializingString().response.value == "ok")
    ending.cancel()
    #expect(fake.requests.map(\.method) == [method, next, method])
  }

  @Test("Other errors are not delayed") func otherErrors() async {
    let fake = FakeTransport(.failure(.timedOut))
    let session = Session.retained(fake: fake, interceptor: retrier())
    let error = await session.request("https://example.com/").serializingString().response.error
    #expect((error?.underlyingError as? URLError)?.code == .timedOut)
    #expect(monitors.count == 0)
  }

  @Test("A released retrier stops its monitor and releases its completions") func release() async throws {
    let session = Session.retained(fake: FakeTransport())
    let request = session.request("https://example.com/")
    var retrier: OfflineRetrier? = retrier()
    weak let weakly = retrier
    let answers = Recorder<String>()
    retrier?.retry(request, for: session, dueTo: URLError(.notConnectedToInternet)) {
      answers.add("\($0)")
    }
    retrier = nil
    #expect(weakly == nil)
    #expect(monitors.values[0].isStopped)
    monitors.values[0].end(.pathAvailable)
    #expect(answers.count == 0)
  }

  /// Calls a closure when it is released.
  private final class Probe: Sendable {
    let onRelease: @Sendable () -> Void

    init(_ onRelease: @escaping @Sendable () -> Void) { self.onRelease = onRelease }

    deinit { onRelease() }
  }

  @Test("A request that the retrier releases last is not released under its lock") func lastReference() {
    let retrier = retrier()
    let session = Session.retained(fake: FakeTransport())
    let error = URLError(.notConnectedToInternet)
    func endWait(_ result: PathResult, of requests: [DataRequest]) {
      for request in requests { retrier.retry(request, for: session, dueTo: error) { _ in } }
      monitors.values.last?.end(result)
    }
    let known = session.request("https://example.com/")
    endWait(.timeout, of: [known])
    let answers = Recorder<Void>()
    // The two threads have to meet at one of the requests.
    for _ in 0..<100 {
      let requests = Mutex(
        (0..<200).map { number -> DataRequest in
          let probe = Probe { retrier.retry(known, for: session, dueTo: error) { _ in answers.add(()) } }
          return session.request("https://example.com/\(number)").validate { _, _, _ in
            withExtendedLifetime(probe) {}
            return .success(())
          }
        })
      endWait(.timeout, of: requests.withLock { $0 })
      let group = DispatchGroup()
      DispatchQueue.global().async(group: group) {
        while requests.withLock({ $0.popLast() }) != nil {}
      }
      while !requests.withLock({ $0.isEmpty }) {
        endWait(.pathAvailable, of: [session.request("https://example.com/")])
      }
      group.wait()
    }
    #expect(answers.count == 20_000, "each request was released once, with what it holds")
  }

  @Test("Offline errors are found as underlying errors") func underlyingErrors() {
    let offline = URLError(.notConnectedToInternet)
    let isOffline = OfflineRetrier.defaultIsOfflineError
    #expect(isOffline(offline))
    #expect(isOffline(AFError.sessionTaskFailed(error: offline)))
    #expect(isOffline(AFError.createURLRequestFailed(error: AFError.sessionTaskFailed(error: offline))))
    #expect(!isOffline(URLError(.timedOut)))
    #expect(!isOffline(AFError.sessionTaskFailed(error: URLError(.cannotFindHost))))
    #expect(!isOffline(AFError.explicitlyCancelled))
    #expect(OfflineRetrier.defaultURLErrorOfflineCodes == [.notConnectedToInternet])
    #expect(OfflineRetrier.defaultWait == .seconds(5))
  }

  @Test("Interface types can be excluded", arguments: NetworkInterfaceType.allCases)
  func interfacesMayNotCount(type: NetworkInterfaceType) async {
    let network = ScriptedNetwork()
    network.become(ScriptedNetwork.offline)
    let results = Recorder<PathResult>()
    let monitor = NetworkPathMonitor(source: network, maximumWait: .seconds(60)) { $0 == .wifi }
    monitor.start { results.add($0) }
    let kind: NetworkLinkKind =
      switch type {
      case .wiredEthernet: .wired
      case .wifi: .wifi
      case .cellular: .cellular
      case .loopback: .loopback
      case .other: .other
      }
    network.become(ScriptedNetwork.online(over: kind))
    if type != .wifi {
      network.become(ScriptedNetwork.online(over: .wifi))
    }
    #expect(await results.wait(for: 1) == [.pathAvailable])
    #expect(network.watchCount == 0)
  }

  @Test("The wait for a network ends") func endOfWait() async {
    let network = ScriptedNetwork()
    network.become(ScriptedNetwork.offline)
    let results = Recorder<PathResult>()
    let monitor = NetworkPathMonitor(source: network, maximumWait: .milliseconds(1)) { _ in true }
    monitor.start { results.add($0) }
    #expect(await results.wait(for: 1) == [.timeout])
    network.become(ScriptedNetwork.online())
    #expect(results.count == 1)
    #expect(network.watchCount == 0)
  }

  @Test("A reachability manager can report its host") func manager() async throws {
    let network = ScriptedNetwork()
    network.become(ScriptedNetwork.offline)
    let made = Recorder<Int>()
    let retrier = OfflineRetrier(
      monitor: {
        made.add(1)
        return NetworkReachabilityManager(target: .anywhere, source: network)
      }(), maximumWait: .seconds(60))
    let session = Session.retained(fake: FakeTransport())
    let request = session.request("https://example.com/")
    let answers = Recorder<String>()
    for round in 1...2 {
      network.become(ScriptedNetwork.offline)
      retrier.retry(request, for: session, dueTo: URLError(.notConnectedToInternet)) { answers.add("\($0)") }
      #expect(made.count == round, "one manager a wait")
      network.become(ScriptedNetwork.online())
      await answers.wait(for: round)
    }
    #expect(answers.values == ["retry", "retry"])
    #expect(network.watchCount == 0)
  }

  @Test("Each form of the retrier asks about the error, and waits for the interfaces that it is given")
  func forms() async {
    let asked = Recorder<Int>()
    let isOffline: @Sendable (any Error) -> Bool = { _ in
      asked.add(1)
      return true
    }
    let network = ScriptedNetwork()
    network.become(ScriptedNetwork.offline)
    let every = NetworkInterfaceType.allCases
    let short = DispatchTimeInterval.milliseconds(1)
    // No machine has its default route over the loopback interface.
    let forms: [OfflineRetrier] = [
      OfflineRetrier(prohibitedInterfaceTypes: every, maximumWait: short, isOfflineError: isOffline),
      .offlineRetrier(prohibitedInterfaceTypes: every, maximumWait: short, isOfflineError: isOffline),
      OfflineRetrier(requiredInterfaceType: .loopback, maximumWait: short, isOfflineError: isOffline),
      .offlineRetrier(requiredInterfaceType: .loopback, maximumWait: short, isOfflineError: isOffline),
      OfflineRetrier(
        monitor: NetworkReachabilityManager(target: .anywhere, source: network), maximumWait: short,
        isOfflineError: isOffline),
      .offlineRetrier(
        monitor: NetworkReachabilityManager(target: .anywhere, source: network), maximumWait: short,
        isOfflineError: isOffline),
    ]
    let session = Session.retained(fake: FakeTransport())
    let request = session.request("https://example.com/")
    let answers = Recorder<String>()
    for retrier in forms {
      retrier.retry(request, for: session, dueTo: URLError(.timedOut)) { answers.add("\($0)") }
    }
    #expect(await answers.wait(for: forms.count) == Array(repeating: "doNotRetry", count: forms.count))
    #expect(asked.count == forms.count)
    // Whether this machine has a network does not matter here.
    let usual: [OfflineRetrier] = [
      OfflineRetrier(maximumWait: short, isOfflineError: isOffline),
      .offlineRetrier(maximumWait: short, isOfflineError: isOffline),
    ]
    for retrier in usual {
      retrier.retry(request, for: session, dueTo: URLError(.timedOut)) { answers.add("\($0)") }
    }
    await answers.wait(for: forms.count + usual.count)
    #expect(asked.count == forms.count + usual.count)
  }

  @Test("Each form of the retrier waits as long as it is told, for the interfaces that it is given")
  func limits() throws {
    let wait = DispatchTimeInterval.milliseconds(1234)
    let all = Set(NetworkInterfaceType.allCases).subtracting([.loopback])
    let forms: [(OfflineRetrier, allowed: Set<NetworkInterfaceType>)] = [
      (OfflineRetrier(maximumWait: wait), all), (.offlineRetrier(maximumWait: wait), all),
      (OfflineRetrier(requiredInterfaceType: .wifi, maximumWait: wait), [.wifi]),
      (.offlineRetrier(requiredInterfaceType: .wifi, maximumWait: wait), [.wifi]),
      (
        OfflineRetrier(prohibitedInterfaceTypes: [.wifi, .cellular], maximumWait: wait),
        [.wiredEthernet, .other]
      ),
      (
        .offlineRetrier(prohibitedInterfaceTypes: [.wifi, .cellular], maximumWait: wait),
        [.wiredEthernet, .other]
      ),
    ]
    for (index, form) in forms.enumerated() {
      let monitor = try #require(form.0.makeMonitor() as? NetworkPathMonitor)
      #expect(monitor.maximumWait == wait, "form \(index)")
      let allowed = NetworkLinkKind.allCases.filter { monitor.isThere(ScriptedNetwork.online(over: $0)) }
      #expect(Set(allowed.map { NetworkInterfaceType($0) }) == form.allowed, "form \(index)")
    }
    let network = ScriptedNetwork()
    let managed: [OfflineRetrier] = [
      OfflineRetrier(
        monitor: NetworkReachabilityManager(target: .anywhere, source: network), maximumWait: wait),
      .offlineRetrier(
        monitor: NetworkReachabilityManager(target: .anywhere, source: network), maximumWait: wait),
    ]
    #expect(managed.map { ($0.makeMonitor() as? ManagedPathMonitor)?.maximumWait } == [wait, wait])
    let usual: OfflineRetrier = .offlineRetrier
    #expect((usual.makeMonitor() as? NetworkPathMonitor)?.maximumWait == .seconds(5))
  }

  @Test("A request that has waited in vain does not wait again, until its next attempt or another request")
  func givenUp() {
    let retrier = retrier()
    let session = Session.retained(fake: FakeTransport())
    let (first, second) = (session.request("https://a.test/"), session.request("https://b.test/"))
    let answers = Recorder<String>()
    func ask(_ request: Request) {
      retrier.retry(request, for: session, dueTo: URLError(.notConnectedToInternet)) { answers.add("\($0)") }
    }
    ask(first)
    monitors.values[0].end(.timeout)
    ask(first)
    #expect(monitors.count == 1)
    #expect(answers.values == ["doNotRetry", "doNotRetry"])
    ask(second)
    #expect(monitors.count == 2)
    monitors.values[1].end(.pathAvailable)
    #expect(answers.values.last == "retry")
    // Only a wait that has timed out was in vain.
    ask(second)
    #expect(monitors.count == 3)
    monitors.values[2].end(.pathAvailable)
    #expect(answers.values.last == "retry")
  }

  @Test("Without a manager the request does not wait") func noManager() async {
    let session = Session.retained(fake: FakeTransport())
    let request = session.request("https://example.com/")
    let answers = Recorder<String>()
    let retriers = [
      OfflineRetrier(monitor: nil),
      .offlineRetrier(
        monitor: {
          let network = ScriptedNetwork()
          network.refuseWatches()
          return NetworkReachabilityManager(target: .anywhere, source: network)
        }()),
    ]
    for retrier in retriers {
      retrier.retry(request, for: session, dueTo: URLError(.notConnectedToInternet)) { answers.add("\($0)") }
    }
    #expect(answers.values == ["doNotRetry", "doNotRetry"])
  }

  @Test("The wait for the host of a manager ends") func endOfManagedWait() async {
    let network = ScriptedNetwork()
    network.become(ScriptedNetwork.offline)
    let retrier = OfflineRetrier(
      monitor: NetworkReachabilityManager(target: .anywhere, source: network), maximumWait: .milliseconds(1))
    let session = Session.retained(fake: FakeTransport())
    let answers = Recorder<String>()
    let request = session.request("https://example.com/")
    retrier.retry(request, for: session, dueTo: URLError(.notConnectedToInternet)) { answers.add("\($0)") }
    #expect(await answers.wait(for: 1) == ["doNotRetry"])
    #expect(network.watchCount == 0)
  }

  @Test("The errors of a machine without a network are offline errors") func noNetwork() {
    let network = ScriptedNetwork()
    let failure = TransportFailure(.cannotFindHost, "The name x could not be found.")
    #expect(failure.explained(host: "x.test", by: network).kind == .cannotFindHost)
    network.become(ScriptedNetwork.offline)
    let offline = failure.explained(host: "x.test", by: network)
    #expect(offline.kind == .notConnected)
    #expect(offline.message.hasPrefix("The name x could not be found. "))
    let refused = TransportFailure(.cannotConnectToHost, "refused")
    #expect(refused.explained(host: "x.test", by: network).kind == .cannotConnectToHost)
    #expect(refused.explained(host: "192.0.2.1", by: network).kind == .notConnected)
    let late = TransportFailure(.timedOut, "late")
    #expect(late.explained(host: "192.0.2.1", by: network).kind == .timedOut)
  }
}

/// A monitor that the test ends.
private final class ScriptedMonitor: PathMonitor {
  private struct State {
    var onResult: (@Sendable (PathResult) -> Void)?
    var isStopped = false
  }

  private let state = Mutex(State())
  let started = Recorder<Int>()

  var isStopped: Bool { state.withLock { $0.isStopped } }

  func start(onResult: @escaping @Sendable (PathResult) -> Void) {
    state.withLock { $0.onResult = onResult }
    started.add(1)
  }

  func stop() { state.withLock { $0.isStopped = true } }

  func end(_ result: PathResult) { state.withLock { $0.onResult }?(result) }
}
