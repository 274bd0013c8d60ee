import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import Testing

@Suite("Who decides about a server", .timeLimit(.minutes(5)))
struct SessionTrustTests {
  private struct Refused: Error, Equatable {}

  /// Code of a user: writes down when it was asked, and may wait for a gate.
  private final class Slow: ServerTrustEvaluating {
    let calls = Recorder<String>()
    let refuses: Bool
    let gate: DispatchSemaphore?

    init(refuses: Bool = false, gate: DispatchSemaphore? = nil) {
      self.refuses = refuses
      self.gate = gate
    }

    func evaluate(_ trust: SecTrust, forHost host: String) throws {
      calls.add("\(host) \(trust.certificates.count) \(Thread.current.name ?? "")")
      gate?.wait()
      if refuses { throw Refused() }
    }
  }

  private let server: HTTPTestServer

  init() throws {
    server = try HTTPTestServer(.tls(.localhost))
  }

  private func session(
    _ evaluators: [String: any ServerTrustEvaluating], all: Bool = true, monitors: [any EventMonitor] = [],
    delegate: SessionDelegate = SessionDelegate()
  ) -> Session {
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    return Session(
      delegate: delegate,
      serverTrustManager: ServerTrustManager(allHostsMustBeEvaluated: all, evaluators: evaluators),
      eventMonitors: monitors, transportOptions: options)
  }

  @Test func aHostWithoutAnEvaluatorIsRefusedUnlessItNeedsNone() async throws {
    let strict = session([:])
    let error = await strict.request(server.url("/get")).serializingData().response.error
    guard case .serverTrustEvaluationFailed(.noRequiredEvaluator(let host)) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(host == "localhost")
    #expect(server.requestCount == 0)
    let lenient = session([:], all: false)
    #expect(await lenient.request(server.url("/get")).serializingData().response.error == nil)
  }

  @Test func anEvaluatorOfAUserIsAskedOnceOutsideOfTheLoop() async throws {
    let slow = Slow()
    let session = session(["localhost": slow])
    for _ in 0..<3 {
      // Each on a connection of its own.
      let request = session.request(server.url("/get"), headers: ["Connection": "close"])
      #expect(await request.serializingData().response.error == nil)
    }
    #expect(slow.calls.values.count == 1)
    #expect(slow.calls.values.first?.hasPrefix("localhost 1 ") == true)
    #expect(slow.calls.values.first?.contains("http-engine") == false)
    #expect(server.requestCount == 3)
  }

  @Test func whatAnEvaluatorThrowsIsTheErrorOfTheRequest() async throws {
    let session = session(["localhost": Slow(refuses: true)])
    let response = await session.request(server.url("/get")).serializingData().response
    guard case .serverTrustEvaluationFailed(.customEvaluationFailed(let error)) = response.error else {
      Issue.record("\(String(describing: response.error))")
      return
    }
    #expect(error as? Refused == Refused())
    #expect(server.requestCount == 0)
  }

  @Test func aSlowEvaluatorHoldsUpNobodyElse() async throws {
    let gate = DispatchSemaphore(value: 0)
    let slow = Slow(gate: gate)
    let other = try HTTPTestServer()
    let session = session(["localhost": slow])
    async let judged = session.request(server.url("/get")).serializingData().response
    await slow.calls.wait(for: 1)
    for _ in 0..<20 {
      #expect(await session.request(other.url("/get")).serializingData().response.error == nil)
    }
    #expect(server.requestCount == 0)
    gate.signal()
    #expect(await judged.error == nil)
    #expect(server.requestCount == 1)
  }

  @Test func aRequestIsCancelledWhileItsServerIsJudged() async throws {
    let gate = DispatchSemaphore(value: 0)
    let slow = Slow(gate: gate)
    let session = session(["localhost": slow])
    let request = session.request(server.url("/get"))
    async let response = request.serializingData().response
    await slow.calls.wait(for: 1)
    request.cancel()
    #expect(await response.error?.isExplicitlyCancelledError == true)
    gate.signal()
    #expect(server.requestCount == 0)
  }

  private final class Delegate: SessionDelegate, @unchecked Sendable {
    let calls = Recorder<String>()
    let answer: @Sendable (ServerTrust) -> (URLSession.AuthChallengeDisposition, URLCredential?)

    init(_ answer: @escaping @Sendable (ServerTrust) -> (URLSession.AuthChallengeDisposition, URLCredential?))
    {
      self.answer = answer
      super.init()
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      let space = challenge.protectionSpace
      calls.add("\(space.authenticationMethod) \(space.host) \(space.serverTrust?.certificates.count ?? 0)")
      guard let trust = space.serverTrust else { return completionHandler(.performDefaultHandling, nil) }
      let (disposition, credential) = answer(trust)
      completionHandler(disposition, credential)
    }
  }

  @Test func aDelegateMayAcceptWhomTheEvaluatorsWouldRefuse() async throws {
    let delegate = Delegate { (.useCredential, URLCredential(trust: $0)) }
    let session = session(["localhost": Slow(refuses: true)], delegate: delegate)
    #expect(await session.request(server.url("/get")).serializingData().response.error == nil)
    #expect(delegate.calls.values == ["NSURLAuthenticationMethodServerTrust localhost 1"])
  }

  @Test func aDelegateMayLeaveItToTheEvaluators() async throws {
    let delegate = Delegate { _ in (.performDefaultHandling, nil) }
    let slow = Slow(refuses: true)
    let session = session(["localhost": slow], delegate: delegate)
    let error = await session.request(server.url("/get")).serializingData().response.error
    #expect(error?.isServerTrustEvaluationError == true)
    #expect(slow.calls.values.count == 1)
  }

  @Test func aDelegateMayLeaveItToTheTrustStore() async throws {
    let delegate = Delegate { _ in (.performDefaultHandling, nil) }
    let session = session([:], all: false, delegate: delegate)
    #expect(await session.request(server.url("/get")).serializingData().response.error == nil)
    let stranger = try HTTPTestServer(.tls(TestIdentity(.init(commonName: "x", dnsNames: ["localhost"]))))
    let error = await session.request(stranger.url("/get")).serializingData().response.error
    #expect((error?.underlyingError as? URLError)?.code == .serverCertificateHasUnknownRoot)
    #expect(stranger.requestCount == 0)
  }

  @Test(arguments: [
    URLSession.AuthChallengeDisposition.cancelAuthenticationChallenge, .rejectProtectionSpace,
  ])
  func aDelegateMayRefuse(disposition: URLSession.AuthChallengeDisposition) async throws {
    let delegate = Delegate { _ in (disposition, nil) }
    let session = session([:], all: false, delegate: delegate)
    let error = await session.request(server.url("/get")).serializingData().response.error
    let code = (error?.underlyingError as? URLError)?.code
    #expect(
      code == (disposition == .rejectProtectionSpace ? .serverCertificateUntrusted : .cancelled))
    #expect(server.requestCount == 0)
  }

  @Test func monitorsAreToldOfEveryServer() async throws {
    let told = Recorder<String>()
    let monitor = ClosureEventMonitor()
    monitor.taskDidReceiveChallenge = { _, _, challenge in
      told.add("\(challenge.protectionSpace.authenticationMethod) \(challenge.protectionSpace.host)")
    }
    let session = session(["localhost": DefaultTrustEvaluator()], monitors: [monitor])
    for _ in 0..<2 {
      #expect(await session.request(server.url("/get")).serializingData().response.error == nil)
    }
    #expect(told.values == ["NSURLAuthenticationMethodServerTrust localhost"])
  }

  @Test func aRequestBringsItsOwnIdentity() async throws {
    let options = TLSOptions(
      clientAuthority: TestIdentity.localhostAuthority.caPEM, requiresClientCertificate: false)
    let server = try HTTPTestServer(.tls(.localhost, options))
    let ada = try TestIdentity(.init(commonName: "Ada", issuer: .localhostAuthority))
    let identity = try ClientIdentity(
      pem: Data(ada.certificatePEM.utf8), privateKey: Data(ada.privateKeyPEM.utf8))
    let session = session([:], all: false)
    _ = await session.request(server.url("/get")).serializingData().response
    _ = await session.request(server.url("/get")).transportOptions { $0.clientIdentity = identity }
      .serializingData().response
    _ = await session.request(server.url("/get")).authenticate(with: ClientIdentityCredential(identity))
      .serializingData().response
    var shown: [String?] = []
    for _ in 0..<3 { shown.append(try await server.takeRequest().tls?.clientCertificatePEM) }
    #expect(shown == [nil, ada.certificatePEM, ada.certificatePEM])
  }

  @Test(arguments: [TLSOptions.Version.tls1_2, .tls1_3], [false, true])
  func aDelegateChoosesTheIdentity(version: TLSOptions.Version, isRequired: Bool) async throws {
    let options = TLSOptions(
      maximumVersion: version, clientAuthority: TestIdentity.localhostAuthority.caPEM,
      requiresClientCertificate: isRequired)
    let server = try HTTPTestServer(.tls(.localhost, options))
    let ada = try TestIdentity(.init(commonName: "Ada", issuer: .localhostAuthority))
    let delegate = IdentityChooser(
      try ClientIdentity(pem: Data(ada.certificatePEM.utf8), privateKey: Data(ada.privateKeyPEM.utf8)))
    let session = session([:], all: false, delegate: delegate)
    #expect(await session.request(server.url("/get")).serializingData().response.error == nil)
    #expect(try await server.takeRequest().tls?.clientCertificatePEM == ada.certificatePEM)
    #expect(delegate.calls.values == ["localhost request"])
    #expect(server.requestCount == 1)
  }

  @Test(arguments: [TLSOptions.Version.tls1_2, .tls1_3])
  func aDelegateMayChooseToBeNobody(version: TLSOptions.Version) async throws {
    func server(_ isRequired: Bool) throws -> HTTPTestServer {
      try HTTPTestServer(
        .tls(
          .localhost,
          TLSOptions(
            maximumVersion: version, clientAuthority: TestIdentity.localhostAuthority.caPEM,
            requiresClientCertificate: isRequired)))
    }
    let (lenient, strict) = (try server(false), try server(true))
    let delegate = IdentityChooser(nil)
    let session = session([:], all: false, delegate: delegate)
    for _ in 0..<2 {
      #expect(await session.request(lenient.url("/get")).serializingData().response.error == nil)
    }
    #expect(delegate.calls.values == ["localhost request"])
    let error = await session.request(strict.url("/get")).serializingData().response.error
    let code = (error?.underlyingError as? URLError)?.code
    #expect(code == .clientCertificateRequired || code == .secureConnectionFailed)
    #expect(strict.requestCount == 0)
  }

  @Test func anIdentityThatCannotBeReadSaysWhy() throws {
    let ada = try TestIdentity(.init(commonName: "Ada", issuer: .localhostAuthority))
    let other = try TestIdentity(.init(commonName: "Other", issuer: .localhostAuthority))
    #expect(throws: ClientIdentity.Failure.keyDoesNotMatch) {
      try ClientIdentity(pem: Data(ada.certificatePEM.utf8), privateKey: Data(other.privateKeyPEM.utf8))
    }
    #expect(throws: ClientIdentity.Failure.self) {
      try ClientIdentity(pkcs12: Data("no file".utf8), passphrase: "")
    }
    #expect(ClientIdentity.Failure.wrongPassphrase.localizedDescription.contains("passphrase"))
  }
}
