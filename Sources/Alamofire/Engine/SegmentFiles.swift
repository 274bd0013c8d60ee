import HTTPSystem
package import HTTPWire

/// Files that downloads in segments write to.
package enum SegmentFiles {
  /// Opens the partial file of a download, which is locked until it is closed. Returns `nil` if another download has
  /// locked it.
  package static func open(path: String, recordPath: String) throws(TransportFailure) -> (any SegmentFile)? {
    do throws(PartialFile.OpeningFailure) {
      return try PartialFile(path: path, recordPath: recordPath)
    } catch {
      switch error {
      case .inUse: return nil
      case .system(let failure): throw failure
      }
    }
  }

  /// Returns the paths of the partial file and its record for a file that is downloaded.
  package static func paths(for destination: String) -> (partial: String, record: String) {
    let partial = CompanionName.path(beside: destination, suffix: ".alamofire-partial")
    let record = CompanionName.path(
      beside: destination, suffix: ".alamofire-ranges", reserving: PartialFile.recordSuffixLength)
    return (partial, record)
  }

  /// The identifier of the running system; empty if it is unknown.
  package static var boot: String { PartialFile.boot }
}

/// A file that is written in ranges, with a record of these ranges. Its methods block.
package protocol SegmentFile: AnyObject, Sendable {
  /// The size of the file in bytes.
  var size: Int { get }
  /// Discards all bytes and the record, and reserves room for `length` bytes.
  func prepare(length: Int?) -> TransportFailure?
  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> TransportFailure?
  /// Waits until the bytes are on the disk. Returns whether they are.
  func flush() -> Bool
  /// Adds all bytes of the file to a hash. Returns false if they cannot be read.
  func read(into hash: any RunningHash) -> Bool
  /// Moves the complete file, with the mode that the umask gives. Returns the number of the error if nothing has
  /// happened.
  func move(to target: String, replacing: Bool) -> Int32?
  /// Removes the file and its record.
  func remove()
  /// Releases the lock of the file.
  func close()
  /// Returns the text of the record; `nil` if there is none.
  func record() -> String?
  /// Replaces the record. Returns false if that has failed.
  func replaceRecord(by text: String) -> Bool
  /// Appends a line to the record, if there is one.
  func append(_ line: String)
}

extension PartialFile: SegmentFile {}
