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

  /// The protocol and the port of the server.
  enum Entrance: Int, CaseIterable {
    case http, https1, h2
    /// HTTP/2 without TLS.
    case h2c

    /// Those that any session can use.
    static let allCases: [Entrance] = [.http, .https1, .h2]
    static let portCount = 4
  }

  /// The file with the certificate of the authority.
  var authority: String { start.certificates.authority }
  /// The file with its own certificate.
  var certificate: String { start.certificates.certificate }
  /// The file with the identity of a client; see ``Certificates``.
  var client: String { start.certificates.client }
  /// A Unix-domain socket on which it listens too.
  var socket: String { start.process.folder.appendingPathComponent("socket").path }
  private let start: NginxStart

  /// Starts a server. It ends when the value is released.
  ///
  /// Ports that were free may be taken by others before nginx comes to them: then it is tried with others.
  init(_ configuration: NginxConfiguration = NginxConfiguration()) async throws {
    for _ in 0..<2 {
      if let start = try? await NginxStart(configuration) {
        self.start = start
        return
      }
    }
    start = try await NginxStart(configuration)
  }

  /// The URL of a path, which begins with a slash.
  func url(_ entrance: Entrance, _ path: String) -> String {
    "\(entrance == .http || entrance == .h2c ? "http" : "https")://127.0.0.1:\(start.ports[entrance.rawValue])\(path)"
  }

  /// A session that trusts the server.
  func makeSession(
    configuration: URLSessionConfiguration = .solitary,
    _ change: (inout TransportOptions) -> Void = { _ in }
  ) -> Session {
    var options = TransportOptions()
    options.trustStore = .file(authority)
    change(&options)
    return Session(configuration: configuration, transportOptions: options)
  }

  /// Puts a file where `/files/<name>` finds it.
  func serve(_ data: Data, as name: String) throws {
    let file = start.process.folder.appendingPathComponent("files").appendingPathComponent(name)
    try data.write(to: file, options: .atomic)
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

  /// The requests for a path so far, once there are as many as expected or half a minute has passed.
  func visits(to path: String, count: Int) async throws -> [Visit] {
    var visits: [Visit] = []
    _ = try await eventually {
      visits = try logged(path)
      return visits.count >= count
    }
    return visits
  }

  private func logged(_ path: String) throws -> [Visit] {
    let file = start.process.folder.appendingPathComponent("access.log")
    let lines = String(decoding: try Data(contentsOf: file), as: UTF8.self).split(separator: "\n")
    return lines.compactMap { line in
      let words = line.split(separator: " ")
      guard words.count == 5, words[4] == path, let connection = Int(words[0]), let status = Int(words[2]),
        let length = Int(words[3])
      else { return nil }
      return Visit(connection: connection, version: String(words[1]), status: status, length: length)
    }
  }

  /// Returns the number of connections of the server, without that of `observer`, a session without other requests.
  func connectionCount(observer: Session) async throws -> Int {
    let text = try await observer.request(url(.http, "/status")).serializingString().value
    let number = text.split(separator: "\n").first?.split(separator: " ").last.flatMap { Int($0) }
    guard let number else { throw ServerFailure(description: "nginx does not count: \(text)") }
    return number - 1
  }

  // MARK: Life

  /// Reads its configuration anew: new workers take over, the old ones finish what they have begun.
  func reload() throws { try send(SIGHUP) }

  /// Ends it at once, in the middle of whatever it does.
  func kill() throws { try send(SIGTERM) }

  /// Whether a port of the server has a listener.
  var isAnswering: Bool { start.ports.contains(where: Loopback.answers) }

  private func send(_ signal: Int32) throws {
    guard Glibc.kill(start.pid, signal) == 0 else { throw ServerFailure(description: "nginx is gone") }
  }
}
