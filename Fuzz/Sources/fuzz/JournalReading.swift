import FoundationEssentials
import HTTPWire

/// Checks the reader of journals, with lines that may be forged with valid checksums. What was read and written is the
/// same when it is read again, and bytes that the file lacks do not count.
enum JournalReading {
  /// The checksum of all lines is 0, so that the inputs reach the records.
  private struct NoHash: HashFunctions {
    func hash(_ algorithm: DigestChallenge.Algorithm, _ bytes: [UInt8]) -> [UInt8]? {
      [UInt8](repeating: 0, count: 8)
    }
    func makeRunningHash(_ algorithm: DigestChallenge.Algorithm) -> (any RunningHash)? { nil }
  }

  private static let journal = Journal(hashes: NoHash())

  static func check(_ bytes: UnsafeRawBufferPointer) {
    let content = journal.content(of: Data(bytes))
    precondition(content.length <= bytes.count)
    guard let lines = journal.lines(of: content.records) else { return }
    precondition(
      journal.content(of: lines).records == content.records, "they are other records the second time")
    guard let state = JournalState(content.records) else { return }
    precondition(JournalState(state.records) == state, "the shortest journal has another state")
    for boot in ["boot", "", state.description.boot] {
      for size in [Int64.min, 0, 10, .max] {
        let received = state.received(boot: boot, fileSize: size)
        precondition(received.ranges.last?.upperBound ?? 0 <= max(0, size))
        precondition(state.receivedSize(boot: boot, fileSize: size) <= received.count)
        _ = state.continuation(boot: boot, fileSize: size, isAtDestination: true)
      }
    }
    _ = state.upload?.resource
    _ = state.representation?.continuation(
      after: 4, by: state.head?.head ?? ResponseHead(status: 206, fields: []))
    _ = state.description.wait(at: 1000)
  }
}
