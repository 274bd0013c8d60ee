import Foundation

/// A file that a download has moved to its destination. It is recognized by its number, size and date, because another
/// file of the user's may be at the same path by now.
struct MovedFile: Equatable, Sendable {
  private let device: UInt64
  private let number: UInt64
  private let size: UInt64
  private let modified: Date

  /// Reads the attributes of a file; `nil` if there is none. A link is not followed.
  init?(_ url: URL) {
    guard url.isFileURL, let attributes = try? FileManager.default.attributesOfItem(atPath: url.path),
      attributes[.type] as? FileAttributeType == .typeRegular,
      let device = attributes[.systemNumber] as? NSNumber,
      let number = attributes[.systemFileNumber] as? NSNumber,
      let size = attributes[.size] as? NSNumber, let modified = attributes[.modificationDate] as? Date
    else {
      return nil
    }
    (self.device, self.number) = (device.uint64Value, number.uint64Value)
    (self.size, self.modified) = (size.uint64Value, modified)
  }

  /// Removes the file at a URL if it is this one.
  func remove(at url: URL) {
    if MovedFile(url) == self { try? FileManager.default.removeItem(at: url) }
  }
}
