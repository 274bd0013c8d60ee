import Scorecard

/// The measurements of one run of the benchmarks, and their numbers of rounds.
struct Plan {
  /// One client on one row, under one protocol and concurrency.
  struct Contender: Hashable {
    var client: Client
    var row: Row
  }

  /// Contenders that run in turn and are compared with the first of them.
  struct Cell {
    var wire: WireProtocol
    var concurrency: Int
    var contenders: [Contender]
  }

  /// Cells that are printed as one table.
  struct Group {
    var title: String?
    var cells: [Cell]
  }

  var rounds: Int
  var groups: [Group]
  /// Ways of moving a large body, measured after the cells.
  var bodies: [BodyRow]
  /// Ways of using WebSocket connections, measured after them.
  var sockets: [SocketRow]
  /// Ways of holding requests and connections, measured last.
  var held: [HeldRow]

  /// Reads the filters of a command line. The floor always runs, because the ratios need it.
  init(_ arguments: Arguments) throws {
    let isQuick = arguments["quick"] != nil
    rounds = try arguments.count("rounds") ?? (isQuick ? 3 : 5)
    let selection = try RowSelection(arguments)
    bodies = selection.bodies
    sockets = selection.sockets
    held = selection.held
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
    let plain = (rows.isEmpty ? [] : wires).flatMap { wire in
      concurrencies.map { Cell(wire: wire, concurrency: $0, contenders: contenders) }
    }
    groups = [
      Group(title: nil, cells: plain),
      Group(
        title: "Everyday requests, beside get-data of this package", cells: Self.everyday(selection.everyday)),
      Group(title: "New connections, beside bare libcurl", cells: selection.handshakes.map(Self.handshake)),
    ].filter { !$0.cells.isEmpty }
  }

  private static func everyday(_ rows: [Row]) -> [Cell] {
    let contenders = ([.getData] + rows).map { Contender(client: .alamofire, row: $0) }
    return rows.isEmpty ? [] : [Cell(wire: .http1, concurrency: 64, contenders: contenders)]
  }

  private static func handshake(_ row: Row) -> Cell {
    Cell(
      wire: .https1, concurrency: 16,
      contenders: [Contender(client: .floor, row: row), Contender(client: .alamofire, row: row)])
  }

  /// Returns the number of requests for a run of about half a second.
  static func requests(_ contender: Contender, concurrency: Int) -> Int {
    if contender.row.isHandshake { return 1000 }
    return switch contender.client {
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
