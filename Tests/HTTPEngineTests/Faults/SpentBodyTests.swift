import HTTPEngine
import HTTPTestServer
import HTTPWire
import Synchronization
import Testing

@Suite("Bodies that can be read once", .timeLimit(.minutes(5))) struct SpentBodyTests {
  /// A source of four bytes that starts once.
  private final class OnceSource: BodySource {
    let length: Int64 = 4
    let isRepeatable = false
    private let state = Mutex((starts: 0, isRead: false))

    func start(wake: @escaping @Sendable () -> Void) -> TransportFailure? {
      state.withLock { state in
        state.starts += 1
        return state.starts == 1 ? nil : TransportFailure(.cannotReadBody, "It can be read once.")
      }
    }

    func read(into room: UnsafeMutableRawBufferPointer) -> BodyReading {
      state.withLock { state in
        guard !state.isRead else { return .end }
        state.isRead = true
        room.copyBytes(from: "once".utf8)
        return .bytes(4)
      }
    }

    func stop() {}
  }

  @Test("Closed connection is the error, and not the body", arguments: [false, true])
  func closedConnection(isTLS: Bool) async throws {
    let server = try HTTPTestServer(isTLS ? .tls(.localhost) : .none, routes: .none)
    server.enqueue(.text("1"), .closeBeforeReply, .text("2"))
    let client = Client { $0.httpVersions = .http1Only }
    _ = try await client.get(server.url("/"))
    let request = try client.request(server.url("/"), "POST", body: .source(OnceSource()))
    let failure = try await client.failure(of: request)
    #expect(failure.kind == .connectionLost, "\(failure.message)")
    #expect(failure.message.contains("closed the connection"))
  }
}
