import Alamofire
import Glibc

/// nginx with a certificate, a configuration and a log of its own.
final class NginxServer: Sendable {
  static let program = "/usr/sbin/nginx"

  private static let starting = Task { try await NginxServer() }

  /// One for all tests that do it no harm, started when it is first asked for.
  static var shared: NginxServer {
    get async throws { try await starting.value }
  }

  /// How to reach it.
  enum Entrance: Int, CaseIterable {
    case http, https1, h2
  }

  /// The file with the certificate of the authority.
  var authority: String { certificates.authority }
  private let certificates: Certificates
  private let ports: [UInt16]
  private let process: ServerProcess
  private let pid: pid_t

  /// Starts a server. It ends when the value is released.
  init(_ configuration: NginxConfiguration = NginxConfiguration()) async throws {
    let folder = try ServerProcess.makeFolder("nginx")
    certificates = try await Certificates(in: folder)
    ports = try Loopback.freePorts(Entrance.allCases.count)
    let configurationFile = folder.appendingPathComponent("nginx.conf")
    try configuration.write(to: configurationFile, ports: ports, certificates: certificates)
    process = try ServerProcess(
      [
        Self.program, "-p", folder.path, "-e", folder.appendingPathComponent("error.log").path,
        "-c", configurationFile.path,
      ], in: folder)
    try await process.untilAnswering(ports)
    pid = try await Self.pid(in: folder)
  }

  /// nginx writes its process id some time after it listens.
  private static func pid(in folder: URL) async throws -> pid_t {
    let file = folder.appendingPathComponent("nginx.pid").path
    var pid: pid_t?
    _ = await eventually(within: .seconds(60)) {
      let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
      pid = pid_t(text.trimmingCharacters(in: .whitespacesAndNewlines))
      return pid != nil
    }
    guard let pid, pid > 1 else { throw ServerFailure(description: "nginx has no process id") }
    return pid
  }

  /// The URL of a path, which begins with a slash.
  func url(_ entrance: Entrance, _ path: String) -> String {
    "\(entrance == .http ? "http" : "https")://127.0.0.1:\(ports[entrance.rawValue])\(path)"
  }

  /// A session that trusts the server.
  func makeSession(
    configuration: URLSessionConfiguration = .af.default,
    _ change: (inout TransportOptions) -> Void = { _ in }
  ) -> Session {
    var options = TransportOptions()
    options.trustStore = .file(authority)
    change(&options)
    return Session(configuration: configuration, transportOptions: options)
  }

  /// Puts a file where `/files/<name>` finds it.
  func serve(_ data: Data, as name: String) throws {
    try data.write(to: process.folder.appendingPathComponent("files").appendingPathComponent(name))
  }

  // MARK: Log

  /// One request as the server saw it.
  struct Visit {
    let connection: Int
    /// Such as `HTTP/2.0`.
    let version: String
    let status: Int
    /// Bytes of the request, head and body.
    let length: Int
  }

  /// The requests for a path so far, once there are as many as expected or ten seconds have passed.
  func visits(to path: String, count: Int) async throws -> [Visit] {
    var visits: [Visit] = []
    _ = try await eventually {
      visits = try logged(path)
      return visits.count >= count
    }
    return visits
  }

  private func logged(_ path: String) throws -> [Visit] {
    let file = process.folder.appendingPathComponent("access.log")
    let lines = String(decoding: try Data(contentsOf: file), as: UTF8.self).split(separator: "\n")
    return lines.compactMap { line in
      let words = line.split(separator: " ")
      guard words.count == 5, words[4] == path, let connection = Int(words[0]), let status = Int(words[2]),
        let length = Int(words[3])
      else { return nil }
      return Visit(connection: connection, version: String(words[1]), status: status, length: length)
    }
  }

  // MARK: Life

  /// Reads its configuration anew: new workers take over, the old ones finish what they have begun.
  func reload() throws { try send(SIGHUP) }

  /// Ends it at once, in the middle of whatever it does.
  func kill() throws { try send(SIGTERM) }

  /// Whether anybody still listens.
  var isAnswering: Bool { ports.contains(where: Loopback.answers) }

  private func send(_ signal: Int32) throws {
    guard Glibc.kill(pid, signal) == 0 else { throw ServerFailure(description: "nginx is gone") }
  }
}
