import Foundation
import Scorecard

/// nginx on loopback, with its own configuration, certificates and folder. ``stop()`` and the end of this process
/// end it.
final class Server {
  /// The connections that clients opened, from the log of the server.
  struct Openings {
    var count: Int
    /// The versions of HTTP, such as `HTTP/2.0`.
    var versions: Set<String>
  }

  /// The name of the large file that is served under `/content`, when ``folder`` has one.
  static let content = "content.bin"

  /// The authority that signed the certificate of the server.
  let authority: String
  /// The folder of the server, which is removed with all files in it.
  let folder: URL
  private let ports: [Listener: UInt16]
  private let process: Process
  private var logged: UInt64 = 0

  /// Starts nginx and waits until it answers.
  ///
  /// - Parameters:
  ///   - place: The folder in which the server's folder is created.
  ///   - core: The core that its one worker stays on.
  init(in place: URL, core: Int?) throws {
    Self.removeOrphanedFolders(in: place)
    let folder = place.appendingPathComponent("\(Self.prefix)\(getpid())")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    self.folder = folder
    authority = try Certificates.make(in: folder)
    let free = try Loopback.freePorts(Listener.allCases.count)
    ports = Dictionary(uniqueKeysWithValues: zip(Listener.allCases, free))
    let configuration = folder.appendingPathComponent("nginx.conf")
    try Data(ServerConfiguration(folder: folder.path, ports: ports).text.utf8).write(to: configuration)
    let item = folder.appendingPathComponent("item")
    try Data(ServerConfiguration.item.utf8).write(to: item)
    _ = try Command(words: ["/usr/bin/gzip", "-n", item.path]).run()
    let errors = folder.appendingPathComponent("error.log").path
    process = try Command(
      words: ["/usr/sbin/nginx", "-e", errors, "-p", folder.path, "-c", configuration.path], core: core
    ).start()
    try waitUntilReady(errors: errors)
  }

  func url(_ wire: WireProtocol, for row: Row) -> String {
    url(row == .handshake ? .fresh : Listener(wire), path: row.path)
  }

  func url(_ listener: Listener, path: String) -> String {
    "\(listener.scheme)://127.0.0.1:\(ports[listener] ?? 0)\(path)"
  }

  /// Returns the connections that answered their first request since the last call.
  func openings() throws -> Openings {
    let log = try FileHandle(forReadingFrom: folder.appendingPathComponent("openings.log"))
    defer { try? log.close() }
    try log.seek(toOffset: logged)
    let data = try log.readToEnd() ?? Data()
    logged += UInt64(data.count)
    let lines = String(decoding: data, as: UTF8.self).split(separator: "\n")
    return Openings(count: lines.count, versions: Set(lines.map(String.init)))
  }

  /// Ends nginx and removes its folder. The second call has no effect.
  func stop() {
    if process.isRunning {
      process.terminate()
      process.waitUntilExit()
    }
    try? FileManager.default.removeItem(at: folder)
  }

  private static let prefix = "bench-server-"

  /// Removes folders of harnesses that were killed. The servers of such harnesses have ended already.
  private static func removeOrphanedFolders(in place: URL) {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: place.path)) ?? []
    for name in names where name.hasPrefix(prefix) {
      let isAlive = FileManager.default.fileExists(atPath: "/proc/\(name.dropFirst(prefix.count))")
      if !isAlive { try? FileManager.default.removeItem(at: place.appendingPathComponent(name)) }
    }
  }

  private func waitUntilReady(errors: String) throws {
    for _ in 0..<500 {
      if ports.values.allSatisfy(Loopback.answers) { return }
      guard process.isRunning else { break }
      usleep(10_000)
    }
    let complaint = (try? String(contentsOfFile: errors, encoding: .utf8)) ?? ""
    stop()
    throw CommandFailure(description: "nginx does not answer: \(complaint)")
  }
}
