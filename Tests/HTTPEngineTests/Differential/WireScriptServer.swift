import Foundation
import Glibc
import HTTPTestServer

/// Plays scripts to any client. Each script has a host name, so that two scripts never share a connection. Its requests
/// are `/before` on some connections, then `/script` and `/next`.
final class WireScriptServer: Sendable {
  struct Traffic: Sendable, Equatable {
    var requestCount = 0
    var connectionCount = 0
  }

  private final class Record: Sendable {
    let traffic = Mutex<[Int: Traffic]>([:])
    /// The port of the server, which is set before the first request.
    let port = Mutex(0)
  }

  private let server: StreamTestServer
  private let record = Record()

  init(_ scripts: [WireScript]) throws {
    server = try StreamTestServer { [record] connection in
      try Self.serve(connection, scripts, record)
    }
    record.port.withLock { $0 = server.port }
  }

  /// Returns the requests and connections of a script until now.
  func traffic(_ index: Int) -> Traffic { record.traffic.withLock { $0[index] ?? Traffic() } }

  func url(_ index: Int, _ step: String) -> String {
    "http://s\(index).localhost:\(server.port)/\(index)/\(step)"
  }

  private static func serve(_ connection: StreamTestConnection, _ scripts: [WireScript], _ record: Record)
    throws
  {
    var isNew = true
    while true {
      let target = String(decoding: try connection.readHead(), as: UTF8.self).split(separator: " ")
      let parts = target.count > 1 ? target[1].split(separator: "/") : []
      guard parts.count == 2, let index = Int(parts[0]), scripts.indices.contains(index) else { return }
      record.traffic.withLock { [isNew] traffic in
        traffic[index, default: Traffic()].requestCount += 1
        if isNew { traffic[index, default: Traffic()].connectionCount += 1 }
      }
      isNew = false
      guard parts[1] == "script" else {
        try connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(parts[1].utf8.count)\r\n\r\n\(parts[1])")
        continue
      }
      try play(scripts[index], on: connection, port: record.port.withLock { $0 })
      switch scripts[index].end {
      case .open: break
      case .close: return
      case .reset: return connection.reset()
      }
    }
  }

  private static func play(_ script: WireScript, on connection: StreamTestConnection, port: Int) throws {
    let isSplit = script.steps.count > 1
    for step in script.steps {
      switch step {
      case .bytes(let bytes):
        try connection.write(bytes)
        if isSplit { sched_yield() }
      case .pause: UnreadBytes.waitForNone(from: port)
      }
    }
    // A reset would discard the bytes that the client has not read.
    if script.end == .reset { UnreadBytes.waitForNone(from: port) }
  }
}

/// The bytes that sockets of this machine have received and no program has read.
enum UnreadBytes {
  /// Waits until the clients of a server have read everything, for at most ten seconds.
  static func waitForNone(from port: Int) {
    let limit = ContinuousClock.now.advanced(by: .seconds(10))
    while count(from: port) > 0, ContinuousClock.now < limit { sched_yield() }
  }

  /// Returns the number of bytes from a local port that were not read (proc(5), `/proc/net/tcp`).
  private static func count(from port: Int) -> Int {
    guard let table = FileManager.default.contents(atPath: "/proc/self/net/tcp") else { return 0 }
    let suffix = Data(":\(String(port + 0x10000, radix: 16).uppercased().dropFirst())".utf8)
    return table.split(separator: UInt8(ascii: "\n")).dropFirst().reduce(0) { sum, line in
      let columns = line.split(separator: UInt8(ascii: " "), maxSplits: 5)
      guard columns.count > 4, columns[2].suffix(5) == suffix else { return sum }
      let unread = columns[4].split(separator: UInt8(ascii: ":")).last ?? Data()
      return sum + (Int(String(decoding: unread, as: UTF8.self), radix: 16) ?? 0)
    }
  }
}
