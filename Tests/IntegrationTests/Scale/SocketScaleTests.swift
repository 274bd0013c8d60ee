import Foundation
import Testing

@Suite(.needsWebSocketPeer, .timeLimit(.minutes(10))) struct SocketScaleTests {
  private struct Report: Decodable {
    let before: SoakFigures
    let after: SoakFigures
    let failures: Int
    let firstFailure: String?
  }

  @Test(
    "A thousand WebSocket connections leak no memory, thread or descriptor",
    arguments: [WebSocketPeer.Entrance.compressed, .secure])
  func connections(entrance: WebSocketPeer.Entrance) async throws {
    let peer = try await WebSocketPeer.forScale
    let report = try await SoakRun.run(
      Report.self, ["sockets", peer.url(entrance, ""), peer.authority, "1000"])
    #expect(report.failures == 0, "\(report.firstFailure ?? "")")
    // One connection holds about eight kibibytes.
    #if THREAD_SANITIZER  // It needs several bytes for each byte.
      #expect(report.after.memory - report.before.memory < 8 * 1024)
    #elseif !ADDRESS_SANITIZER  // It delays the reuse of freed memory.
      #expect(report.after.memory - report.before.memory < 2 * 1024)
    #endif
    // The pool may have opened one for its timers.
    #expect(report.after.descriptors <= report.before.descriptors + 1)
    #expect(report.after.threads <= report.before.threads)
  }
}
