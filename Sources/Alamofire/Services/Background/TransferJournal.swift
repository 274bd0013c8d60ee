import Foundation
import HTTPSystem
import HTTPWire

/// The journal of a background transfer: its records, and the size of its file.
struct TransferJournal: Sendable {
  /// The bytes of a journal after which it is replaced by a shorter one. Each response appends its head, and a server
  /// that breaks each response would fill the disk.
  private static let compactionInterval = 1 << 20

  private(set) var state: JournalState
  private let name: String
  /// The number of bytes of the complete records. A write that failed may have left a part of another one after them.
  private var size: Int
  /// The size when the journal was last written as a whole; 0 if an earlier process has written it.
  private var compactSize: Int

  /// Makes the journal that an earlier process has written.
  init(_ state: JournalState, restored name: String, size: Int) {
    (self.state, self.name, self.size) = (state, name, size)
    compactSize = 0
  }

  /// Makes the journal that was written with these records.
  init?(_ records: [JournalRecord], written name: String, size: Int) {
    guard let state = JournalState(records) else { return nil }
    (self.state, self.name, self.size) = (state, name, size)
    compactSize = size
  }

  /// Appends a record, or replaces the journal if it has become long. Returns the number of the error, if there is one.
  mutating func append(_ record: JournalRecord, in files: (any TransferFiles)?) -> Int32? {
    state.apply(record)
    guard let line = Journal.standard.line(of: record), let files else { return EINVAL }
    if size - compactSize + line.count > Self.compactionInterval, compact(in: files) { return nil }
    if let code = files.append(line, to: name, at: size) { return code }
    size += line.count
    return nil
  }

  private mutating func compact(in files: any TransferFiles) -> Bool {
    // If it fails, it is tried again after as many bytes.
    compactSize = size
    guard let lines = Journal.standard.lines(of: state.records), files.replace(name, by: lines) == nil else {
      return false
    }
    (size, compactSize) = (lines.count, lines.count)
    return true
  }
}
