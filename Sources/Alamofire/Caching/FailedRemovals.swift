import Foundation
import HTTPWire
import Synchronization

/// Files of cache folders that could not be removed, for example in a folder that has become read-only. Caches of
/// this process ignore them, until another file is written in their place.
///
/// The next process cannot know them. That process does not use a folder that is still read-only; in one that is
/// writable again, it finds the files, with their real age.
final class FailedRemovals: Sendable {
  static let shared = FailedRemovals()

  private struct Folder {
    var names: Set<String> = []
    /// The files that are not removed, if the names could not be read; all others are.
    var survivors: Set<String>?

    func hides(_ name: String) -> Bool { names.contains(name) || survivors?.contains(name) == false }
  }

  private let folders = Mutex<[String: Folder]>([:])

  func add(_ name: String, in folder: String) {
    folders.withLock { folders in
      folders[folder, default: Folder()].names.insert(name)
      folders[folder]?.survivors?.remove(name)
    }
  }

  /// Marks all files of a folder as removed, whatever their names are.
  func addAll(in folder: String) {
    folders.withLock { $0[folder, default: Folder()].survivors = [] }
  }

  /// Unmarks a file that was replaced.
  func replaced(_ name: String, in folder: String) { forget(name, in: folder, survives: true) }

  /// Unmarks a file whose removal has succeeded in another try.
  func removed(_ name: String, in folder: String) { forget(name, in: folder, survives: false) }

  private func forget(_ name: String, in folder: String, survives: Bool) {
    folders.withLock { folders in
      guard folders[folder] != nil else { return }
      folders[folder]?.names.remove(name)
      if survives { folders[folder]?.survivors?.insert(name) }
      if folders[folder]?.names.isEmpty == true, folders[folder]?.survivors == nil { folders[folder] = nil }
    }
  }

  /// Returns the removed ones among the names of a folder's files.
  func hidden(of names: [String], in folder: String) -> Set<String> {
    folders.withLock { folders in
      guard let known = folders[folder] else { return [] }
      let hidden = Set(names.filter { known.hides($0) })
      folders[folder] = hidden.isEmpty ? nil : Folder(names: hidden)
      return hidden
    }
  }

  func hidesAny(in folder: String) -> Bool { folders.withLock { $0[folder] != nil } }

  func hides(_ name: String, in folder: String) -> Bool {
    folders.withLock { $0[folder]?.hides(name) == true }
  }

  func names(in folder: String) -> Set<String> { folders.withLock { $0[folder]?.names ?? [] } }
}

/// The files of a folder without those of ``FailedRemovals``, whose removal is tried again whenever the folder could be
/// changed.
struct CacheFiles: Sendable {
  private let files: any EntryFiles
  private let failed = FailedRemovals.shared

  init(_ files: any EntryFiles) { self.files = files }

  /// Returns the files that are not removed; `nil` when the folder cannot be read now.
  func list() -> [EntryFile]? {
    guard let found = files.list() else { return nil }
    guard failed.hidesAny(in: files.location) else { return found }
    let names = found.map(\.name).filter { EntryID(name: $0) != nil }
    let hidden = failed.hidden(of: names, in: files.location)
    for name in hidden { remove(name) }
    return found.filter { !hidden.contains($0.name) }
  }

  func read(_ name: String) -> EntryReading {
    failed.hides(name, in: files.location) ? .missing : files.read(name)
  }

  func write(_ name: String, _ bytes: Data) -> Bool {
    guard files.write(name, bytes) else { return false }
    failed.replaced(name, in: files.location)
    for left in failed.names(in: files.location) where files.remove(left) {
      failed.removed(left, in: files.location)
    }
    return true
  }

  func remove(_ name: String) {
    if files.remove(name) {
      failed.removed(name, in: files.location)
    } else {
      failed.add(name, in: files.location)
    }
  }

  /// Removes all responses; other files stay.
  func removeAll() {
    guard let found = files.list() else { return failed.addAll(in: files.location) }
    for file in found where EntryID(name: file.name) != nil { remove(file.name) }
  }

  func touch(_ name: String) { files.touch(name) }
}
