import Foundation
import HTTPWire
import Synchronization

/// A file with what is remembered of hosts: its owner alone can read it, and it is whole at any time.
final class AtomicFile: NotebookFile {
  /// None of ours is nearly as large.
  private static let largest = 16 << 20

  private let path: String
  private let name: String
  private let folder: any EntryFiles
  /// The latest edition that was written. Locked while it is: of two that are written at a time, the later one stays.
  private let edition = Mutex<UInt64>(0)

  init(_ url: URL) throws(HostStorageError) {
    guard url.isFileURL, !url.hasDirectoryPath,
      let folder = CacheFolder.open(url.deletingLastPathComponent().path)
    else { throw .folderNotOurs }
    path = url.path
    name = url.lastPathComponent
    self.folder = folder
  }

  func read() throws(HostStorageError) -> String? {
    guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else { return nil }
    let size = (attributes[.size] as? NSNumber)?.intValue ?? 0
    guard size <= Self.largest, let data = folder.read(name).data,
      let text = String(bytes: data, encoding: .utf8)
    else { throw .unreadable }
    // One that was only made is as good as none.
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

extension HostPolicyStore {
  /// A notebook that is kept in a file, or one in memory that knows why there is none.
  convenience init(_ table: Table, keptIn url: URL) {
    do throws(HostStorageError) {
      self.init(table, file: try AtomicFile(url))
    } catch {
      self.init(table, error: error)
    }
  }
}
