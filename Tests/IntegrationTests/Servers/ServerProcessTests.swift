import Foundation
import Testing

@Suite(.timeLimit(.minutes(5))) struct ServerProcessTests {
  // Without a memory of ports, five hundred of seventeen thousand are all different once in a thousand runs.
  @Test("No two servers get the same port") func ports() throws {
    var ports: Set<UInt16> = []
    for _ in 0..<500 { ports.formUnion(try Loopback.freePorts(1)) }
    #expect(ports.count == 500)
  }

  @Test("A stopped server leaves neither processes nor its folder") func stop() async throws {
    let folder = try ServerProcess.makeFolder("sleeper")
    let file = folder.appendingPathComponent("pids")
    let server = try ServerProcess(
      ["/bin/bash", "-c", "sleep 1000 & echo $$ $! >'\(file.path)'; wait"], in: folder)
    var pids: [pid_t] = []
    #expect(
      await eventually {
        let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        pids = text.split { $0.isWhitespace }.compactMap { pid_t($0) }
        return pids.count == 2
      })
    #expect(pids.allSatisfy(isRunning))
    server.stop()
    #expect(await eventually { !FileManager.default.fileExists(atPath: folder.path) })
    #expect(await eventually { !pids.contains(where: isRunning) })
  }

  @Test("A server that ends on its own is reported with its output") func endedServer() async throws {
    let folder = try ServerProcess.makeFolder("quitter")
    let server = try ServerProcess(["/bin/bash", "-c", "echo no such luck; exit 3"], in: folder)
    let port = try Loopback.freePorts(1)
    let failure = await #expect(throws: ServerFailure.self) { try await server.untilAnswering(port) }
    #expect(failure?.description.contains("no such luck") == true)
  }

  /// Returns whether the process runs. A process that has ended can wait for its parent for long.
  private func isRunning(_ pid: pid_t) -> Bool {
    let status = (try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)) ?? "State:\tX"
    return !status.contains("State:\tZ") && !status.contains("State:\tX")
  }
}
