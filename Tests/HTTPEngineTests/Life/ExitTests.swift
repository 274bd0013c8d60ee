import COpenSSL
import FoundationEssentials
import Glibc
import HTTPEngine
import HTTPTestServer
import Testing

/// How a process ends while threads of ours are at work. The server is another process's, so that its threads have no part
/// in this.
@Suite(.timeLimit(.minutes(5))) struct ExitTests {
  private let server: HTTPTestServer

  init() throws { server = try HTTPTestServer(.tls(.localhost)) }

  private static func client(trusting authority: String) -> Client {
    Client { $0.trustStore = .pem(Data(authority.utf8)) }
  }

  @Test func openSSLIsNotTornDownUnderAThread() async {
    await #expect(processExitsWith: .success) {
      [url = server.url("/get") as String, authority = TestIdentity.localhostAuthority.caPEM as String] in
      _ = try await Self.client(trusting: authority).get(url)
      // What OpenSSL calls first when it begins to free what all threads share.
      OPENSSL_atexit { _exit(70) }
      exit(EXIT_SUCCESS)
    }
  }

  @Test func aProcessEndsWhileItsLoopsEnd() async {
    await #expect(processExitsWith: .success) {
      [url = server.url("/get") as String, authority = TestIdentity.localhostAuthority.caPEM as String] in
      let clients = (0..<30).map { _ in Self.client(trusting: authority) }
      for client in clients { _ = try await client.get(url) }
      // Their threads close connections, clear up and end, beside what `exit` does.
      for client in clients { client.transport.shutDown() }
      exit(EXIT_SUCCESS)
    }
  }
}
