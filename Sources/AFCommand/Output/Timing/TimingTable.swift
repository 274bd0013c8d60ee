/// The phases of a request: for every hop a line a phase, with a bar that begins and ends where the phase did.
package struct TimingTable: Equatable, Sendable {
  /// A phase; milliseconds since the start of the first hop.
  package struct Phase: Equatable, Sendable {
    package let name: String
    package let start: Double
    package let end: Double

    package init(_ name: String, from start: Double, to end: Double) {
      self.name = name
      self.start = start
      self.end = end
    }
  }

  /// One request over the wire.
  package struct Hop: Equatable, Sendable {
    package let title: String
    package let details: [String]
    package let phases: [Phase]

    package init(title: String, details: [String], phases: [Phase]) {
      self.title = title
      self.details = details
      self.phases = phases
    }
  }

  private static let nameWidth = 15
  private static let timeWidth = 9
  private static let widestBar = 60

  package let hops: [Hop]
  /// Milliseconds.
  package let total: Double

  package init(hops: [Hop], total: Double) {
    self.hops = hops
    self.total = total
  }

  /// Returns the lines of the table for a terminal of `width` columns; without bars if they do not fit.
  package func text(width: Int, palette: Palette) -> String {
    let barWidth = min(Self.widestBar, width - 2 - Self.nameWidth - Self.timeWidth - 3)
    var lines: [String] = []
    for hop in hops {
      lines.append(palette.paint(hop.title, .good))
      lines += hop.details.map { "  " + palette.paint($0, .faint) }
      for phase in hop.phases { lines.append(line(phase, barWidth: barWidth, palette)) }
    }
    lines.append("  " + Self.cells("total", total))
    return lines.map { $0 + "\n" }.joined()
  }

  private func line(_ phase: Phase, barWidth: Int, _ palette: Palette) -> String {
    let cells = "  " + Self.cells(phase.name, phase.end - phase.start)
    guard barWidth >= 8, total > 0 else { return cells }
    let scale = Double(barWidth) / total
    let first = max(0, min(barWidth - 1, Int(Int64(clamping: phase.start * scale))))
    let last = max(first + 1, min(barWidth, Int(Int64(clamping: (phase.end * scale).rounded()))))
    let bar = String(repeating: "█", count: last - first)
    return cells + "  " + String(repeating: " ", count: first) + palette.paint(bar, .name)
  }

  private static func cells(_ name: String, _ time: Double) -> String {
    let time = Milliseconds.text(time)
    return name + String(repeating: " ", count: max(1, nameWidth - name.count))
      + String(repeating: " ", count: max(0, timeWidth - time.count)) + time
  }
}
