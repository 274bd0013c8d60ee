package import Foundation

/// httpbin under gunicorn, as `Scripts/install httpbin` installs them in `.build/venv`.
package final class HTTPBinServer: Sendable {
  package static let program = packageRoot.appendingPathComponent(".build/venv/bin/gunicorn").path

  /// The folder that holds `Package.swift`.
  package static let packageRoot = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  private static let starting = Task { try await HTTPBinServer() }

  /// The server of all tests. The first use starts it, and the end of the process ends it.
  package static var shared: HTTPBinServer {
    get async throws { try await starting.value }
  }

  /// Whether httpbin is installed. If `ALAMOFIRE_REQUIRE_SERVERS` is set, tests fail without it.
  package static let isInstalled =
    ProcessInfo.processInfo.environment["ALAMOFIRE_REQUIRE_SERVERS"] == "1"
    || FileManager.default.isExecutableFile(atPath: program)

  package let port: UInt16
  private let process: ServerProcess

  private init() async throws {
    let folder = try ServerProcess.makeFolder("httpbin")
    port = try Loopback.freePorts(1)[0]
    process = try ServerProcess(
      [
        Self.program, "--bind", "127.0.0.1:\(port)", "--worker-class", "gthread", "--threads", "32",
        "--keep-alive", "20", "--worker-tmp-dir", folder.path, "httpbin:app",
      ], in: folder)
    try await process.untilAnswering([port])
  }

  /// Returns the URL of a path, which begins with a slash.
  package func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }
}
