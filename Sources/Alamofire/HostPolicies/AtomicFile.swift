import Foundation
import HTTPWire

/// A file that only its owner can read and that is replaced atomically.
final class AtomicFile: HostPolicyFile {
  /// A larger file is not one of ours.
  private static let largest = 16 << 20

  private let path: String
  private let name: String
  private let folder: any EntryFiles
  /// The latest edition that was written. The file is written under this lock, so that the later of two editions stays.
  private let edition = Mutex<UInt64>(0)

  init(_ url: URL) throws(HostStorageError) {
    guard url.isFileURL, !url.hasDirectoryPath,
      let folder = CacheFolder.open(url.deletingLastPathComponent().path)
    else { throw .folderNotOurs }
    path = url.path
    name = url.lastPathComponent
    self.folder = folder
    folder.removeLeftovers()
  }

  func read() throws(HostStorageError) -> String? {
    guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else { return nil }
    let size = (attributes[.size] as? NSNumber)?.intValue ?? 0
    guard size <= Self.largest, let data = folder.read(name).data,
      let text = String(bytes: data, encoding: .utf8)
    else { throw .unreadable }
    // An empty file was created and never written.
    return text.isEmpty ? nil : text
  }

  func write(_ text: String, edition: UInt64) throws(HostStorageError) {
    let isWritten = self.edition.withLock { latest in
      guard edition > latest else { return true }
      guard folder.write(name, Data(text.utf8)) else { return false }
      latest = edition
      return true
    }
    guard isWritten else { throw .notWritten }
  }
}
