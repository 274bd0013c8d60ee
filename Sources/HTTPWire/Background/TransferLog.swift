package import FoundationEssentials

/// The journal of one background transfer as bytes: a line for each record, with a checksum and the record as JSON.
///
/// A process may end while it writes a line, and a disk may damage one. The records before such a line are valid.
package struct TransferLog: Sendable {
  /// A longer line is no record of this library.
  package static let longestLine = 16 << 20

  private let hashes: any HashFunctions

  package init(hashes: any HashFunctions) {
    self.hashes = hashes
  }

  /// Returns the line of a record; `nil` if it cannot be encoded.
  package func line(of record: TransferRecord) -> Data? {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let json = try? encoder.encode(record), let sum = checksum(json), json.count < Self.longestLine
    else {
      return nil
    }
    return Data(sum.utf8) + [UInt8(ascii: " ")] + json + [UInt8(ascii: "\n")]
  }

  /// Returns the records before the first line that is damaged or not complete, and the number of their bytes.
  package func records(in bytes: Data) -> (records: [TransferRecord], length: Int) {
    var records: [TransferRecord] = []
    var length = 0
    let decoder = JSONDecoder()
    while let end = bytes[(bytes.startIndex + length)...].firstIndex(of: UInt8(ascii: "\n")) {
      let line = bytes[(bytes.startIndex + length)..<end]
      guard let json = payload(of: line), let record = try? decoder.decode(TransferRecord.self, from: json)
      else { break }
      records.append(record)
      length = end - bytes.startIndex + 1
    }
    return (records, length)
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
