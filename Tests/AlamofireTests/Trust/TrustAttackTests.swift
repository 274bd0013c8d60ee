import Alamofire
import Foundation
import FoundationNetworking
import HTTPTestServer
import HTTPWire
import Testing

@Suite("Attacks on trust", .timeLimit(.minutes(5))) struct TrustAttackTests {
  /// A delegate that answers every challenge with the same credential. Unchecked, as its superclass is: its only state
  /// is a recorder, which has a lock.
  private final class RepeatingDelegate: SessionDelegate, @unchecked Sendable {
    let calls = Recorder<String>()
    let credential: URLCredential?

    init(_ credential: URLCredential?) {
      self.credential = credential
      super.init()
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      calls.add(challenge.protectionSpace.authenticationMethod)
      completionHandler(.useCredential, credential)
    }
  }

  private static func ada() throws -> ClientIdentity {
    let ada = try TestIdentity(.init(commonName: "Ada", issuer: .localhostAuthority))
    return try ClientIdentity(pem: Data(ada.certificatePEM.utf8), privateKey: Data(ada.privateKeyPEM.utf8))
  }

  @Test("A delegate with one answer to all challenges trusts no unknown server", arguments: [0, 1, 2])
  func oneAnswer(kind: Int) async throws {
    let credential: URLCredential? =
      switch kind {
      case 0: URLCredential(user: "ann", password: "pass", persistence: .forSession)
      case 1: ClientIdentityCredential(try Self.ada())
      default: nil
      }
    let untrusted = try HTTPTestServer(.tls(TestIdentity(.init(commonName: "x", dnsNames: ["localhost"]))))
    let delegate = RepeatingDelegate(credential)
    let session = Session(delegate: delegate)
    let error = await session.request(untrusted.url("/get")).serializingData().response.error
    #expect((error?.underlyingError as? URLError)?.code == .serverCertificateHasUnknownRoot)
    #expect(delegate.calls.values == [NSURLAuthenticationMethodServerTrust])
    #expect(untrusted.receivedByteCount == 0)
  }

  @Test("A client certificate does not answer a password challenge") func certificateForPassword()
    async throws
  {
    let server = try HTTPTestServer()
    let delegate = RepeatingDelegate(ClientIdentityCredential(try Self.ada()))
    let session = Session(delegate: delegate)
    let response = await session.request(server.url("/basic-auth/ann/pass")).serializingData().response
    #expect(response.response?.statusCode == 401)
    #expect(delegate.calls.values == [NSURLAuthenticationMethodHTTPBasic])
    #expect(server.recordedRequests.allSatisfy { $0.header("Authorization") == nil })
  }

  private final class Stuck: ServerTrustEvaluating {
    let calls = Recorder<String>()
    let gate = DispatchSemaphore(value: 0)

    func evaluate(_ trust: SecTrust, forHost host: String) throws {
      calls.add(host)
      gate.wait()
    }
  }

  @Test("Cancelling does not wait for an evaluator", arguments: [false, true])
  func cancelling(endsSession: Bool) async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let stuck = Stuck()
    let session = Session(serverTrustManager: ServerTrustManager(evaluators: ["localhost": stuck]))
    let request = session.request(server.url("/get"))
    async let response = request.serializingData().response
    await stuck.calls.wait(for: 1)
    if endsSession { session.session.invalidateAndCancel() } else { request.cancel() }
    let error = await response.error
    #expect(error?.isExplicitlyCancelledError == true || error?.isSessionInvalidatedError == true)
    // The evaluator returns after the end of the request.
    stuck.gate.signal()
    #expect(server.receivedByteCount == 0)
  }

  @Test("The total timeout includes the time of an evaluator") func timeOfEvaluator() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let stuck = Stuck()
    let configuration = URLSessionConfiguration.isolated
    configuration.timeoutIntervalForResource = 0.3
    let session = Session(
      configuration: configuration, serverTrustManager: ServerTrustManager(evaluators: ["localhost": stuck]))
    let error = await session.request(server.url("/get")).serializingData().response.error
    #expect((error?.underlyingError as? URLError)?.code == .timedOut)
    // The session has no delegate.
    #expect(error?.localizedDescription.contains("The delegate") == false)
    stuck.gate.signal()
    #expect(server.receivedByteCount == 0)
  }

  /// A delegate that stores every completion and calls none.
  private final class Silent: SessionDelegate, @unchecked Sendable {
    typealias Completion = (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    // Accessed on the root queue, and by the test at its end.
    var kept: [Completion] = []

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping Completion
    ) {
      kept.append(completionHandler)
    }
  }

  @Test("The total timeout includes the time of a delegate", arguments: [false, true])
  func silence(isSecure: Bool) async throws {
    let server = isSecure ? try HTTPTestServer(.tls(.localhost)) : try HTTPTestServer()
    let configuration = URLSessionConfiguration.isolated
    configuration.timeoutIntervalForResource = 0.3
    let delegate = Silent()
    let session = Session(configuration: configuration, delegate: delegate)
    let error = await session.request(server.url("/basic-auth/ann/pass")).serializingData().response.error
    #expect((error?.underlyingError as? URLError)?.code == .timedOut)
    #expect(delegate.kept.count == 1)
    for completion in delegate.kept { completion(.useCredential, nil) }
    #expect(server.requestCount == (isSecure ? 0 : 1))
  }

  /// A delegate that chooses an identity for one server, and none for others.
  private final class SingleServerDelegate: SessionDelegate, @unchecked Sendable {
    let calls = Recorder<Int>()
    let identity: ClientIdentity
    let port: Int

    init(_ identity: ClientIdentity, to port: Int) {
      self.identity = identity
      self.port = port
      super.init()
    }

    override func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      let space = challenge.protectionSpace
      guard space.authenticationMethod == NSURLAuthenticationMethodClientCertificate else {
        return completionHandler(.performDefaultHandling, nil)
      }
      calls.add(space.port)
      guard space.port == port else { return completionHandler(.performDefaultHandling, nil) }
      completionHandler(.useCredential, ClientIdentityCredential(identity))
    }
  }

  @Test(
    "A client certificate is not presented to another server after a redirect, and again to its own server",
    arguments: ["delegate", "credential", "options"])
  func redirect(way: String) async throws {
    let asking = TLSOptions(
      clientAuthority: TestIdentity.localhostAuthority.caPEM, requiresClientCertificate: false)
    let (first, other) = (
      try HTTPTestServer(.tls(.localhost, asking)), try HTTPTestServer(.tls(.localhost, asking))
    )
    first.enqueue(.redirect(to: other.url("/there")), .text("home"))
    other.enqueue(.redirect(to: first.url("/back")))
    let ada = try Self.ada()
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    if way == "options" { options.clientIdentity = ada }
    let delegate = SingleServerDelegate(ada, to: first.port)
    let session = Session(
      delegate: way == "delegate" ? delegate : SessionDelegate(), transportOptions: options)
    let request = session.request(first.url("/"))
    if way == "credential" {
      request.authenticate(with: ClientIdentityCredential(ada)).transportOptions { $0.redirectLimit = 7 }
    }
    let response = await request.serializingString().response
    #expect(response.value == "home")
    var shown: [Bool] = []
    for server in [first, other, first] {
      shown.append(try await server.takeRequest().tls?.clientCertificatePEM != nil)
    }
    #expect(shown == [true, way == "options", true])
    if way == "delegate" { #expect(Set(delegate.calls.values) == [first.port, other.port]) }
  }

  @Test("A delegate that cancels the choice of a client certificate cancels the request")
  func cancelledChoice() async throws {
    let asking = TLSOptions(
      clientAuthority: TestIdentity.localhostAuthority.caPEM, requiresClientCertificate: false)
    let server = try HTTPTestServer(.tls(.localhost, asking))
    var options = TransportOptions()
    options.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    let delegate = IdentityChooser(nil, cancels: true)
    let session = Session(delegate: delegate, transportOptions: options)
    let response = await session.request(server.url("/")).serializingString().response
    #expect((response.error?.underlyingError as? URLError)?.code == .cancelled, "\(response)")
    #expect(delegate.calls.values == ["localhost request"] && server.requestCount == 0)
  }

  @Test("Spellings of an address are one host") func spellings() throws {
    struct Named: ServerTrustEvaluating {
      let name: String
      func evaluate(_ trust: SecTrust, forHost host: String) throws {}
    }
    let names = ["[2001:DB8::1]", "fe80::1", "::ffff:192.0.2.1"]
    let manager = ServerTrustManager(
      allHostsMustBeEvaluated: false,
      evaluators: Dictionary(uniqueKeysWithValues: names.map { ($0, Named(name: $0)) }))
    func match(_ host: String) throws -> String? {
      (try manager.serverTrustEvaluator(forHost: host) as? Named)?.name
    }
    for host in ["2001:db8::1", "2001:db8:0:0::0:1", "2001:0db8:0000:0000:0000:0000:0000:0001"] {
      #expect(try match(host) == "[2001:DB8::1]")
    }
    for host in ["fe80::1%25eth0", "fe80:0::1", "fe80::1"] { #expect(try match(host) == "fe80::1") }
    #expect(try match("::ffff:c000:201") == "::ffff:192.0.2.1")
    for host in ["2001:db8::2", "fe80::1:1", "192.0.2.1", "::"] { #expect(try match(host) == nil) }
  }

  @Test(
    "Hosts that only look like the certificate's are refused",
    arguments: [
      ".api.lab.localhost", ".lab.localhost", ".localhost", ".", "api.lab.localhost..", "*.lab.localhost",
      "*",
      "api.lab.localhost\0.evil.example", "api.lab.localhost:443", "api.lab.localhost@evil.example", "127.1",
      "::ffff:127.0.0.1", "::1%25lo",
    ])
  func similarHosts(host: String) throws {
    let trustFixtures = try TrustFixtures.shared.get()
    let identity = try trustFixtures.server { $0.ipAddresses = ["127.0.0.1"] }
    let trust = try trustFixtures.fixture(identity).trust()
    let failure = #expect(throws: AFError.self) { try trust.af.performValidation(forHost: host) }
    #expect(EvaluationTable.word(for: failure) == "host")
    #expect(throws: Never.self) { try trust.af.performValidation(forHost: "API.lab.localhost.") }
  }

  @Test("A byte order mark does not hide a certificate") func byteOrderMark() throws {
    let trustFixtures = try TrustFixtures.shared.get()
    let text =
      "\u{FEFF}" + trustFixtures.root.certificatePEM + "\r\njunk\r\n" + trustFixtures.middle.certificatePEM
    #expect(try Certificate.all(in: Data(text.utf8)).count == 2)
    let keys = try Certificate.all(in: Data(text.replacing("\n", with: "\r\n").utf8)).af.publicKeys
    #expect(keys.count == 2)
    let server = try trustFixtures.server()
    let identity = try ClientIdentity(
      pem: Data(("\u{FEFF}" + server.certificatePEM).utf8),
      privateKey: Data(("\u{FEFF}" + server.privateKeyPEM).utf8))
    #expect(identity.subject == "CN=Server")
  }

  @Test("The private key of a client is in no description") func privateKey() throws {
    let identity = try Self.ada()
    var options = TransportOptions()
    options.clientIdentity = identity
    var text = ""
    dump(options, to: &text)
    dump(ClientIdentityCredential(identity), to: &text)
    text += "\(options) \(String(reflecting: options))"
    #expect(text.contains("CN=Ada"))
    #expect(!text.contains("privateKey"))
  }
}
