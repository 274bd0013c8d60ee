import Scorecard

/// The rows that a command line selects.
struct RowSelection {
  var rows: [Row]
  var bodies: [BodyRow]
  var sockets: [SocketRow]

  /// Reads the names of rows. Without names all rows are selected. Large bodies and WebSocket connections are selected
  /// only if no other filter is given, because they are measured under one protocol.
  init(_ arguments: Arguments) throws {
    guard let text = arguments["row"] else {
      let isFiltered = ["quick", "protocol", "concurrency", "client"].contains { arguments[$0] != nil }
      rows = Row.allCases
      bodies = isFiltered ? [] : BodyRow.allCases
      sockets = isFiltered ? [] : SocketRow.allCases
      return
    }
    rows = []
    bodies = []
    sockets = []
    for name in text.split(separator: ",").map(String.init) {
      if let row = Row(rawValue: name) {
        rows.append(row)
      } else if let row = BodyRow(rawValue: name) {
        bodies.append(row)
      } else if let row = SocketRow(rawValue: name) {
        sockets.append(row)
      } else {
        let names =
          Row.allCases.map(\.rawValue) + BodyRow.allCases.map(\.rawValue) + SocketRow.allCases.map(\.rawValue)
        throw Arguments.Problem("--row must be one of \(names.joined(separator: ", ")), not '\(name)'")
      }
    }
  }
}
