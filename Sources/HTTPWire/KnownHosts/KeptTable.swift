/// What is remembered of hosts, as a text of lines.
package protocol KeptTable: Sendable {
  /// The first line, by which a text is known.
  static var title: String { get }
  func lines(now: Int64) -> [String]
  /// Takes one line in. Returns false when it is none.
  mutating func read(_ line: Substring) -> Bool
}

extension KeptTable {
  package func text(now: Int64) -> String {
    ([Self.title] + lines(now: now)).joined(separator: "\n") + "\n"
  }

  /// Takes in a whole text. With one line that is none, nothing of it counts.
  package mutating func read(text: String) throws(HostStorageError) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    guard lines.first.map({ $0 == Self.title }) == true else { throw .otherFile }
    var copy = self
    for (index, line) in lines.dropFirst().enumerated() where !line.isEmpty {
      guard copy.read(line) else { throw .brokenLine(index + 2) }
    }
    self = copy
  }
}
