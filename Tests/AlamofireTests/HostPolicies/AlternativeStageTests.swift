import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Testing

@testable import Alamofire

@Suite("Alternative services of requests", .timeLimit(.minutes(5)))
struct AlternativeStageTests {
  private let services = AlternativeServices()
  private let url = "https://a.test:8443/x"
  private let place = AlternativeService(host: "alt.test", port: 9443)

  init() {
    services.note(
      ResponseHead(status: 200, fields: [HTTPHeader(name: "Alt-Svc", value: #"h2="alt.test:9443""#)]),
      of: Origin(scheme: "https", host: "a.test", port: 8443))
  }

  private func session(
    _ fake: FakeTransport, _ change: (inout TransportOptions) -> Void = { _ in }
  ) -> Session {
    var options = TransportOptions()
    options.alternativeServices = services
    change(&options)
    return .retained(fake: fake, configuration: .isolated, options: options)
  }

  @Test("A request to an alternative service has the origin of its URL") func origin() async throws {
    let fake = FakeTransport()
    let response = await session(fake).request(url, headers: ["X-Mine": "1"]).end()
    let request = try #require(fake.requests.first)
    #expect(request.alternative == place)
    #expect(request.value("Alt-Used") == "alt.test:9443")
    #expect(request.value("X-Mine") == "1")
    #expect(request.url == url)
    #expect(request.origin == Origin(scheme: "https", host: "a.test", port: 8443))
    #expect(response.response?.url?.absoluteString == url)
  }

  /// Records what a transfer reports.
  private final class Reports: TransferObserver {
    let events = Recorder<String>()

    func transferBegan(_ control: any TransferControl) -> TransferStart { .go }
    func informationalHeadReceived(_ head: ResponseHead) { events.add("\(head.status)") }
    func headReceived(_ head: ResponseHead) -> HeadDisposition {
      events.add("\(head.status)")
      return .proceed
    }
    func bytesMoved(_ count: ByteCount) { events.add("bytes") }
    func transferEnded() { events.add("end") }
  }

  @Test("Everything is reported but the answer of a service that does not serve the origin")
  func reports() async throws {
    let fake = FakeTransport()
    _ = await session(fake).request(url).end()
    let request = try #require(fake.requests.first)
    for isAtAlternative in [true, false] {
      let reports = Reports()
      let observer = HostPolicyObserver(reports, request, trust: nil, isAtAlternative: isAtAlternative)
      observer.informationalHeadReceived(ResponseHead(status: 104))
      let disposition = observer.headReceived(ResponseHead(status: 421))
      observer.bytesMoved(ByteCount())
      observer.transferEnded()
      #expect((disposition == .discard) == isAtAlternative)
      #expect(reports.events.values == (isAtAlternative ? ["104", "end"] : ["104", "421", "bytes", "end"]))
    }
  }

  @Test("A background revalidation uses the service as a request does", arguments: [200, 421])
  func backgroundRevalidation(status: Int) async {
    var options = TransportOptions()
    options.alternativeServices = services
    let fixture = CacheFixture(
      FakeTransport(
        .cacheable("one", "max-age=60, stale-while-revalidate=60"),
        .status(status, "two", headers: [("Cache-Control", "max-age=60"), ("Alt-Svc", "clear")])
      ) { _, _ in .cacheable("origin", "max-age=60") },
      options: options)
    func get() async -> String {
      CacheFixture.Received(await fixture.session.request(url).end()).description
    }
    #expect(await get() == "200 one n")
    fixture.clock.advance(70)
    #expect(await get() == "200 one c")
    let (body, sent) = status == 200 ? ("two", [place, place]) : ("origin", [place, place, nil])
    let (cache, stored) = (fixture.cache, URLRequest(url: URL(string: url) ?? URL(fileURLWithPath: "/")))
    #expect(await eventually { cache.cachedResponse(for: stored)?.data == Data(body.utf8) })
    #expect(fixture.fake.requests.map { $0.alternative } == sent)
    // Either the response has cleared the service, or it does not serve the origin.
    #expect(services.choice(for: Origin(scheme: "https", host: "a.test", port: 8443)) == nil)
  }

  @Test("Requests to other origins do not use the service") func otherOrigins() async throws {
    let fake = FakeTransport()
    let session = session(fake)
    for url in ["https://a.test/x", "http://a.test:8443/x", "https://b.test:8443/"] {
      _ = await session.request(url).end()
    }
    _ = await Session.retained(fake: fake).request(url).end()
    #expect(fake.requests.allSatisfy { $0.alternative == nil && $0.value("Alt-Used") == nil })
    #expect(fake.requests.count == 4)
  }

  @Test(
    "A service that cannot be connected to is not used for a while",
    arguments: [
      TransportFailure.FailureKind.cannotFindHost, .cannotConnectToHost, .addressRefused, .timedOut,
      .secureConnectionFailed,
      .certificateUntrusted, .certificateHasBadDate, .trustRefused, .trustUndecided, .identityUndecided,
      .alternativeUnfit, .connectionLost, .badServerResponse, .certificateHasUnknownRoot,
      .certificateNotYetValid, .clientCertificateRejected, .clientCertificateRequired,
    ])
  func failedService(kind: TransportFailure.FailureKind) async throws {
    let fake = FakeTransport(.failure(kind), .text("origin"), .text("origin"))
    let session = session(fake)
    for _ in 0..<2 {
      let response = await session.request(url).end()
      #expect(response.data == Data("origin".utf8))
    }
    #expect(fake.requests.map { $0.alternative } == [place, nil, nil])
  }

  /// The outcome at an alternative service of a request whose total time ends.
  enum Overdue: CaseIterable {
    case inQueue, withoutStream, lookingUp, connecting, refused, misdirected

    /// Whether the service was tried, so that it has failed.
    var isFault: Bool { self != .inQueue && self != .withoutStream }

    var reply: FakeReply {
      var values = TransferMetrics.Values()
      switch self {
      case .refused: return .failure(.cannotConnectToHost)
      case .misdirected: return .status(421)
      case .inQueue: return Self.timeout(nil)
      case .withoutStream: break
      case .lookingUp: values.isConnecting = true
      case .connecting: values.lookupEnd = 5
      }
      return Self.timeout(TransferMetrics(values: values))
    }

    private static func timeout(_ metrics: TransferMetrics?) -> FakeReply {
      let failure = TransportFailure(.timedOut, "overdue", metrics: metrics, phase: .total)
      return FakeReply(failure: failure, hasHead: false)
    }
  }

  @Test("A request whose total time is over is not sent to the origin", arguments: Overdue.allCases)
  func overdueRequest(outcome: Overdue) async throws {
    let (reached, gate) = (Latch(), Latch())
    let fake = FakeTransport(outcome.reply.held(by: gate, reached: reached))
    var request = try URLRequest(url: url, method: .post)
    request.httpBody = Data("x".utf8)
    let sent = session(fake) { $0.timeLimits.total = .milliseconds(1) }.request(request)
    async let response = sent.end()
    await reached.wait()
    let deadline = fake.requests.first?.deadline
    #expect(deadline != nil)
    #expect(await eventually { deadline.map { $0 <= .now } ?? true })
    gate.open()
    let error = await response.error
    #expect((error?.underlyingError as? URLError)?.code == .timedOut)
    #expect(fake.requests.map { $0.alternative } == [place])
    let choice = services.choice(for: Origin(scheme: "https", host: "a.test", port: 8443))
    #expect(choice == (outcome.isFault ? nil : place), "only a service that was tried has failed")
  }

  @Test("A background revalidation whose total time is over is not sent to the origin")
  func overdueRevalidation() async throws {
    let first = FakeTransport()
    _ = await session(first).request(url).end()
    let request = try #require(first.requests.first).changing { parts in parts.deadline = .now }
    let fake = FakeTransport(Overdue.inQueue.reply)
    let transport = RefreshTransport(transport: fake, trust: nil)
    await #expect(throws: TransportFailure.self) {
      try await transport.response(to: request, observer: Reports())
    }
    #expect(fake.requests.map { $0.alternative } == [place])
    #expect(services.choice(for: request.origin) == place)
  }

  @Test(
    "A background revalidation that a service has refused does not repeat a count of a Digest nonce",
    arguments: [#"Digest username="u", nc=00000001"#, "Basic dTpw"])
  func misdirectedRevalidation(authorization: String) async throws {
    let first = FakeTransport()
    _ = await session(first).request(url, headers: ["Authorization": authorization]).end()
    let request = try #require(first.requests.first)
    let fake = FakeTransport(.status(421), .text("in"))
    let transport = RefreshTransport(transport: fake, trust: nil)
    let response = try? await transport.response(to: request, observer: Reports())
    let isDigest = authorization.hasPrefix("Digest")
    #expect(response?.head.status == (isDigest ? nil : 200))
    #expect(fake.requests.count == (isDigest ? 1 : 2))
    #expect(services.choice(for: request.origin) == nil)
  }

  @Test("If a service fails, the request goes to the origin, and not to another service")
  func twoServices() async {
    services.note(
      ResponseHead(
        status: 200,
        fields: [HTTPHeader(name: "Alt-Svc", value: #"h2="alt.test:9443", h2="second.test:9443""#)]),
      of: Origin(scheme: "https", host: "a.test", port: 8443))
    let fake = FakeTransport(.failure(.cannotConnectToHost), .text("origin"))
    #expect(await session(fake).request(url).end().data == Data("origin".utf8))
    #expect(fake.requests.map { $0.alternative } == [place, nil])
  }

  @Test(
    "A failure that says nothing about the service is the result",
    arguments: [TransportFailure.FailureKind.cannotReadBody, .dataLengthExceedsMaximum, .cannotDecodeContent])
  func otherFailures(kind: TransportFailure.FailureKind) async {
    let fake = FakeTransport(.failure(kind))
    #expect(await session(fake).request(url).end().error != nil)
    #expect(fake.requests.map { $0.alternative } == [place])
  }

  @Test("A request that may have reached the service is not repeated", arguments: [false, true])
  func noRepeat(wasRepeated: Bool) async throws {
    var values = TransferMetrics.Values()
    // The engine has sent the first attempt, and could not connect for the second one.
    if wasRepeated { values.mayHaveArrived = true } else { values.requestStart = 5 }
    var reply = FakeReply.failure(.connectionLost)
    reply.failure = TransportFailure(.connectionLost, "lost", metrics: TransferMetrics(values: values))
    let fake = FakeTransport(reply)
    let response = await session(fake).request(url).end()
    #expect((response.error?.underlyingError as? URLError)?.code == .networkConnectionLost)
    #expect(fake.requests.count == 1)
    let cancelled = FakeTransport(.failure(.cancelled))
    #expect(await session(cancelled).request(url).end().error != nil)
    #expect(cancelled.requests.count == 1)
  }

  @Test("A 421 of the service repeats the request at the origin without an event") func misdirectedRequest()
    async throws
  {
    let fake = FakeTransport(.status(421, "wrong", headers: [("Alt-Svc", "clear")]), .text("origin"))
    let heads = Recorder<Int>()
    let session = session(fake)
    let response = await session.request(url).onHTTPResponse(on: .global()) { heads.add($0.statusCode) }.end()
    #expect(response.data == Data("origin".utf8))
    #expect(heads.values == [200])
    #expect(fake.requests.map { $0.alternative } == [place, nil])
    // A 421 of the origin itself is the response.
    let own = FakeTransport(.status(421))
    #expect(await self.session(own).request(url).end().response?.statusCode == 421)
  }

  @Test("Requests with certain options go to the origin") func originOnly() async throws {
    let fake = FakeTransport()
    _ = await session(fake) { $0.httpVersions = .http1Only }.request(url).end()
    _ = await session(fake) { $0.unixSocket = "/socket" }.request(url).end()
    _ = await session(fake) { $0.hostOverrides = [.init(host: "A.test", target: "b")] }.request(url).end()
    var stream = try URLRequest(url: url, method: .post)
    stream.httpBodyStream = InputStream(data: Data("x".utf8))
    _ = await session(fake).request(stream).end()
    // It can be read only once, so that it could not be repeated at the origin.
    stream.httpBodyStream = InputStream(data: Data("x".utf8))
    stream.setValue("1", forHTTPHeaderField: "Content-Length")
    _ = await session(fake).request(stream).end()
    #expect(fake.requests.count == 5)
    #expect(fake.requests.allSatisfy { $0.alternative == nil })
    var large = try URLRequest(url: url, method: .post)
    large.httpBody = Data(count: 1 << 20)
    _ = await session(fake) { $0.hostOverrides = [.init(host: "a.test", port: 443, target: "b")] }.request(
      large
    ).end()
    #expect(fake.requests.last?.alternative == place)
  }

  @Test("A request with a proxy goes to the origin, and the service stays for other requests")
  func proxied() async {
    let fake = FakeTransport { request, _ in
      request.alternative == nil ? .text("origin") : .failure(.alternativeUnfit)
    }
    let response = await session(fake) { $0.proxy = .http("proxy.test", port: 3128) }.request(url).end()
    #expect(response.data == Data("origin".utf8))
    #expect(fake.requests.map { $0.alternative } == [nil], "the request is sent once, to the proxy")
    #expect(
      services.choice(for: Origin(scheme: "https", host: "a.test", port: 8443)) == place,
      "the service has not failed")
  }

  @Test("A background revalidation with a proxy goes to the origin, and the service stays")
  func proxiedRevalidation() async throws {
    let first = FakeTransport()
    _ = await session(first) { $0.proxy = .http("proxy.test", port: 3128) }.request(url).end()
    let request = try #require(first.requests.first)
    let fake = FakeTransport()
    _ = try await RefreshTransport(transport: fake, trust: nil).response(to: request, observer: Reports())
    #expect(fake.requests.map { $0.alternative } == [nil])
    #expect(services.choice(for: request.origin) == place)
  }

  @Test("Alt-Svc: clear removes the services") func clear() async throws {
    let fake = FakeTransport(.status(200, headers: [("Alt-Svc", "clear")]))
    let session = session(fake)
    _ = await session.request(url).end()
    _ = await session.request(url).end()
    #expect(fake.requests.map { $0.alternative } == [place, nil])
  }
}
