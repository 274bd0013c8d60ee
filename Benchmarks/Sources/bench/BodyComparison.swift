import Foundation
import Scorecard

/// Compares transfers of one large body with bare libcurl: from a file, and into one.
struct BodyComparison {
  /// A gigabyte.
  private static let bytes = 1_000_000_000

  private let server: Server
  private let core: Int?
  private let floor: String
  private let client: String
  private let sink: Process
  private let sinkURL: String

  /// Makes the file that is sent, in the folder of the server, and starts the server for uploads.
  ///
  /// - Parameters:
  ///   - core:       The core of the clients; `nil` for all.
  ///   - floor:      `Floor/bodies.c`.
  ///   - sink:       `Sink/sink.c`.
  ///   - serverCore: The core of the sink.
  init(server: Server, core: Int?, floor: String, client: String, sink: String, serverCore: Int?) throws {
    self.server = server
    self.core = core
    self.floor = floor
    self.client = client
    let port = try Loopback.freePorts(1)[0]
    sinkURL = "http://127.0.0.1:\(port)/"
    self.sink = try Command(words: [sink, String(port)], core: serverCore).start()
    do {
      try makeContent()
      try Loopback.waitForServer("the server for uploads", self.sink, port)
    } catch {
      stop()
      throw error
    }
  }

  /// Ends the sink. The second call has no effect.
  func stop() {
    guard sink.isRunning else { return }
    sink.terminate()
    sink.waitUntilExit()
  }

  /// Prints each row when it is done, and returns all results.
  func perform(_ rows: [BodyRow], rounds: Int) throws -> [BodyResult] {
    Console.say(BodyResult.header)
    return try rows.flatMap { row in
      // Brings the file into the page cache.
      _ = try run(.floor, row)
      var runs: [Client: [BodyFigures]] = [:]
      for _ in 0..<rounds {
        for client in [Client.floor, .alamofire] { runs[client, default: []].append(try run(client, row)) }
      }
      let results = [Client.floor, .alamofire].map { client in
        BodyResult(row, client, runs: runs[client] ?? [], floors: runs[.floor] ?? [])
      }
      results.forEach { Console.say($0.line) }
      Console.say()
      return results
    }
  }

  private func run(_ client: Client, _ row: BodyRow) throws -> BodyFigures {
    let url: String
    let file: URL
    switch row {
    case .uploadFile: (url, file) = (sinkURL, content)
    case .downloadFile, .streamDiscard: (url, file) = (server.url(.http1, path: "/content"), downloaded)
    }
    // Each download makes a new file.
    defer { try? FileManager.default.removeItem(at: downloaded) }
    let words =
      (client == .floor ? [floor] : [self.client, "body"]) + [
        "--row", row.rawValue, "--url", url, "--warmup-url", server.url(.http1, path: "/item"), "--file",
        file.path,
        "--bytes", String(Self.bytes),
      ]
    // `TMPDIR` is on the same file system, so that a downloaded file is moved and not copied.
    let command = Command(words: words, environment: ["TMPDIR": server.folder.path], core: core)
    return try JSONDecoder().decode(BodyFigures.self, from: command.run())
  }

  private var content: URL { server.folder.appendingPathComponent(Server.content) }
  private var downloaded: URL { server.folder.appendingPathComponent("downloaded.bin") }

  private func makeContent() throws {
    let room = try server.folder.resourceValues(forKeys: [.volumeAvailableCapacityKey])
      .volumeAvailableCapacity
    guard room ?? .max > 2 * Self.bytes else {
      throw CommandFailure(description: "\(server.folder.path): large bodies need 2 GB of room")
    }
    guard FileManager.default.createFile(atPath: content.path, contents: nil),
      truncate(content.path, Self.bytes) == 0
    else { throw CommandFailure(description: "\(content.path): \(String(cString: strerror(errno)))") }
  }
}
