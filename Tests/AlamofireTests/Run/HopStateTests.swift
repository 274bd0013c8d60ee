import Foundation
import FoundationNetworking
import HTTPWire
import Testing

@testable import Alamofire

/// The state that the hops of an attempt keep, and what a further hop takes along.
@Suite("State of hops", .timeLimit(.minutes(5))) struct HopStateTests {
  private let first = Origin(scheme: "https", host: "a.test", port: nil)
  private let other = Origin(scheme: "https", host: "b.test", port: nil)

  @Test("A request that has left its first origin stays marked, also after the way back") func redirects() {
    var redirects = HopRedirects()
    redirects.begin(at: first)
    redirects.arrive(at: first)
    #expect(!redirects.leftInitialOrigin && redirects.count == 0)
    redirects.follow(from: first)
    redirects.arrive(at: other)
    redirects.follow(from: other)
    redirects.arrive(at: first)
    #expect(redirects.leftInitialOrigin && redirects.count == 2 && redirects.initialOrigin == first)
    var kept = HopRedirects()
    kept.begin(at: first)
    kept.keepSecrets(at: other)
    #expect(kept.leftInitialOrigin && kept.initialOrigin == other)
  }

  @Test("Metrics of hops that are not measured begin with the first of them") func records() {
    var records = HopRecords()
    records.begin()
    let start = records.metrics?.taskInterval.start
    records.begin()
    #expect(start != nil && records.metrics?.taskInterval.start == start)
    records.add(Exchange.Hop(url: "http://a.test/", metrics: TransferMetrics()))
    #expect(records.metrics == nil && records.hops.count == 1)
  }

  @Test("The wait for a network is announced once") func waiting() {
    var route = HopRoute()
    let waits = (route.beginWaiting(), route.beginWaiting())
    #expect(waits.0 && !waits.1)
  }

  @Test("A redirect forgets the proof of the hop before, once, and keeps the netrc file") func proofs() throws
  {
    let credential = try #require(
      PasswordCredential(URLCredential(user: "u", password: "p", persistence: .none)))
    let proof = AuthenticationProof(
      scheme: .basic, realm: "r", credential: credential, source: .request, field: "x", isAnswer: true)
    var credentials = HopCredentials()
    #expect(credentials.authentication == nil && credentials.proof == nil)
    credentials.netrc = Netrc("machine a.test login u password p")
    credentials.add(proof)
    #expect(credentials.proof == proof && credentials.netrc != nil)
    let dropped = (credentials.dropProof(), credentials.dropProof())
    #expect(dropped.0 == proof && dropped.1 == nil)
    #expect(credentials.proof == nil && credentials.netrc != nil)
  }

  @Test("The announced length of a stream is a number without a sign") func contentLengths() {
    for (fields, length) in [
      (nil, -1), ([:], -1), (["A": "5"], -1), (["Content-Length": "5"], 5), (["content-length": "5"], 5),
      (["Content-Length": "+5"], -1), (["Content-Length": "-5"], -1), (["Content-Length": "5 "], -1),
      (["Content-Length": ""], -1), (["Content-Length": "99999999999999999999"], -1),
    ] as [([String: String]?, Int64)] {
      #expect(WireRequest.contentLength(fields) == length, "\(String(describing: fields))")
    }
  }

  // MARK: A further hop

  @Test("User and password of a Location are neither sent nor shown") func userInfo() async {
    let fake = FakeTransport(.redirect(302, to: "http://u:p@b.test/x"))
    let response = await Session.retained(fake: fake).request("http://a.test/").end()
    #expect(fake.urls == ["http://a.test/", "http://b.test/x"])
    #expect(fake.requests.last?.value("Authorization") == nil)
    #expect(response.response?.url?.absoluteString == "http://b.test/x")
  }

  @Test("A challenge of another origin has its body, because it is not answered", arguments: [false, true])
  func otherOrigin(isObserved: Bool) async {
    let challenge = FakeReply.status(
      401, "denied", headers: [("WWW-Authenticate", "Basic realm=\"r\"")])
    let fake = FakeTransport(.redirect(302, to: "http://b.test/x"), challenge)
    let session = Session.retained(
      fake: fake, observers: SessionObservers(eventMonitors: isObserved ? [EventSpy()] : []))
    let response = await session.request("http://a.test/").authenticate(username: "u", password: "p").end()
    #expect(response.response?.statusCode == 401 && response.data == Data("denied".utf8))
    #expect(fake.requests.count == 2 && fake.requests.last?.value("Authorization") == nil)
  }

  @Test("A cookie that a redirect removes is not sent with the next hop") func removedCookie() async {
    let set = FakeReply.status(200, headers: [("Set-Cookie", "a=1")])
    let remove = FakeReply.status(302, headers: [("Location", "/next"), ("Set-Cookie", "a=; Max-Age=0")])
    let fake = FakeTransport(set, remove)
    let session = Session.retained(fake: fake, configuration: .isolated)
    for _ in 0..<2 { _ = await session.request("http://a.test/").end() }
    #expect(fake.requests.map { $0.value("Cookie") } == [nil, "a=1", nil])
  }

  @Test("Fields of a redirected request keep their order, and those of a handler follow by name") func order()
    async
  {
    let fake = FakeTransport(.redirect(302, to: "/next"))
    let handler = Redirector(
      behavior: .modify { _, request, _ in
        var request = request
        for name in ["X-C", "X-A", "X-B"] { request.setValue("1", forHTTPHeaderField: name) }
        return request
      })
    let session = Session.retained(fake: fake, observers: SessionObservers(redirectHandler: handler))
    _ = await session.request("http://a.test/", headers: ["M": "1", "Z": "1", "B": "1"]).end()
    let names = fake.requests.map { $0.fields.map(\.name) }
    #expect(names.count == 2 && names.last == (names.first ?? []) + ["X-A", "X-B", "X-C"])
  }

  @Test("The error of a failed hop names the method of that hop") func methods() async {
    for (replies, method) in [
      ([FakeReply.failure(.timedOut)], "POST"), ([.redirect(303, to: "/x"), .failure(.timedOut)], "GET"),
      ([.redirect(307, to: "/x"), .failure(.timedOut)], "POST"),
      ([.redirect(302, to: "ftp://b.test/")], "POST"),
    ] as [([FakeReply], String)] {
      let fake = FakeTransport { _, index in replies[min(index, replies.count - 1)] }
      let response = await Session.retained(fake: fake).request("http://a.test/", method: .post).end()
      let error = response.error?.underlyingError as? URLError
      #expect(error?.userInfo[URLError.methodKey] as? String == method, "\(replies.count) \(method)")
    }
  }

  @Test("A hop that failed has the head that had arrived, and one without measurements has no known source")
  func failedHops() async throws {
    let broken = FakeReply(
      status: 201, chunks: [Data("half".utf8)], failure: TransportFailure(.connectionLost, "lost"))
    for (reply, status) in [(broken, 201), (.failure(.cannotFindHost), nil)] as [(FakeReply, Int?)] {
      let response = await Session.retained(fake: FakeTransport(reply)).request("http://a.test/").end()
      let hop = try #require(response.metrics?.transactionMetrics.first)
      #expect((hop.response as? HTTPURLResponse)?.statusCode == status)
      #expect(hop.resourceFetchType == .unknown)
    }
  }

  @Test("A retrier that cancels the request, and asks for a retry of a serializer, is asked once")
  func cancelledRetry()
    async
  {
    let spy = SpyInterceptor(retry: { request, _, _ in
      request.cancel()
      return .retry
    })
    let fake = FakeTransport(.text("no number"))
    let request = Session.retained(fake: fake, interceptor: spy).request("http://a.test/")
    let errors = Recorder<AFError?>()
    request.responseDecodable(of: Int.self, queue: .global()) { errors.add($0.error) }
    #expect(await errors.wait(for: 1).first?.map { _ in true } == true)
    #expect(spy.retryCount == 1 && fake.requests.count == 1 && request.isCancelled)
  }

  @Test("The progress of a stream that was not observed is known after its end") func streamProgress() async {
    var reply = FakeReply.text("12345")
    var values = TransferMetrics.Values()
    values.decodedBodyBytes = 5
    reply.metrics = TransferMetrics(values: values)
    let request = Session.retained(
      fake: FakeTransport(reply), observers: SessionObservers(eventMonitors: [])
    ).streamRequest("http://a.test/")
    let ends = Recorder<Bool>()
    request.responseStream(on: .global()) { if case .complete = $0.event { ends.add(true) } }
    await ends.wait(for: 1)
    #expect(request.downloadProgress.completedUnitCount == 5)
    #expect(request.downloadProgress.totalUnitCount == 5)
  }
}
