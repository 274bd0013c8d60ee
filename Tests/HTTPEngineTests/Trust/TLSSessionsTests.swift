import COpenSSL
import FoundationEssentials
import HTTPTestServer
import HTTPWire
import Testing

@testable import HTTPEngine

@Suite("TLS sessions of a loop", .timeLimit(.minutes(1)))
struct TLSSessionsTests {
  private static func session(_ version: Int32) throws -> OpaquePointer {
    let session = try #require(SSL_SESSION_new())
    SSL_SESSION_set_protocol_version(session, version)
    return session
  }

  private static func offered(_ sessions: TLSSessions, _ key: String = "a") -> OpaquePointer? {
    var found: OpaquePointer?
    sessions.withSession(for: key) { found = $0 }
    return found
  }

  @Test("The newest two sessions of a key are stored, and each of TLS 1.3 is used once") func order() throws {
    let sessions = TLSSessions()
    let all = try (0..<3).map { _ in try Self.session(TLS1_3_VERSION) }
    for session in all { sessions.keep(session, for: "a") }
    #expect(Self.offered(sessions, "b") == nil)
    #expect(Self.offered(sessions) == all[2])
    #expect(Self.offered(sessions) == all[1])
    #expect(Self.offered(sessions) == nil)
  }

  @Test("A session of TLS 1.2 is used again") func olderVersion() throws {
    let sessions = TLSSessions()
    let session = try Self.session(TLS1_2_VERSION)
    sessions.keep(session, for: "a")
    for _ in 0..<3 { #expect(Self.offered(sessions) == session) }
  }

  @Test("The sessions of at most 256 keys are stored") func capacity() throws {
    let sessions = TLSSessions()
    for number in 0..<256 { sessions.keep(try Self.session(TLS1_3_VERSION), for: "\(number)") }
    #expect(Self.offered(sessions, "0") != nil)
    sessions.keep(try Self.session(TLS1_3_VERSION), for: "new")
    #expect(Self.offered(sessions, "1") == nil && Self.offered(sessions, "new") != nil)
  }

  @Test("A server of TLS 1.2 receives no byte while other code decides about it", arguments: [true, false])
  func undecided(wantsStapled: Bool) async throws {
    let server = try HTTPTestServer(.tls(.localhost, TLSOptions(maximumVersion: .tls1_2)))
    let evaluator = FixedEvaluator(.ask, requestsStapledResponse: wantsStapled)
    let profile = ConnectionProfile(options: Client.profile().options, evaluator: evaluator)
    let client = Client()
    let failure = try await client.failure(of: client.request(server.url("/get"), profile: profile))
    #expect(failure.kind == .trustUndecided, "\(failure.message)")
    #expect(server.requestCount == 0 && !evaluator.chains.isEmpty)
  }
}
