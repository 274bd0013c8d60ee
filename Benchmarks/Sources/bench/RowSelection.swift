import Scorecard

/// The rows that a command line selects.
struct RowSelection {
  private var requests: [Row] = []
  private(set) var bodies: [BodyRow] = []
  private(set) var sockets: [SocketRow] = []
  private(set) var held: [HeldRow] = []

  var rows: [Row] { requests.filter(Row.plain.contains) }
  var everyday: [Row] { requests.filter(Row.everyday.contains) }
  var handshakes: [Row] { requests.filter(Row.handshakes.contains) }

  /// Reads the names of rows. Without names all rows are selected. Those that are measured under one protocol are
  /// selected only if no other filter is given.
  init(_ arguments: Arguments) throws {
    guard let text = arguments["row"] else {
      let isFiltered = ["quick", "protocol", "concurrency", "client"].contains { arguments[$0] != nil }
      requests = isFiltered ? Row.plain : Row.allCases
      bodies = isFiltered ? [] : BodyRow.allCases
      sockets = isFiltered ? [] : SocketRow.allCases
      held = isFiltered ? [] : HeldRow.allCases
      return
    }
    for name in text.split(separator: ",").map(String.init) {
      if let row = Row(rawValue: name) {
        requests.append(row)
      } else if let row = BodyRow(rawValue: name) {
        bodies.append(row)
      } else if let row = SocketRow(rawValue: name) {
        sockets.append(row)
      } else if let row = HeldRow(rawValue: name) {
        held.append(row)
      } else {
        let names =
          Row.allCases.map(\.rawValue) + BodyRow.allCases.map(\.rawValue) + SocketRow.allCases.map(\.rawValue)
          + HeldRow.allCases.map(\.rawValue)
        throw Arguments.Problem("--row must be one of \(names.joined(separator: ", ")), not '\(name)'")
      }
    }
  }
}
