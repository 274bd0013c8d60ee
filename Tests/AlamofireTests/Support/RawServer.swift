import Foundation
import HTTPTestServer

/// A server that writes the responses of a script unchanged. The script is called for each request with its line and
/// its fields, and throws to close the connection.
enum RawServer {
  struct Request: Sendable {
    /// The request line and the fields.
    let lines: [String]

    var target: String { lines.first?.split(separator: " ").dropFirst().first.map(String.init) ?? "" }

    func field(_ name: String) -> String? {
      lines.dropFirst().first { $0.lowercased().hasPrefix(name.lowercased() + ":") }
        .map { String($0.dropFirst(name.count + 1)).trimmingCharacters(in: .whitespaces) }
    }
  }

  /// Thrown by a script to close the connection.
  struct Close: Error {}

  static func start(
    _ security: HTTPTestServer.Security = .none,
    _ script: @escaping @Sendable (Request, StreamTestConnection) throws -> Void
  ) throws -> StreamTestServer {
    try StreamTestServer(security) { connection in
      while true {
        var lines: [String] = []
        while let line = Optional(try connection.line()), !line.isEmpty { lines.append(line) }
        guard !lines.isEmpty else { return }
        do { try script(Request(lines: lines), connection) } catch is Close { return }
      }
    }
  }
}

extension StreamTestConnection {
  /// Writes a response of HTTP/1.1 with its length.
  func respond(_ status: String, _ fields: [String] = [], _ body: String = "") throws {
    let head = ["HTTP/1.1 \(status)"] + fields + ["Content-Length: \(body.utf8.count)"]
    try write(head.joined(separator: "\r\n") + "\r\n\r\n" + body)
  }

  /// Writes until the client closes the connection, or the server is stopped.
  func writeForever(_ block: [UInt8]) throws -> Never {
    while true { try write(block) }
  }
}
