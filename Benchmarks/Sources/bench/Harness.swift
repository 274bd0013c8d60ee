import Foundation
import Scorecard

/// Runs clients against one server.
struct Harness {
  /// One run of a client, and the connections that the server counted.
  struct Run {
    var figures: RunFigures
    var connections: Int
  }

  let server: Server
  /// The number of the only core that the clients may use; `nil` for all.
  var core: Int?
  /// The programs: `floor` and `bench-client`.
  let floor: String
  let client: String
  /// The library that is preloaded into `URLSession`'s runs: `Authority/authority.c`.
  let authority: String
  /// The library that is preloaded into the other clients; `nil` for none.
  var preload: String?
  /// The pause of the other clients between two requests, in microseconds; `nil` for none.
  var pause: Int?

  /// Runs a client once, in a separate process.
  func run(
    _ contender: Plan.Contender, over wire: WireProtocol, concurrency: Int, requests: Int
  ) throws -> Run {
    var words = contender.client == .floor ? [floor] : [client, contender.client.rawValue]
    words += [
      "--url", server.url(wire, for: contender.row), "--ca", server.authority, "--protocol", wire.rawValue,
    ]
    if contender.client != .floor { words += ["--row", contender.row.rawValue] }
    if contender.client != .floor, let pause { words += ["--pause", String(pause)] }
    words += ["--requests", String(requests), "--concurrency", String(concurrency)]
    var environment = ["BENCH_AUTHORITY": server.authority]
    environment["LD_PRELOAD"] = contender.client == .urlsession ? authority : preload
    let output = try Command(words: words, environment: environment, core: core).run()
    let figures = try JSONDecoder().decode(RunFigures.self, from: output)
    let openings = try server.openings()
    let expected = wire == .h2 ? "HTTP/2.0" : "HTTP/1.1"
    guard openings.versions == [expected] else {
      let spoken = openings.versions.sorted().joined(separator: ", ")
      throw CommandFailure(
        description: "\(contender.client.rawValue) was to speak \(expected) and spoke \(spoken)")
    }
    return Run(figures: figures, connections: openings.count)
  }
}
