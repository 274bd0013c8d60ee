import Alamofire
import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

@Suite("Waiting for connectivity", .timeLimit(.minutes(5)))
struct ConnectivityTests {
  private let network = ScriptedNetwork()
  private let waiting = Recorder<String>()

  private func session(
    _ transport: any Transport, waits: Bool = true, resourceTimeout: TimeInterval? = nil,
    options: TransportOptions = TransportOptions()
  ) -> Session {
    let configuration = URLSessionConfiguration.af.default
    configuration.waitsForConnectivity = waits
    if let resourceTimeout { configuration.timeoutIntervalForResource = resourceTimeout }
    let monitor = ClosureEventMonitor(queue: DispatchQueue(label: "watcher"))
    monitor.taskIsWaitingForConnectivity = { [waiting] _, task in
      waiting.add(task.originalRequest?.url?.path ?? "")
    }
    return Session(
      configuration: configuration, engine: Engine(transport: transport, network: network),
      observers: SessionObservers(eventMonitors: [monitor]), transportOptions: options)
  }

  @Test("The property is copied with its configuration and session") func property() {
    let configuration = URLSessionConfiguration.af.default
    #expect(!configuration.waitsForConnectivity)
    configuration.waitsForConnectivity = true
    #expect(configuration.waitsForConnectivity)
    #expect(!URLSessionConfiguration.af.default.waitsForConnectivity)
    let session = Session(configuration: configuration)
    configuration.waitsForConnectivity = false
    #expect(!configuration.waitsForConnectivity)
    #expect(session.sessionConfiguration.waitsForConnectivity, "a session keeps its original configuration")
    #expect(session.session.configuration.waitsForConnectivity)
  }

  @Test("A request waits for a network and reports that once") func wait() async {
    network.become(ScriptedNetwork.offline)
    // If the network is lost again before the request is sent, it waits again without an event.
    let fake = FakeTransport(.failure(.cannotFindHost), .failure(.notConnected), .text("there"))
    let session = session(fake)
    async let response = session.request("http://a.test/x").end()
    await waiting.wait(for: 1)
    #expect(fake.requests.count == 1)
    network.become(ScriptedNetwork.online())
    #expect(await response.data == Data("there".utf8))
    #expect(fake.requests.count == 3)
    #expect(waiting.values == ["/x"])
    #expect(network.watchCount == 0)
  }

  @Test("The transfer before a wait is in the metrics, once") func metrics() async {
    network.become(ScriptedNetwork.offline)
    var lost = FakeReply.failure(.cannotFindHost)
    lost.failure = TransportFailure(.cannotFindHost, "lost", metrics: TransferMetrics())
    let session = session(FakeTransport(lost, .text("there")))
    async let response = session.request("http://a.test/x").end()
    await waiting.wait(for: 1)
    network.become(ScriptedNetwork.online())
    let transactions = await response.metrics?.transactionMetrics ?? []
    #expect(transactions.map { ($0.response as? HTTPURLResponse)?.statusCode } == [nil, 200])
  }

  @Test("Without waitsForConnectivity the request fails at once") func noWait() async {
    network.become(ScriptedNetwork.offline)
    let fake = FakeTransport(.failure(.cannotFindHost))
    let session = session(fake, waits: false)
    let error = await session.request("http://a.test/").end().error
    #expect((error?.underlyingError as? URLError)?.code == .notConnectedToInternet)
    #expect(waiting.count == 0)
  }

  @Test(
    "A failure with a network does not wait",
    arguments: [TransportFailure.FailureKind.cannotFindHost, .timedOut, .connectionLost])
  func otherFailures(kind: TransportFailure.FailureKind) async {
    let fake = FakeTransport(.failure(kind))
    let session = session(fake)
    let error = await session.request("http://a.test/").end().error
    #expect(error?.isSessionTaskError == true)
    #expect(fake.requests.count == 1)
    #expect(waiting.count == 0)
  }

  @Test("timeoutIntervalForResource ends the wait") func timeout() async {
    network.become(ScriptedNetwork.offline)
    let fake = FakeTransport { _, _ in .failure(.cannotFindHost) }
    let session = session(fake, resourceTimeout: 0.05)
    let error = await session.request("http://a.test/").end().error
    #expect((error?.underlyingError as? URLError)?.code == .timedOut)
    #expect(error?.localizedDescription.contains("timeoutIntervalForResource") == true)
    #expect(network.watchCount == 0)
  }

  @Test("The error names the limit of the options that ends the wait") func totalLimit() async {
    network.become(ScriptedNetwork.offline)
    var options = TransportOptions()
    options.timeLimits.total = .milliseconds(50)
    let session = session(FakeTransport { _, _ in .failure(.cannotFindHost) }, options: options)
    let text = await session.request("http://a.test/").end().error?.localizedDescription ?? ""
    #expect(text.contains("timeLimits.total") && !text.contains("timeoutInterval"), "\(text)")
  }

  @Test("Cancelling the request ends the wait") func cancel() async {
    network.become(ScriptedNetwork.offline)
    let session = session(FakeTransport { _, _ in .failure(.cannotFindHost) })
    let request = session.request("http://a.test/")
    async let response = request.end()
    await waiting.wait(for: 1)
    request.cancel()
    #expect(await response.error?.isExplicitlyCancelledError == true)
    #expect(network.watchCount == 0)
  }

  @Test("The end of the session ends the wait") func endOfSession() async {
    network.become(ScriptedNetwork.offline)
    var session: Session? = session(FakeTransport { _, _ in .failure(.cannotFindHost) })
    let errors = Recorder<AFError?>()
    session?.request("http://a.test/").response(queue: .global()) { errors.add($0.error) }
    await waiting.wait(for: 1)
    session = nil
    guard case .sessionDeinitialized? = await errors.wait(for: 1).first ?? nil else {
      Issue.record("\(errors.values)")
      return
    }
  }

  @Test("A host in a local network needs no default route") func localNetwork() async {
    network.become(ScriptedNetwork.offline)
    network.become(
      NetworkState(
        links: [.init(index: 2, name: "net0", kind: .wired)], addresses: [.init(link: 2, family: .v4)],
        routes: []))
    let fake = FakeTransport(.failure(.cannotConnectToHost))
    let session = session(fake)
    let error = await session.request("http://192.0.2.1/").end().error
    #expect((error?.underlyingError as? URLError)?.code == .cannotConnectToHost, "it was refused by somebody")
    #expect(waiting.count == 0)
  }

  @Test("The answer of a proxy does not wait for a network, whatever the routes to the host")
  func refusingProxy() async throws {
    network.become(ScriptedNetwork.offline)
    let proxy = try HTTPTestServer(routes: .none)
    proxy.enqueue(.status(403))
    let engine = Engine.standard()
    var options = TransportOptions()
    options.proxy = .http("127.0.0.1", port: proxy.port)
    let session = session(engine.transport, resourceTimeout: 60, options: options)
    let error = await session.request("https://192.0.2.1/").end().error
    #expect((error?.underlyingError as? URLError)?.code == .cannotConnectToHost)
    #expect(error?.localizedDescription.contains("403") == true, "\(String(describing: error))")
    #expect(waiting.count == 0)
    engine.shutDown()
  }

  @Test(
    "A request waits for the network over which its proxy is reached",
    arguments: [TransportFailure.FailureKind.cannotFindProxy, .cannotConnectToProxy])
  func proxyWithoutNetwork(kind: TransportFailure.FailureKind) async {
    network.become(ScriptedNetwork.offline)
    var lost = FakeReply.failure(kind)
    lost.failure = TransportFailure(kind, "lost", unreached: .other("192.0.2.1"))
    let hasty = session(FakeTransport(lost), waits: false)
    let error = await hasty.request("http://a.test/").end().error
    #expect((error?.underlyingError as? URLError)?.code == .notConnectedToInternet)
    let patient = session(FakeTransport(lost, .text("there")))
    async let response = patient.request("http://a.test/x").end()
    await waiting.wait(for: 1)
    // The proxy belongs to the local network, which has no default route.
    network.become(
      NetworkState(
        links: [.init(index: 2, name: "net0", kind: .wired)], addresses: [.init(link: 2, family: .v4)],
        routes: []))
    #expect(await response.data == Data("there".utf8))
  }

  /// A network that has no default route.
  private static let isolated = NetworkState(
    links: [.init(index: 2, name: "net0", kind: .wired)], addresses: [.init(link: 2, family: .v4)],
    routes: [.init(family: .v4, prefixLength: 24, link: 2, hasGateway: false)])

  @Test("A network without a default route may have a proxy whose name is not found for a moment")
  func proxyOfIsolatedNetwork() async {
    network.become(Self.isolated)
    var lost = FakeReply.failure(.cannotFindProxy)
    lost.failure = TransportFailure(.cannotFindProxy, "lost", unreached: .other("proxy.test"))
    let first = session(FakeTransport(lost))
    let error = await first.request("http://a.test/").end().error
    #expect((error?.underlyingError as? URLError)?.code == .cannotConnectToHost, "it would wait for ever")
    #expect(waiting.count == 0)
    let host = TransportFailure(.cannotFindHost, "lost", unreached: .other("b.test"))
    let explained = host.explained(host: "a.test", by: network)
    #expect(explained.kind == .notConnected, "other hosts are not in such a network")
    network.become(ScriptedNetwork.offline)
    let patient = session(FakeTransport(lost, .text("there")))
    async let response = patient.request("http://a.test/x").end()
    await waiting.wait(for: 1)
    network.become(Self.isolated)
    #expect(await response.data == Data("there".utf8))
  }

  @Test(
    "A refusal by a server or a socket is no lack of a network",
    arguments: [
      TransportFailure.FailureKind.cannotFindHost, .cannotConnectToHost, .cannotFindProxy,
      .cannotConnectToProxy,
    ])
  func refusals(kind: TransportFailure.FailureKind) {
    network.become(ScriptedNetwork.offline)
    let refusal = TransportFailure(kind, "refused", unreached: .none)
    #expect(refusal.explained(host: "192.0.2.1", by: network).kind == kind)
  }

  @Test("A stream without a read is sent after the wait") func unreadStream() async throws {
    network.become(ScriptedNetwork.offline)
    let server = try HTTPTestServer(routes: .none)
    server.enqueue(.ok)
    let configuration = URLSessionConfiguration.af.default
    configuration.waitsForConnectivity = true
    let engine = Engine.standard()
    let transport = FailingOnce(engine.transport)
    let session = Session(
      configuration: configuration, engine: Engine(transport: transport, network: network))
    let stream = InputStream(data: Data(repeating: 7, count: 3_000_000))
    let waits = Recorder<Int>()
    let monitor = ClosureEventMonitor(queue: DispatchQueue(label: "watcher"))
    monitor.taskIsWaitingForConnectivity = { _, _ in waits.add(1) }
    async let response = session.upload(stream, to: server.url("/")).transferMonitor(monitor).end()
    await waits.wait(for: 1)
    network.become(ScriptedNetwork.online())
    #expect(await response.error == nil)
    #expect(try await server.takeRequest().body.count == 3_000_000)
    engine.shutDown()
  }
}

/// Opens the body of the first request and fails before it reads a byte. Later requests use another transport.
private final class FailingOnce: AsyncTransport {
  private let next: any Transport
  private let count = Recorder<Int>()

  init(_ next: any Transport) { self.next = next }

  func response(
    to request: WireRequest, observer: any TransferObserver
  ) async throws(TransportFailure) -> WireResponse {
    count.add(1)
    if count.count == 1, case .source(let source) = request.body {
      _ = source.start {}
      source.stop()
      throw TransportFailure(.cannotFindHost, "A failure of the script.")
    }
    return try await next.send(request, observer: observer)
  }
}
