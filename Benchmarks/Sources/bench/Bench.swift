import Foundation
import Scorecard

/// Measures this package against bare libcurl and against `URLSession`, all of them against one nginx.
/// `Scripts/bench` builds it and passes its arguments on; `README.md` explains them.
@main struct Bench {
  static func main() {
    do {
      try run(CommandLine.arguments.dropFirst())
    } catch {
      FileHandle.standardError.write(Data("bench: \(error)\n".utf8))
      exit(1)
    }
  }

  private static func run(_ words: some Sequence<String>) throws {
    let arguments = try Arguments(
      words,
      options: [
        "row", "protocol", "concurrency", "client", "rounds", "scratch", "output", "thresholds", "floor",
        "bench-client", "authority", "counts", "floor-bodies", "sink", "floor-sockets", "socket-server",
      ],
      flags: ["quick"])
    let cores = Cores()
    if cores.server == nil { Console.say("One core: server and clients share it, and the figures show it.") }
    let scratch = URL(fileURLWithPath: try arguments.required("scratch"))
    let server = try Server(in: scratch, core: cores.server)
    defer { server.stop() }
    var harness = Harness(
      server: server, core: cores.client, floor: try arguments.required("floor"),
      client: try arguments.required("bench-client"), authority: try arguments.required("authority"))
    switch arguments.words {
    case []:
      try compare(arguments, harness)
    case ["counts"]:
      harness.preload = try arguments.required("counts")
      harness.core = nil
      let thresholds = URL(fileURLWithPath: try arguments.required("thresholds"))
      let sockets = try socketHarness(arguments, client: harness.client, core: nil)
      defer { sockets.stop() }
      guard try CountsCheck(harness: harness, sockets: sockets, thresholds: thresholds).perform() else {
        throw CommandFailure(description: "a request does more than it may")
      }
    default:
      throw Arguments.Problem("there is no mode '\(arguments.words.joined(separator: " "))'")
    }
  }

  private static func compare(_ arguments: Arguments, _ harness: Harness) throws {
    let plan = try Plan(arguments)
    var results: [any Encodable] = try Comparison(harness: harness, plan: plan).perform()
    if !plan.bodies.isEmpty {
      let bodies = try BodyComparison(
        server: harness.server, core: harness.core, floor: try arguments.required("floor-bodies"),
        client: harness.client, sink: try arguments.required("sink"), serverCore: Cores().server)
      defer { bodies.stop() }
      results += try bodies.perform(plan.bodies, rounds: plan.rounds)
    }
    if !plan.sockets.isEmpty {
      let sockets = try socketHarness(arguments, client: harness.client, core: harness.core)
      defer { sockets.stop() }
      results += try SocketComparison(harness: sockets, rounds: plan.rounds).perform(plan.sockets)
    }
    if !plan.held.isEmpty {
      results += try HeldComparison(server: harness.server, core: harness.core, client: harness.client)
        .perform(plan.held, rounds: plan.rounds)
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    let output = URL(fileURLWithPath: try arguments.required("output"))
    try encoder.encode(results.map(AnyResult.init)).write(to: output)
    Console.say("Written: \(output.path)")
  }

  private static func socketHarness(
    _ arguments: Arguments, client: String, core: Int?
  ) throws -> SocketHarness {
    try SocketHarness(
      server: arguments.required("socket-server"), serverCore: core == nil ? nil : Cores().server, core: core,
      floor: arguments.required("floor-sockets"), client: client)
  }
}
