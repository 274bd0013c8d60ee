package import FoundationEssentials

/// The records of an unfinished transfer as bytes: a line for each record, with a checksum and the record as JSON.
///
/// A process may end while it writes a line, and a disk may damage one. The records before such a line are valid, and
/// nothing that follows it. The checksum proves nothing about the writer, so the values may be forged.
package struct Journal: Sendable {
  /// The records of a journal that was read.
  package struct Content: Sendable, Equatable {
    package fileprivate(set) var records: [JournalRecord] = []
    /// The number of bytes of the records.
    package fileprivate(set) var length = 0
    /// Whether an undamaged line with an unknown record ends the journal. A later version has written it, and it may
    /// say that something must not be repeated.
    package fileprivate(set) var isOfLaterVersion = false
  }

  /// The longest line of a journal; a longer one was not written by this library.
  package static let longestLine = 16 << 20

  private let hashes: any HashFunctions

  package init(hashes: any HashFunctions) {
    self.hashes = hashes
  }

  /// Returns the line of a record; `nil` if it cannot be encoded.
  package func line(of record: JournalRecord) -> Data? {
    guard let json = json(of: record), let sum = checksum(json), json.count < Self.longestLine else {
      return nil
    }
    return Data(sum.utf8) + [UInt8(ascii: " ")] + json + [UInt8(ascii: "\n")]
  }

  private func json(of record: JournalRecord) -> Data? {
    // A download in segments writes one for each piece, in a tenth of the time of an encoder.
    if case .wrote(let ranges) = record { return Data("{\"wrote\":{\"_0\":\"\(ranges.text)\"}}".utf8) }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return try? encoder.encode(record)
  }

  /// Returns the lines of records; `nil` if one cannot be encoded.
  package func lines(of records: [JournalRecord]) -> Data? {
    let lines = records.compactMap { line(of: $0) }
    return lines.count == records.count ? Data(lines.joined()) : nil
  }

  /// Returns the records before the first line that is damaged, not complete, or unknown.
  package func content(of bytes: Data) -> Content {
    var content = Content()
    let decoder = JSONDecoder()
    while let end = bytes[(bytes.startIndex + content.length)...].firstIndex(of: UInt8(ascii: "\n")) {
      let line = bytes[(bytes.startIndex + content.length)..<end]
      guard let json = payload(of: line) else { break }
      guard let record = try? decoder.decode(JournalRecord.self, from: json) else {
        content.isOfLaterVersion = true
        break
      }
      content.records.append(record)
      content.length = end - bytes.startIndex + 1
    }
    return content
  }

  /// Returns what a journal says; `nil` without a valid description, and for a journal of a later version.
  package func state(of bytes: Data) -> JournalState? {
    let content = content(of: bytes)
    return content.isOfLaterVersion ? nil : JournalState(content.records)
  }

  private func payload(of line: Data) -> Data? {
    guard line.count < Self.longestLine, let space = line.firstIndex(of: UInt8(ascii: " ")) else {
      return nil
    }
    let json = Data(line[(space + 1)...])
    return checksum(json).map { Data($0.utf8) } == Data(line[..<space]) ? json : nil
  }

  private func checksum(_ bytes: Data) -> String? {
    hashes.text(.sha256, Array(bytes)).map { String($0.prefix(16)) }
  }
}
