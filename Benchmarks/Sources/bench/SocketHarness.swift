import Foundation
import Scorecard

/// Runs clients against one server for WebSocket connections.
final class SocketHarness {
  /// The number of the only core that the clients may use; `nil` for all.
  private let core: Int?
  private let floor: String
  private let client: String
  private let port: UInt16
  private let process: Process

  /// Starts the server and waits until it answers.
  ///
  /// - Parameters:
  ///   - server: `Sockets/server.c`.
  ///   - floor:  `Floor/sockets.c`.
  init(server: String, serverCore: Int?, core: Int?, floor: String, client: String) throws {
    self.core = core
    self.floor = floor
    self.client = client
    port = try Loopback.freePorts(1)[0]
    process = try Command(words: [server, String(port)], core: serverCore).start()
    do {
      try Loopback.waitForServer("the server for WebSocket connections", process, port)
    } catch {
      stop()
      throw error
    }
  }

  /// Ends the server. The second call has no effect.
  func stop() {
    guard process.isRunning else { return }
    process.terminate()
    process.waitUntilExit()
  }

  /// Runs a client once, in a separate process.
  ///
  /// - Parameters:
  ///   - preload: The library that counts; `nil` for none.
  ///   - pause:   The pause before each text, in microseconds; `nil` for none.
  func run(
    _ client: Client, _ row: SocketRow, _ work: SocketRow.Work, preload: String? = nil, pause: Int? = nil
  ) throws -> SocketFigures {
    var words = client == .floor ? [floor] : [self.client, "socket"]
    words += ["--row", row.rawValue, "--port", String(port)]
    words += ["--messages", String(work.messages), "--size", String(work.size)]
    words += ["--window", String(work.window), "--connections", String(work.connections)]
    if client != .floor, let pause { words += ["--pause", String(pause)] }
    var command = Command(words: words, core: core)
    if let preload { command.environment = ["LD_PRELOAD": preload] }
    return try JSONDecoder().decode(SocketFigures.self, from: command.run())
  }
}
