import Scorecard

/// The measurements of one run of the benchmarks, and their numbers of rounds.
struct Plan {
  /// One client on one row, under one protocol and concurrency.
  struct Contender: Hashable {
    var client: Client
    var row: Row
  }

  /// Contenders that run in turn and are compared with each other.
  struct Cell {
    var wire: WireProtocol
    var concurrency: Int
    var contenders: [Contender]
  }

  var rounds: Int
  var cells: [Cell]
  /// Ways of moving a large body, measured after the cells.
  var bodies: [BodyRow]
  /// Ways of using WebSocket connections, measured last.
  var sockets: [SocketRow]

  /// Reads the filters of a command line. The floor always runs, because the ratios need it.
  init(_ arguments: Arguments) throws {
    let isQuick = arguments["quick"] != nil
    rounds = try arguments.count("rounds") ?? (isQuick ? 3 : 5)
    let selection = try RowSelection(arguments)
    bodies = selection.bodies
    sockets = selection.sockets
    let rows = selection.rows
    let wires = try arguments.choices("protocol") ?? (isQuick ? [.http1] : WireProtocol.allCases)
    let clients = try arguments.choices("client") ?? (isQuick ? [.alamofire] : Client.allCases)
    let concurrencies = try Self.numbers(arguments["concurrency"]) ?? (isQuick ? [1, 64] : [1, 16, 64, 256])
    // Between two rounds of a client, each other client has one round. So a temporary load on the machine affects
    // all clients.
    let others = [Client.alamofire, .urlsession].filter(clients.contains)
    let contenders =
      [Contender(client: .floor, row: .getData)]
      + others.flatMap { client in rows.map { Contender(client: client, row: $0) } }
    cells = (rows.isEmpty ? [] : wires).flatMap { wire in
      concurrencies.map { Cell(wire: wire, concurrency: $0, contenders: contenders) }
    }
  }

  /// Returns the number of requests for a run of about half a second.
  static func requests(_ client: Client, concurrency: Int) -> Int {
    switch client {
    case .floor: concurrency == 1 ? 5000 : 20_000
    case .alamofire: concurrency == 1 ? 4000 : 12_000
    case .urlsession: 1500
    }
  }

  private static func numbers(_ text: String?) throws -> [Int]? {
    try text?.split(separator: ",").map { part in
      guard let number = Int(part), number > 0 else {
        throw Arguments.Problem("--concurrency must be positive numbers, not '\(part)'")
      }
      return number
    }
  }
}
