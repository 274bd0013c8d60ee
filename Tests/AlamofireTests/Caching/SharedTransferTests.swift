import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Testing

@testable import Alamofire

@Suite("Identical requests", .timeLimit(.minutes(5))) struct SharedTransferTests {
  private static var sharing: TransportOptions {
    var options = TransportOptions()
    options.sharesIdenticalRequests = true
    return options
  }

  private let gate = Latch()
  private let reached = Latch()

  private func session(_ reply: FakeReply) -> (Session, FakeTransport) {
    let fake = FakeTransport(reply.held(by: gate, reached: reached))
    return (Session.retained(fake: fake, options: Self.sharing), fake)
  }

  /// Returns a request that waits for its transfer.
  private func begun(_ session: Session, _ url: String = "http://a.test/x", headers: HTTPHeaders? = nil) async
    -> (DataRequest, Recorder<AFDataResponse<Data?>>)
  {
    let shared = session.core.sharedTransfers
    let count = shared.memberCount
    let request = session.request(url, headers: headers)
    let ends = Recorder<AFDataResponse<Data?>>()
    request.response(queue: .global()) { ends.add($0) }
    #expect(await eventually { shared.memberCount == count + 1 })
    return (request, ends)
  }

  @Test("Identical requests share one transfer") func identicalRequests() async throws {
    let (session, fake) = session(.text("shared"))
    let all = [await begun(session), await begun(session), await begun(session)]
    gate.open()
    for (_, ends) in all { #expect(try await ends.value(0).data == Data("shared".utf8)) }
    #expect(fake.requests.count == 1 && session.core.sharedTransfers.memberCount == 0)
    #expect(await session.request("http://a.test/x").end().data == Data("ok".utf8))
  }

  @Test("A shared transfer follows the priorities of its requests") func priorities() async throws {
    let (session, fake) = session(.text("shared"))
    let (first, second) = (await begun(session), await begun(session))
    await reached.wait()
    let control = try #require(fake.controls.first)
    first.0.priority = 0.75
    #expect(control.priority == 0.75)
    second.0.priority = 1
    #expect(control.priority == 1)
    second.0.cancel()
    #expect(await eventually { control.priority == 0.75 })
    gate.open()
    #expect(try await first.1.value(0).data == Data("shared".utf8))
    #expect(fake.requests.count == 1)
  }

  @Test("Requests with equal options share a transfer, requests with different options do not")
  func optionsOfRequests() async {
    let fake = FakeTransport(FakeReply.text("shared").held(by: gate, reached: reached))
    let session = Session.retained(fake: fake)
    let shared = session.core.sharedTransfers
    let ends = Recorder<AFDataResponse<Data?>>()
    for count in 1...2 {
      session.request("http://a.test/x").transportOptions { $0.sharesIdenticalRequests = true }
        .response(queue: .global()) { ends.add($0) }
      #expect(await eventually { shared.memberCount == count })
    }
    let other = session.request("http://a.test/x").transportOptions {
      $0.sharesIdenticalRequests = true
      $0.redirectLimit = 7
    }
    #expect(await other.end().data == Data("ok".utf8))
    gate.open()
    for response in await ends.wait(for: 2) { #expect(response.data == Data("shared".utf8)) }
    #expect(fake.requests.count == 2)
  }

  @Test("Requests to sockets whose paths are equal texts but not equal bytes do not share a transfer")
  func socketPaths() async {
    let fake = FakeTransport(FakeReply.text("shared").held(by: gate, reached: reached))
    let session = Session.retained(fake: fake)
    let ends = Recorder<AFDataResponse<Data?>>()
    for path in ["/run/jos\u{E9}", "/run/jose\u{301}"] {
      session.request("http://a.test/x").transportOptions {
        $0.sharesIdenticalRequests = true
        $0.unixSocket = path
      }.response(queue: .global()) { ends.add($0) }
      await reached.wait()
    }
    // They are sent, or wait with the first one.
    #expect(await eventually { fake.requests.count == 2 || session.core.sharedTransfers.memberCount > 1 })
    gate.open()
    await ends.wait(for: 2)
    #expect(fake.requests.count == 2)
  }

  @Test("Requests with a body do not share a transfer") func bodies() async throws {
    let (session, fake) = session(.text("first"))
    let ends = Recorder<AFDataResponse<Data?>>()
    for body in ["1", "2"] {
      var urlRequest = try URLRequest(url: "http://a.test/x", method: .get)
      urlRequest.httpBody = Data(body.utf8)
      session.request(urlRequest)
        .transportOptions {
          $0.sharesIdenticalRequests = true
          $0.allowsBodyInGETRequests = true
        }
        .response(queue: .global()) { ends.add($0) }
    }
    let shared = session.core.sharedTransfers
    #expect(await eventually { fake.requests.count == 2 || shared.memberCount > 0 })
    #expect(fake.requests.count == 2 && shared.memberCount == 0)
    gate.open()
    #expect(Set(await ends.wait(for: 2).map(\.data)) == [Data("first".utf8), Data("ok".utf8)])
  }

  @Test("A request that joins a transfer reports the bytes that have moved already")
  func lateProgress() async throws {
    let server = try HTTPTestServer()
    let gate = Gate()
    server.enqueue(.parts(.pattern(1000), .gate(gate), .pattern(1000)))
    let session = Session.real(options: Self.sharing)
    let counts = (Recorder<Int64>(), Recorder<Int64>())
    async let first = session.request(server.url("/"))
      .downloadProgress(queue: .global()) { counts.0.add($0.completedUnitCount) }.end()
    await counts.0.wait(for: 1)
    async let second = session.request(server.url("/"))
      .downloadProgress(queue: .global()) { counts.1.add($0.completedUnitCount) }.end()
    #expect(await counts.1.wait(for: 1).first == counts.0.values.last)
    gate.open()
    for response in await [first, second] { #expect(response.data?.count == 2000) }
    #expect(server.requestCount == 1)
  }

  @Test("Requests that differ do not share a transfer") func differentRequests() async {
    let (session, fake) = session(.text("shared"))
    let first = await begun(session)
    _ = await session.request("http://a.test/y").end()
    _ = await session.request("http://a.test/x", headers: ["Accept": "a/b"]).end()
    async let post = session.request("http://a.test/x", method: .post).end()
    // It is sent, or waits with the first one.
    #expect(await eventually { fake.requests.count == 4 || session.core.sharedTransfers.memberCount > 1 })
    #expect(fake.requests.count == 4)
    gate.open()
    _ = await post
    #expect(await first.1.wait(for: 1).count == 1)
    let plain = Session.retained(fake: fake)
    async let one = plain.request("http://a.test/x").end()
    async let two = plain.request("http://a.test/x").end()
    _ = await (one, two)
    #expect(fake.requests.count == 6)
  }

  @Test("Downloads and streams have their own transfers") func sinks() async throws {
    let (session, fake) = session(.text("shared"))
    let first = await begun(session)
    async let file = session.download("http://a.test/x").serializingData().response
    async let bytes = session.streamRequest("http://a.test/x").streamTask().streamingData()
      .reduce(into: Data()) { $0 += $1.value ?? Data() }
    // They are sent, or wait with the first one.
    #expect(await eventually { fake.requests.count == 3 || session.core.sharedTransfers.memberCount > 1 })
    gate.open()
    let download = await file
    #expect(download.value == Data("ok".utf8))
    download.removeFile()
    #expect(await bytes == Data("ok".utf8))
    #expect(try await first.1.value(0).data == Data("shared".utf8))
    #expect(fake.requests.count == 3)
  }

  @Test("Cancelling one request does not affect the others", arguments: [0, 1]) func cancelOne(index: Int)
    async throws
  {
    let (session, fake) = session(.text("shared"))
    let all = [await begun(session), await begun(session)]
    await reached.wait()
    all[index].0.cancel()
    #expect(try await all[index].1.value(0).error?.isExplicitlyCancelledError == true)
    gate.open()
    #expect(try await all[1 - index].1.value(0).data == Data("shared".utf8))
    #expect(fake.requests.count == 1 && fake.controls.allSatisfy { !$0.isCancelled })
  }

  @Test("The last cancelled request ends the transfer") func cancelLast() async {
    let (session, fake) = session(.text("shared"))
    let all = [await begun(session), await begun(session)]
    await reached.wait()
    for (request, ends) in all {
      request.cancel()
      _ = await ends.wait(for: 1)
    }
    #expect(fake.controls.count == 1 && fake.controls[0].isCancelled)
    gate.open()
  }

  /// An observer that does not request the body.
  private final class HeadObserver: TransferObserver {
    func transferBegan(_ control: any TransferControl) -> TransferStart { .go }
    func headReceived(_ head: ResponseHead) -> HeadDisposition { .discard }
    func bytesMoved(_ count: ByteCount) {}
    func transferEnded() {}
  }

  /// A request that joins after the head may have no credential, and its response has the body of the challenge.
  @Test(
    "The body of a challenge is read before any request needs it, the body of a redirect is not",
    arguments: [(401, true), (407, true), (302, false)])
  func unwantedBody(status: Int, isRead: Bool) async throws {
    let transport = SharedTransport(
      shared: SharedTransfers(), transport: FakeTransport(.status(status, "body")), store: nil)
    let url = "http://a.test/"
    let request = WireRequest(
      url: url, origin: try #require(Origin(url: url)), profile: ConnectionProfile()
    ) { _ in }
    let response = try await transport.send(request, observer: HeadObserver())
    #expect(response.head.status == status && (response.body != nil) == isRead)
  }

  /// An observer that answers all heads alike.
  private final class DisposingObserver: TransferObserver {
    private let disposition: HeadDisposition

    init(_ disposition: HeadDisposition) { self.disposition = disposition }

    func transferBegan(_ control: any TransferControl) -> TransferStart { .go }
    func headReceived(_ head: ResponseHead) -> HeadDisposition { disposition }
    func bytesMoved(_ count: ByteCount) {}
    func transferEnded() {}
  }

  @Test(
    "A failure after the deadline keeps its metrics and the partial response",
    arguments: [HeadDisposition.proceed, .hold])
  func lateFailure(disposition: HeadDisposition) async throws {
    let late = TransportFailure(.timedOut, "The total time is over.", metrics: TransferMetrics())
    let fake = FakeTransport(FakeReply(chunks: [Data("part".utf8)], failure: late))
    let transport = SharedTransport(shared: SharedTransfers(), transport: fake, store: nil)
    let url = "http://a.test/"
    let request = WireRequest(
      url: url, origin: try #require(Origin(url: url)), profile: ConnectionProfile()
    ) { $0.deadline = .now }
    let failure = await #expect(throws: TransportFailure.self) {
      try await transport.response(to: request, observer: DisposingObserver(disposition))
    }
    #expect(failure?.kind == .timedOut && failure?.message == late.message)
    #expect(failure?.metrics != nil && failure?.partial?.head.status == 200)
  }

  /// No field tells the requests of two users apart.
  @Test(
    "A request that authenticates its connection shares no transfer",
    .enabled(if: Engine.connectionSchemes.contains(.ntlm)))
  func connectionLogin() async {
    let held = FakeReply.text("in").held(by: gate, reached: reached)
    let fake = FakeTransport { request, _ in request.login == nil ? .challenge("NTLM") : held }
    let session = Session.retained(fake: fake, options: Self.sharing)
    let ends = Recorder<AFDataResponse<Data?>>()
    for user in ["ann", "bob"] {
      session.request("http://a.test/x").authenticate(username: user, password: "p")
        .response(queue: .global()) { ends.add($0) }
    }
    let isSent = await eventually {
      fake.requests.count { $0.login != nil } == 2
        || session.core.sharedTransfers.memberCount == 2
          && fake.requests.contains { $0.login != nil }
    }
    #expect(isSent)
    #expect(fake.requests.count { $0.login != nil } == 2)
    gate.open()
    #expect(await ends.wait(for: 2).allSatisfy { $0.data == Data("in".utf8) })
  }

  @Test("A failure is delivered to all requests") func failure() async throws {
    let (session, _) = session(.failure(.connectionLost))
    let all = [await begun(session), await begun(session)]
    gate.open()
    for (_, ends) in all {
      let error = try await ends.value(0).error?.underlyingError as? URLError
      #expect(error?.code == .networkConnectionLost)
    }
  }

  @Test("Suspending one request does not hold the others") func suspendOne() async throws {
    let (session, _) = session(.text("shared"))
    let all = [await begun(session), await begun(session)]
    all[0].0.suspend()
    gate.open()
    #expect(try await all[1].1.value(0).data == Data("shared".utf8))
    #expect(all[0].1.count == 0)
    all[0].0.resume()
    #expect(try await all[0].1.value(0).data == Data("shared".utf8))
  }
}
