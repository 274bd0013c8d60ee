import Alamofire
import Glibc

/// nginx with its own certificate, configuration and log.
final class NginxServer: Sendable {
  static let program = "/usr/sbin/nginx"

  private static let starting = Task { try await NginxServer() }

  /// The server of all tests that do not disturb it, started by the first use.
  static var shared: NginxServer {
    get async throws { try await starting.value }
  }

  /// The scheme and version of HTTP of a port.
  enum Entrance: Int, CaseIterable {
    case http, https1, h2
    /// HTTP/2 without TLS.
    case h2c

    /// The ports that every session can use.
    static let allCases: [Entrance] = [.http, .https1, .h2]
    static let portCount = 4
  }

  /// The file with the certificate of the authority.
  var authority: String { start.certificates.authority }
  /// The file with the certificate of the server.
  var certificate: String { start.certificates.certificate }
  /// The file with the identity of a client; see ``Certificates``.
  var client: String { start.certificates.client }
  /// A Unix-domain socket of the server.
  var socket: String { start.process.folder.appendingPathComponent("socket").path }
  private let start: NginxStart

  /// Starts a server. It ends when the value is released.
  ///
  /// Another process may take the free ports before nginx listens. In this case others are tried.
  init(_ configuration: NginxConfiguration = NginxConfiguration()) async throws {
    for _ in 0..<2 {
      if let start = try? await NginxStart(configuration) {
        self.start = start
        return
      }
    }
    start = try await NginxStart(configuration)
  }

  /// Returns the URL of a path, which begins with a slash.
  func url(_ entrance: Entrance, _ path: String) -> String {
    "\(entrance == .http || entrance == .h2c ? "http" : "https")://127.0.0.1:\(start.ports[entrance.rawValue])\(path)"
  }

  /// Returns a session that trusts the server.
  func makeSession(
    configuration: URLSessionConfiguration = .isolated,
    _ change: (inout TransportOptions) -> Void = { _ in }
  ) -> Session {
    var options = TransportOptions()
    options.trustStore = .file(authority)
    change(&options)
    return Session(configuration: configuration, transportOptions: options)
  }

  /// Serves a file under `/files/<name>`.
  func serve(_ data: Data, as name: String) throws {
    let file = start.process.folder.appendingPathComponent("files").appendingPathComponent(name)
    try data.write(to: file, options: .atomic)
  }

  // MARK: Log

  /// One logged request.
  struct LoggedRequest {
    let connection: Int
    /// The version of HTTP, such as `HTTP/2.0`.
    let version: String
    let status: Int
    /// The length of the request, head and body.
    let length: Int
  }

  /// Waits for at most half a minute for `count` requests for a path, and returns all logged ones.
  func loggedRequests(to path: String, count: Int) async throws -> [LoggedRequest] {
    var loggedRequests: [LoggedRequest] = []
    _ = try await eventually {
      loggedRequests = try logged(path)
      return loggedRequests.count >= count
    }
    return loggedRequests
  }

  private func logged(_ path: String) throws -> [LoggedRequest] {
    let file = start.process.folder.appendingPathComponent("access.log")
    let lines = String(decoding: try Data(contentsOf: file), as: UTF8.self).split(separator: "\n")
    return lines.compactMap { line in
      let words = line.split(separator: " ")
      guard words.count == 5, words[4] == path, let connection = Int(words[0]), let status = Int(words[2]),
        let length = Int(words[3])
      else { return nil }
      return LoggedRequest(connection: connection, version: String(words[1]), status: status, length: length)
    }
  }

  /// Returns the number of connections of the server, without this request's own. `observer` is a session that does not
  /// send other requests.
  func connectionCount(observer: Session) async throws -> Int {
    let text = try await observer.request(url(.http, "/status")).serializingString().value
    let number = text.split(separator: "\n").first?.split(separator: " ").last.flatMap { Int($0) }
    guard let number else { throw ServerFailure(description: "nginx does not count: \(text)") }
    return number - 1
  }

  // MARK: Lifecycle

  /// Reloads the configuration: new workers start, and the old ones finish their requests.
  func reload() throws { try send(SIGHUP) }

  /// Ends the server at once, during its requests.
  func kill() throws { try send(SIGTERM) }

  /// Whether the server listens on any port.
  var isAnswering: Bool { start.ports.contains(where: Loopback.answers) }

  private func send(_ signal: Int32) throws {
    guard Glibc.kill(start.pid, signal) == 0 else { throw ServerFailure(description: "nginx is gone") }
  }
}
