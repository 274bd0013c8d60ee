import COpenSSL
import Glibc
import HTTPEngine
import HTTPTestServer
import Testing

/// How a process ends while threads of ours are at work.
@Suite(.timeLimit(.minutes(5))) struct ExitTests {
  @Test func openSSLIsNotTornDownUnderAThread() async {
    await #expect(processExitsWith: .success) {
      let server = try HTTPTestServer(.tls(.localhost))
      _ = try await Client().get(server.url("/get"))
      // What OpenSSL calls first when it begins to free what all threads share.
      OPENSSL_atexit { _exit(70) }
      exit(EXIT_SUCCESS)
    }
  }

  @Test func aProcessEndsWhileItsLoopsEnd() async {
    await #expect(processExitsWith: .success) {
      let server = try HTTPTestServer(.tls(.localhost))
      let clients = (0..<30).map { _ in Client() }
      for client in clients { _ = try await client.get(server.url("/get")) }
      // Their threads close connections, clear up and end, beside what `exit` does.
      for client in clients { client.transport.shutDown() }
      exit(EXIT_SUCCESS)
    }
  }
}
