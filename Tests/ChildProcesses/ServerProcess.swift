package import Foundation
import Synchronization

/// A server with its own process group and temporary folder. ``stop()``, the release of this value, and any end of the
/// test process end the server and remove the folder.
package final class ServerProcess: Sendable {
  /// The folder that belongs to the server.
  package let folder: URL
  private let lifeline: Mutex<FileHandle?>

  /// A shell between the tests and the server. It reads from a pipe without data, and ends the server when the pipe
  /// closes. (PR_SET_PDEATHSIG would follow the thread that started the server.)
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

  /// Makes a folder for a server that is started later.
  package static func makeFolder(_ name: String) throws -> URL {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("alamofire-\(name)-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    return folder
  }

  /// Starts `command`, which must stay in the foreground.
  ///
  /// - Parameter folder: The folder of the server. It is removed once the server has ended.
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

  /// Ends the server and removes its folder, without waiting. The second call has no effect.
  package func stop() {
    let lifeline = lifeline.withLock { lifeline in
      defer { lifeline = nil }
      return lifeline
    }
    try? lifeline?.close()
  }

  /// Waits until every port accepts connections.
  ///
  /// - Throws: ``ServerFailure`` with the output of the server, if it ends or takes two minutes.
  package func untilAnswering(_ ports: some Collection<UInt16>) async throws {
    let deadline = ContinuousClock.now + .seconds(120)
    while !hasEnded, !ports.allSatisfy(Loopback.answers), ContinuousClock.now < deadline {
      try await Task.sleep(for: .milliseconds(10))
    }
    guard !hasEnded, ports.allSatisfy(Loopback.answers) else {
      throw ServerFailure(description: "The server does not answer:\n\(output)")
    }
  }

  /// Whether the server has ended, with or without ``stop()``.
  package var hasEnded: Bool {
    FileManager.default.fileExists(atPath: folder.appendingPathComponent("gone").path)
  }

  private var output: String {
    let files = ["output.log", "error.log"].map { folder.appendingPathComponent($0).path }
    return files.compactMap { try? String(contentsOfFile: $0, encoding: .utf8) }.joined()
  }
}

/// A failure to start a server.
package struct ServerFailure: Error, CustomStringConvertible {
  package let description: String

  package init(description: String) { self.description = description }
}
