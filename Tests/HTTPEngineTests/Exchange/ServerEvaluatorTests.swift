import FoundationEssentials
import HTTPEngine
import HTTPSystem
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

/// An evaluator with one verdict. It records the chains.
final class FixedEvaluator: ServerEvaluator {
  struct Refusal: Error, Equatable {}

  private let verdict: TrustVerdict
  private let wantsStapled: Bool
  private let wantsToChoose: Bool
  private let seen = Mutex<[PresentedChain]>([])

  init(_ verdict: TrustVerdict, requestsStapledResponse: Bool = false, choosesIdentity: Bool = false) {
    self.verdict = verdict
    wantsStapled = requestsStapledResponse
    wantsToChoose = choosesIdentity
  }

  var chains: [PresentedChain] { seen.withLock { $0 } }

  func evaluate(_ chain: PresentedChain, for profile: ConnectionProfile) -> TrustVerdict {
    seen.withLock { $0.append(chain) }
    return verdict
  }

  func requestsStapledResponse(ofHost host: String) -> Bool { wantsStapled }
  func choosesIdentity(forHost host: String, port: Int) -> Bool { wantsToChoose }
}

@Suite(.timeLimit(.minutes(5))) struct ServerEvaluatorTests {
  func profile(_ evaluator: FixedEvaluator, _ change: (inout TransportOptions) -> Void = { _ in })
    -> ConnectionProfile
  {
    ConnectionProfile(options: Client.profile(6, change).options, evaluator: evaluator)
  }

  @Test(
    "A server that the evaluator accepts receives the request",
    arguments: [TLSOptions.Version.tls1_2, .tls1_3],
    [false, true])
  func accepted(version: TLSOptions.Version, atStatus: Bool) async throws {
    // The certificate is self-signed and for another host, so only the evaluator accepts it.
    let stranger = try TestIdentity(.init(commonName: "stranger", dnsNames: ["stranger.example"]))
    let server = try HTTPTestServer(.tls(stranger, TLSOptions(maximumVersion: version)))
    let evaluator = FixedEvaluator(.accept, requestsStapledResponse: atStatus)
    let client = Client()
    for _ in 0..<3 {
      let request = try client.request(server.url("/get"), profile: profile(evaluator))
      #expect(try await client.send(request).status == 200)
    }
    #expect(evaluator.chains.count == server.connectionCount)
    let chain = try #require(evaluator.chains.first)
    #expect(chain.host == "localhost")
    #expect(server.url("/").contains(":\(chain.port)/"))
    #expect(chain.certificates.count == 1)
    #expect(X509Certificate(der: chain.certificates[0])?.subject == "CN=stranger")
    #expect(chain.stapledResponse == nil)
  }

  @Test("The evaluator receives the whole chain in order") func chain() async throws {
    let root = try TestIdentity(.init(commonName: "Root", isCA: true))
    let middle = try TestIdentity(.init(commonName: "Middle", isCA: true, issuer: root))
    let leaf = try TestIdentity(.init(commonName: "localhost", dnsNames: ["localhost"], issuer: middle))
    let server = try HTTPTestServer(.tls(leaf))
    let evaluator = FixedEvaluator(.accept)
    let client = Client()
    _ = try await client.send(client.request(server.url("/get"), profile: profile(evaluator)))
    let names = evaluator.chains.first?.certificates.map { X509Certificate(der: $0)?.subject }
    #expect(names == ["CN=localhost", "CN=Middle"])
  }

  @Test(
    "A server that the evaluator refuses receives no byte", arguments: [TLSOptions.Version.tls1_2, .tls1_3],
    [false, true])
  func refused(version: TLSOptions.Version, atStatus: Bool) async throws {
    let server = try HTTPTestServer(.tls(.localhost, TLSOptions(maximumVersion: version)))
    let evaluator = FixedEvaluator(.refuse(FixedEvaluator.Refusal()), requestsStapledResponse: atStatus)
    let client = Client()
    let failure = try await client.failure(
      of: client.request(server.url("/get"), profile: profile(evaluator)))
    #expect(failure.kind == .trustRefused)
    #expect(failure.cause as? FixedEvaluator.Refusal == FixedEvaluator.Refusal())
    #expect(failure.helps(host: "localhost"))
    #expect(server.requestCount == 0)
  }

  @Test("A server receives no byte while its evaluation is pending") func pending() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let evaluator = FixedEvaluator(.ask)
    let client = Client()
    let failure = try await client.failure(
      of: client.request(server.url("/get"), profile: profile(evaluator)))
    #expect(failure.kind == .trustUndecided)
    #expect(failure.chain == evaluator.chains.first)
    #expect(server.requestCount == 0)
  }

  @Test("An evaluator without a decision leaves it to the trust store") func undecided() async throws {
    let good = try HTTPTestServer(.tls(.localhost))
    let stranger = try HTTPTestServer(.tls(TestIdentity(.init(commonName: "x", dnsNames: ["localhost"]))))
    let evaluator = FixedEvaluator(.usual)
    let client = Client()
    #expect(
      try await client.send(client.request(good.url("/get"), profile: profile(evaluator))).status == 200)
    let failure = try await client.failure(
      of: client.request(stranger.url("/get"), profile: profile(evaluator)))
    #expect(failure.kind == .certificateHasUnknownRoot)
  }

  @Test("A certificate without alternative names is refused") func noAlternativeNames() async throws {
    let old = try TestIdentity(.init(commonName: "localhost", issuer: .localhostAuthority))
    let server = try HTTPTestServer(.tls(old))
    let failure = try await Client().failure(of: server.url("/get"))
    #expect(failure.kind == .certificateUntrusted)
    #expect(failure.message.contains("SAN"))
    #expect(server.requestCount == 0)
  }

  @Test("A TLS session is not resumed in another partition") func partition() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let client = Client()
    let other = Client.profile { $0.trustStore = .pem(Data((Self.authority + Self.authority).utf8)) }
    // Without keep-alive each request connects again, and resumes if it may.
    let close = [HTTPHeader(name: "Connection", value: "close")]
    for profile in [client.profile, client.profile, other, other, client.profile] {
      let request = try client.request(server.url("/get"), fields: close, profile: profile)
      #expect(try await client.send(request).status == 200)
    }
    var resumed: [Bool] = []
    for _ in 0..<5 { resumed.append(try #require(await server.takeRequest().tls).isResumed) }
    #expect(resumed[1] && resumed[3], "sessions are resumed at all: \(resumed)")
    #expect(resumed[2] == false, "a session of another trust store was resumed: \(resumed)")
  }

  static let authority = TestIdentity.localhostAuthority.caPEM
}
