package import Foundation
import Synchronization

/// A server in a process group and a temporary folder of its own. Both are gone after ``stop()``, and
/// also when this value is released or the process of the tests dies, however it dies.
package final class ServerProcess: Sendable {
  /// The folder that belongs to the server.
  package let folder: URL
  private let lifeline: Mutex<FileHandle?>

  /// A process between the tests and the server. It reads from a pipe that is never written to, and ends the server
  /// at the end of the pipe. (PR_SET_PDEATHSIG would depend on the thread that started the server.)
  private static let watchdog = """
    trap '' INT HUP QUIT
    set -m
    "${@:2}" </dev/null >"$1/output.log" 2>&1 &
    server=$!
    while kill -0 "$server" 2>/dev/null; do
      read -r -t 0.2 _
      [ $? -le 128 ] && break
    done
    : >"$1/gone"
    kill -TERM -- "-$server" 2>/dev/null
    for _ in {1..60}; do
      kill -0 "$server" 2>/dev/null || break
      sleep 0.05
    done
    kill -KILL -- "-$server" 2>/dev/null
    cat >/dev/null
    rm -rf "$1"
    """

  /// A new folder for a server, not yet owned by one.
  package static func makeFolder(_ name: String) throws -> URL {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("alamofire-\(name)-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return folder
  }

  /// Starts `command`, which must stay in the foreground.
  ///
  /// - Parameter folder: Handed over: removed once the server has ended.
  package init(_ command: [String], in folder: URL) throws {
    self.folder = folder
    let pipe = Pipe()
    _ = try ChildProgram(
      ["/bin/bash", "-c", Self.watchdog, "watchdog", folder.path] + command,
      input: pipe.fileHandleForReading.fileDescriptor)
    try pipe.fileHandleForReading.close()
    lifeline = Mutex(pipe.fileHandleForWriting)
  }

  deinit { stop() }

  /// Ends the server and removes its folder, soon. Does nothing the second time.
  package func stop() {
    let lifeline = lifeline.withLock { lifeline in
      defer { lifeline = nil }
      return lifeline
    }
    try? lifeline?.close()
  }

  /// Waits until every port accepts connections.
  ///
  /// - Throws: ``ServerFailure`` with what the server has written, when it ends or takes two minutes.
  package func untilAnswering(_ ports: some Collection<UInt16>) async throws {
    let deadline = ContinuousClock.now + .seconds(120)
    while !hasEnded, !ports.allSatisfy(Loopback.answers), ContinuousClock.now < deadline {
      try await Task.sleep(for: .milliseconds(10))
    }
    guard !hasEnded, ports.allSatisfy(Loopback.answers) else {
      throw ServerFailure(description: "The server does not answer:\n\(output)")
    }
  }

  /// Whether the server has ended, by itself or after ``stop()``.
  package var hasEnded: Bool {
    FileManager.default.fileExists(atPath: folder.appendingPathComponent("gone").path)
  }

  private var output: String {
    let files = ["output.log", "error.log"].map { folder.appendingPathComponent($0).path }
    return files.compactMap { try? String(contentsOfFile: $0, encoding: .utf8) }.joined()
  }
}

/// Why a server could not be started.
package struct ServerFailure: Error, CustomStringConvertible {
  package let description: String

  package init(description: String) { self.description = description }
}
