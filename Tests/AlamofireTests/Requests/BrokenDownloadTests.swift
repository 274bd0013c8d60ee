import Alamofire
import Foundation
import HTTPTestServer
import Scenarios
import Synchronization
import Testing

/// Downloads that are interrupted two hundred times, by faults of the server, cancellation and kills of the process.
@Suite(.timeLimit(.minutes(5))) struct BrokenDownloadTests {
  private static let breaks = 200

  private let folder: URL
  private let destination: URL
  private let temporary: URL
  private let notes: URL

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("broken-\(UUID().uuidString)")
    destination = folder.appendingPathComponent("downloads/file")
    temporary = folder.appendingPathComponent("temporary")
    notes = folder.appendingPathComponent("notes")
    for place in [temporary, destination.deletingLastPathComponent()] {
      try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
    }
  }

  private func names(in folder: URL) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path)
  }

  /// Checks the destination after the end of a process: it is empty or has the complete file.
  private func checkDestination(_ file: UnreliableFile, isFinished: Bool) throws {
    let names = try names(in: destination.deletingLastPathComponent())
    if isFinished { #expect(names == ["file"]) }
    guard !names.isEmpty else { return }
    #expect(names == ["file"])
    // Not in the expectation, which would compute the difference of two large files for minutes.
    let isWhole = try Data(contentsOf: destination) == file.content
    #expect(isWhole)
    try FileManager.default.removeItem(at: destination)
  }

  @Test(
    "An interrupted download ends with the complete file", .steps,
    arguments: [(UnreliableFile.Validator.entityTag, UInt64(1)), (.date, 2)])
  func interruptions(
    validator: UnreliableFile.Validator, seed: UInt64
  ) async throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = UnreliableFile(validator, seed: seed, troubles: Self.breaks)
    let stage = try Stage(file)
    async let interventions: Void = stage.intervene()
    var killed = 0
    while true {
      step("process after \(killed) that were killed")
      let isLast = file.troublesLeft == 0
      // Some processes kill themselves at one of their first crash points.
      let crashPoint = isLast || file.random(in: 0...2) == 0 ? 0 : file.random(in: 1...30)
      let words = ["download", stage.url, destination.path, notes.path, "\(crashPoint)"]
      let child = try ChildProcess(
        words, folder: temporary, complaints: folder.appendingPathComponent("complaints"))
      stage.put(child)
      let end = await child.end()
      stage.put(nil)
      if end == .killed { killed += 1 } else { #expect(end == .exited(0), "\(child.said)") }
      try checkDestination(file, isFinished: end == .exited(0))
      if end != .killed, isLast || end != .exited(0) { break }
    }
    step("facts of all processes")
    stage.close()
    await interventions
    #expect(file.troubles.values.reduce(0, +) == Self.breaks)
    #expect(Set(file.troubles.keys) == Set(UnreliableFile.Trouble.allCases))
    // Usually there are eighty processes, forty versions and a hundred and twenty partial responses.
    #expect(killed >= 10)
    #expect(file.changes > 5)
    #expect(file.resumptions > 30)
    // Only killed processes leave a temporary file.
    #expect(try names(in: temporary).count <= killed)
  }
}

/// The current server and client, for the task that interferes with them.
private final class Stage: Sendable {
  private struct State {
    var server: HTTPTestServer?
    var child: ChildProcess?
  }

  private let file: UnreliableFile
  private let port: Int
  private let state: Mutex<State>
  private let ending = Latch()

  init(_ file: UnreliableFile) throws {
    self.file = file
    let server = try HTTPTestServer(routes: file.routes)
    port = server.port
    state = Mutex(State(server: server))
  }

  var url: String { "http://127.0.0.1:\(port)/file" }

  func put(_ child: ChildProcess?) { state.withLock { $0.child = child } }

  /// Kills the client and restarts the server on demand of the file, until ``close()`` is called.
  func intervene() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask {
        await withTaskGroup(of: Void.self) { tasks in
          for await intervention in self.file.interventions {
            tasks.addTask { await self.perform(intervention) }
          }
        }
      }
      group.addTask { await self.ending.wait() }
      await group.next()
      group.cancelAll()
    }
  }

  func close() {
    state.withLock { $0.server.take() }?.stop()
    ending.open()
  }

  private func perform(_ intervention: UnreliableFile.Intervention) async {
    switch intervention {
    case .killClient(let gate):
      await gate.waitUntilReached()
      if gate.reachedCount > 0 { state.withLock { $0.child }?.kill() }
    case .restart(let gate):
      await gate.waitUntilReached()
      if gate.reachedCount > 0 { await restart() }
    }
  }

  /// Restarts the server. A new process has a copy of the old server's socket for a moment.
  private func restart() async {
    guard let old = state.withLock({ $0.server.take() }) else { return }
    old.stop()
    let deadline = ContinuousClock.now + .seconds(120)
    while true {
      do {
        let server = try HTTPTestServer(port: port, routes: file.routes)
        return state.withLock { $0.server = server }
      } catch {
        guard ContinuousClock.now < deadline else { break }
        await Task.yield()
      }
    }
    Issue.record("the server did not come back")
  }
}
