import COpenSSL
import FoundationEssentials
import Glibc
import HTTPEngine
import HTTPTestServer
import Testing

/// The end of a process while threads of the engine run. The server is in another process, so that its threads do not
/// matter.
@Suite(.timeLimit(.minutes(5))) struct ExitTests {
  private let server: HTTPTestServer

  init() throws { server = try HTTPTestServer(.tls(.localhost)) }

  private static func client(trusting authority: String) -> Client {
    Client { $0.trustStore = .pem(Data(authority.utf8)) }
  }

  @Test("OpenSSL is not freed while a thread uses it") func openSSL() async {
    await #expect(processExitsWith: .success) {
      [url = server.url("/get") as String, authority = TestIdentity.localhostAuthority.caPEM as String] in
      _ = try await Self.client(trusting: authority).get(url)
      // OpenSSL calls this first when it frees its global state.
      OPENSSL_atexit { _exit(70) }
      exit(EXIT_SUCCESS)
    }
  }

  @Test("A process ends while its loops end") func endOfProcess() async {
    await #expect(processExitsWith: .success) {
      [url = server.url("/get") as String, authority = TestIdentity.localhostAuthority.caPEM as String] in
      let clients = (0..<30).map { _ in Self.client(trusting: authority) }
      for client in clients { _ = try await client.get(url) }
      // Their threads close connections, clean up and end while `exit` runs.
      for client in clients { client.transport.shutDown() }
      exit(EXIT_SUCCESS)
    }
  }
}
