import FoundationEssentials
import HTTPEngine
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

/// An evaluator with a list of verdicts, of which the last one is repeated. It counts its calls.
private final class ScriptedEvaluator: ServerEvaluator {
  struct Refusal: Error, Equatable {}

  private let wantsStapled: Bool
  private let state: Mutex<(verdicts: [TrustVerdict], chains: [PresentedChain])>

  init(_ verdicts: [TrustVerdict], requestsStapledResponse: Bool = false) {
    wantsStapled = requestsStapledResponse
    state = Mutex((verdicts, []))
  }

  var chains: [PresentedChain] { state.withLock { $0.chains } }

  func evaluate(_ chain: PresentedChain, for profile: ConnectionProfile) -> TrustVerdict {
    state.withLock { state in
      state.chains.append(chain)
      return state.verdicts.count > 1 ? state.verdicts.removeFirst() : state.verdicts[0]
    }
  }

  func requestsStapledResponse(ofHost host: String) -> Bool { wantsStapled }
}

@Suite("Resumed TLS sessions", .timeLimit(.minutes(5))) struct ResumptionTests {
  /// Without keep-alive each request connects again, and resumes if it may.
  private static let close = [HTTPHeader(name: "Connection", value: "close")]

  private struct Chain {
    let root: TestIdentity
    let server: TestIdentity

    init() throws {
      root = try TestIdentity(.init(commonName: "Root", isCA: true))
      let middle = try TestIdentity(.init(commonName: "Middle", isCA: true, issuer: root))
      server = try TestIdentity(.init(commonName: "localhost", dnsNames: ["localhost"], issuer: middle))
    }
  }

  private func isResumed(_ server: HTTPTestServer) async throws -> Bool {
    try #require(await server.takeRequest().tls).isResumed
  }

  @Test("Sessions of a server that is still trusted are resumed", arguments: TLSOptions.Version.allCases)
  func resumesTrusted(version: TLSOptions.Version) async throws {
    let chain = try Chain()
    let server = try HTTPTestServer(.tls(chain.server, TLSOptions(maximumVersion: version)))
    let client = Client { $0.trustStore = .pem(Data(chain.root.caPEM.utf8)) }
    for index in 0..<3 {
      #expect(try await client.send(client.request(server.url("/get"), fields: Self.close)).status == 200)
      #expect(try await isResumed(server) == (index > 0))
    }
  }

  @Test("A trust store that changed refuses the server of a session", arguments: TLSOptions.Version.allCases)
  func refusesAfterChangeOfAuthorities(version: TLSOptions.Version) async throws {
    let chain = try Chain()
    let other = try TestIdentity(.init(commonName: "Other root", isCA: true))
    let file = FileManager.default.temporaryDirectory.appending(path: "authority-\(UUID().uuidString).pem")
    try Data(chain.root.caPEM.utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let server = try HTTPTestServer(.tls(chain.server, TLSOptions(maximumVersion: version)))
    let client = Client { $0.trustStore = .file(file.path) }
    let request = try client.request(server.url("/get"), fields: Self.close)
    #expect(try await client.send(request).status == 200)
    try Data((other.caPEM + other.caPEM).utf8).write(to: file)
    #expect(try await client.failure(of: request).kind == .certificateHasUnknownRoot)
    #expect(server.requestCount == 1)
  }

  @Test(
    "An evaluator that refuses the server of a session ends the request",
    arguments: TLSOptions.Version.allCases)
  func refusesAfterVerdict(version: TLSOptions.Version) async throws {
    let server = try HTTPTestServer(.tls(.localhost, TLSOptions(maximumVersion: version)))
    let evaluator = ScriptedEvaluator([.accept, .refuse(ScriptedEvaluator.Refusal())])
    let profile = ConnectionProfile(options: TransportOptions(), evaluator: evaluator)
    let client = Client()
    let request = try client.request(server.url("/get"), fields: Self.close, profile: profile)
    #expect(try await client.send(request).status == 200)
    let failure = try await client.failure(of: request)
    #expect(failure.kind == .trustRefused)
    #expect(failure.cause as? ScriptedEvaluator.Refusal == ScriptedEvaluator.Refusal())
    #expect(server.requestCount == 1)
  }

  @Test("An evaluator that decides on another thread receives the chain of the full handshake")
  func asksAgain() async throws {
    let server = try HTTPTestServer(.tls(.localhost))
    let evaluator = ScriptedEvaluator([.accept, .ask])
    let profile = ConnectionProfile(options: TransportOptions(), evaluator: evaluator)
    let client = Client()
    let request = try client.request(server.url("/get"), fields: Self.close, profile: profile)
    #expect(try await client.send(request).status == 200)
    let failure = try await client.failure(of: request)
    #expect(failure.kind == .trustUndecided)
    #expect(failure.chain == evaluator.chains.first)
    #expect(server.requestCount == 1)
  }

  @Test(
    "A refused session gives way to a full handshake, which counts", arguments: TLSOptions.Version.allCases)
  func fallsBackToFullHandshake(version: TLSOptions.Version) async throws {
    let chain = try Chain()
    let server = try HTTPTestServer(.tls(chain.server, TLSOptions(maximumVersion: version)))
    let evaluator = ScriptedEvaluator([.accept, .refuse(ScriptedEvaluator.Refusal()), .accept])
    let profile = ConnectionProfile(options: TransportOptions(), evaluator: evaluator)
    let client = Client()
    var resumed: [Bool] = []
    for _ in 0..<3 {
      let request = try client.request(server.url("/get"), fields: Self.close, profile: profile)
      #expect(try await client.send(request).status == 200)
      resumed.append(try await isResumed(server))
    }
    // First a full handshake, then the refused session and a full one, then a session of that.
    #expect(resumed == [false, false, true])
    #expect(evaluator.chains.count == 4)
    #expect(Set(evaluator.chains).count == 1, "the chain of a session is the one that was presented")
  }

  @Test(
    "An evaluator of stapled responses gets one in each handshake", arguments: TLSOptions.Version.allCases)
  func doesNotResumeWhereStaplesCount(version: TLSOptions.Version) async throws {
    var options = TLSOptions(maximumVersion: version)
    options.stapledResponse = [1, 2, 3]
    let server = try HTTPTestServer(.tls(.localhost, options))
    let evaluator = ScriptedEvaluator([.accept], requestsStapledResponse: true)
    let profile = ConnectionProfile(options: TransportOptions(), evaluator: evaluator)
    let client = Client()
    for _ in 0..<3 {
      let request = try client.request(server.url("/get"), fields: Self.close, profile: profile)
      #expect(try await client.send(request).status == 200)
      #expect(try await isResumed(server) == false)
    }
    #expect(evaluator.chains.map(\.stapledResponse) == Array(repeating: Data([1, 2, 3]), count: 3))
  }

  @Test("Sessions of a proxy that is still trusted are resumed", arguments: TLSOptions.Version.allCases)
  func resumesProxy(version: TLSOptions.Version) async throws {
    let proxy = try HTTPTestServer(.tls(.localhost, TLSOptions(maximumVersion: version)))
    for _ in 0..<3 { proxy.enqueue(.text("by proxy").closing()) }
    var way = ProxyServer(.https, host: "localhost", port: proxy.port)
    way.trustStore = .pem(Data(TestIdentity.localhostAuthority.caPEM.utf8))
    let client = Client { [way] in $0.proxy = .server(way) }
    for index in 0..<3 {
      #expect(try await client.get("http://nowhere.test/").text == "by proxy")
      #expect(try await isResumed(proxy) == (index > 0))
    }
    #expect(proxy.connectionCount == 3)
  }

  @Test("A proxy that is no longer trusted does not get a CONNECT", arguments: TLSOptions.Version.allCases)
  func refusesProxyAfterChange(version: TLSOptions.Version) async throws {
    let other = try TestIdentity(.init(commonName: "Other root", isCA: true))
    let file = FileManager.default.temporaryDirectory.appending(path: "authority-\(UUID().uuidString).pem")
    try Data(TestIdentity.localhostAuthority.caPEM.utf8).write(to: file)
    defer { try? FileManager.default.removeItem(at: file) }
    let proxy = try HTTPTestServer(.tls(.localhost, TLSOptions(maximumVersion: version)))
    proxy.enqueue(.text("one").with(header: "Connection", value: "close"), .text("two"))
    var way = ProxyServer(.https, host: "localhost", port: proxy.port)
    way.trustStore = .file(file.path)
    let client = Client { [way] in $0.proxy = .server(way) }
    #expect(try await client.get("http://nowhere.test/").text == "one")
    try Data((other.caPEM + other.caPEM).utf8).write(to: file)
    #expect(try await client.failure(of: "http://nowhere.test/").kind == .certificateHasUnknownRoot)
    #expect(proxy.requestCount == 1)
  }
}
