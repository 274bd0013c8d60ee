import Foundation
import HTTPWire
import Synchronization

/// The storage of an ``HTTPCache``: responses in memory and in files. The first access opens the folder and lists its
/// files.
///
/// Files are written and removed in order on a serial queue. A read also returns responses that are not written yet.
final class CacheStorage: Sendable {
  private struct State {
    var index: CacheIndex
    var files: CacheFiles?
    var isOpen: Bool
    /// The hashes of URLs whose unknown files are removed when the folder is listed next.
    var removedHashes: Set<UInt64> = []
    /// The response whose file is being written.
    var writing: EntryID?
  }

  /// The responses in memory and the index of the files, for any thread.
  private let state: Mutex<State>
  private let openFiles: @Sendable () -> (any EntryFiles)?
  /// The serial queue that writes and removes files. ``settle()`` waits for it, and so do removals by the caller of
  /// the library while a file is written that they concern: the file gets its name at the end.
  private let writer: DispatchQueue
  /// Whether the storage is known to be empty without opening the folder; read for each request.
  private let isKnownEmpty: Atomic<Bool>
  /// The number of removals. Each hop notes it when it is sent.
  private let lastRemovalCount = Atomic<UInt64>(0)
  let clock: @Sendable () -> Int64

  /// Makes a storage; its folder is opened later.
  ///
  /// - Parameter files: Opens the folder; `nil` stores everything in memory.
  init(
    memoryCapacity: Int, diskCapacity: Int, files: (@Sendable () -> (any EntryFiles)?)?,
    clock: @escaping @Sendable () -> Int64
  ) {
    state = Mutex(
      State(
        index: CacheIndex(memoryCapacity: memoryCapacity, diskCapacity: files == nil ? 0 : diskCapacity),
        files: nil, isOpen: files == nil))
    openFiles = files ?? { nil }
    isKnownEmpty = Atomic(files == nil)
    writer = DispatchQueue(label: "org.alamofire.cache.writer", qos: .utility)
    self.clock = clock
  }

  /// Opens the folder, once. Two threads can both open it; then one result is dropped. If the folder cannot be listed
  /// now, for example without a free descriptor, the next access tries again.
  private func open() {
    guard !state.withLock({ $0.isOpen }) else { return }
    let files = openFiles().map { CacheFiles($0) }
    guard let found = files == nil ? [] : files?.list() else { return }
    let gone = state.withLock { state -> [EntryID] in
      guard !state.isOpen else { return [] }
      state.isOpen = true
      state.files = files
      // Without a usable folder, only memory is left.
      let toGo = files == nil ? state.index.setCapacities(disk: 0) : state.index.found(found)
      note(state)
      return toGo
    }
    removeFiles(gone, files)
  }

  /// Whether the folder has been opened, or there is none.
  var isOpen: Bool { state.withLock { $0.isOpen } }

  private func note(_ state: borrowing State) {
    isKnownEmpty.store(state.isOpen ? state.index.isEmpty : false, ordering: .relaxed)
    lastRemovalCount.store(state.index.removalCount, ordering: .releasing)
  }

  /// The number of removals so far (``CacheIndex/removalCount``); read for each request.
  var removalCount: UInt64 { lastRemovalCount.load(ordering: .acquiring) }

  /// Changes the index, and removes the files that the change made obsolete.
  private func change(_ body: (inout CacheIndex) -> [EntryID]) {
    open()
    let (gone, files) = state.withLock { state in
      let gone = body(&state.index)
      note(state)
      return (gone, state.files)
    }
    removeFiles(gone, files)
  }

  private func removeFiles(_ ids: [EntryID], _ files: CacheFiles?) {
    guard let files, !ids.isEmpty else { return }
    writer.async {
      for id in ids where !self.state.withLock({ $0.index.hasFile(id) }) { files.remove(id.name) }
    }
  }

  /// Returns when all pending writes and removals of files are done.
  func settle() { writer.sync {} }

  // MARK: Finding

  func mayHold(_ hash: @autoclosure () -> UInt64) -> Bool {
    guard !isKnownEmpty.load(ordering: .relaxed) else { return false }
    let hash = hash()
    return state.withLock { !$0.isOpen || $0.index.mayHold(hash) }
  }

  func find(_ key: CacheKey) -> [StoredResponse]? {
    state.withLock { state in
      guard state.isOpen else { return nil }
      let (stored, files) = state.index.find(key)
      return files.isEmpty ? stored : nil
    }
  }

  /// The size up to which bodies are read with their heads, so that the next look-up finds them in memory.
  private static let smallBody = 16_384

  /// Returns the responses for a URL. Of several files with large bodies, only the heads are read, and the body of the
  /// chosen one.
  ///
  /// - Parameter choose: Returns the response whose body is needed. Asked again if its file proves to be invalid.
  func read(_ key: CacheKey, choosing choose: ([StoredResponse]) -> StoredResponse?) -> [StoredResponse] {
    open()
    let (found, ids, serial, files) = state.withLock { state in
      let (stored, ids) = state.index.find(key)
      return (stored, ids, state.index.lastSerial, state.files)
    }
    guard let files else { return found }
    if found.isEmpty, ids.count == 1 {
      return ids.compactMap { read($0, foundAt: serial, files) }.filter { $0.key == key }
    }
    var all = found + ids.compactMap { readHead($0, foundAt: serial, files) }.filter { $0.key == key }
    while let chosen = choose(all), !chosen.hasBody, let index = all.firstIndex(where: { $0 === chosen }) {
      all.remove(at: index)
      // In the same place, because the first one of equally old responses is chosen.
      if let whole = read(EntryID(chosen), foundAt: serial, files), whole.key == key {
        all.insert(whole, at: index)
      }
    }
    return all
  }

  /// Reads a file, or its head alone if its body is large.
  ///
  /// - Parameter serial: ``CacheIndex/lastSerial`` when the file was found.
  private func readHead(_ id: EntryID, foundAt serial: UInt64, _ files: CacheFiles) -> StoredResponse? {
    let stored: StoredResponse?
    switch files.readHead(id.name) {
    case .unavailable: return nil
    case .missing: stored = nil
    case .bytes(let bytes): stored = StoredResponse.decodeHead(bytes)
    }
    if let stored, EntryID(stored) == id {
      return stored.bodyLength <= Self.smallBody ? read(id, foundAt: serial, files) : stored
    }
    change { $0.read(id, nil, foundAt: serial) }
    return nil
  }

  private func read(_ id: EntryID, foundAt serial: UInt64, _ files: CacheFiles) -> StoredResponse? {
    let stored: StoredResponse?
    switch files.read(id.name) {
    // The file may be intact: an entry is dropped only if its file is missing or invalid.
    case .unavailable: return nil
    case .missing: stored = nil
    case .bytes(let bytes): stored = StoredResponse.decode(bytes)
    }
    if stored != nil { files.touch(id.name) }
    change { $0.read(id, stored, foundAt: serial) }
    return stored
  }

  // MARK: Changing

  /// Stores a response.
  ///
  /// - Parameters:
  ///   - old:      The response before the server updated it.
  ///   - removals: ``removalCount`` when the request began; `nil` for a response that no removal overtakes.
  func put(_ stored: StoredResponse, replacing old: StoredResponse? = nil, askedAfter removals: UInt64?) {
    guard stored.hasBody else { return }
    open()
    let id = EntryID(stored)
    let now = clock()
    let (serial, gone, files) = state.withLock { state in
      let (serial, gone) = state.index.put(
        stored, replacing: old, askedAfter: removals, mayWrite: state.isOpen, now: now)
      note(state)
      return (serial, gone, state.files)
    }
    removeFiles(gone, files)
    guard let serial, let files else { return }
    writer.async { self.write(id, serial, files) }
  }

  private func write(_ id: EntryID, _ serial: UInt64, _ files: CacheFiles) {
    let found = state.withLock { state -> StoredResponse? in
      let stored = state.index.toWrite(id, serial)
      if stored != nil { state.writing = id }
      return stored
    }
    guard let stored = found else { return }
    let bytes = stored.encoded
    let isWritten = files.write(id.name, bytes)
    let (isObsolete, gone) = state.withLock { state in
      let outcome = state.index.wrote(id, serial, size: isWritten ? bytes.count : nil)
      note(state)
      return outcome
    }
    // A failed write leaves an older file, which must not be used again.
    if isObsolete { files.remove(id.name) }
    state.withLock { $0.writing = nil }
    removeFiles(gone, files)
  }

  /// Counts a removal, unless there may be a response to remove or the folder is not open.
  func noteRemoval(of hash: UInt64) -> Bool {
    state.withLock { state in
      guard state.isOpen, !state.index.mayHold(hash) else { return false }
      state.index.noteRemoval(of: hash)
      note(state)
      return true
    }
  }

  /// Removes the responses for a URL. The file of one that is being written is removed when it is complete.
  ///
  /// - Parameters:
  ///   - inAllPartitions: Whether the partition of the key does not count.
  ///   - waits: Whether to wait for that file. The loop's thread must not, because the disk may be slow.
  func remove(_ key: CacheKey, inAllPartitions: Bool = false, waits: Bool) {
    // A process that is killed after this must not find it again: not on the queue.
    open()
    let (gone, files, isWriting) = state.withLock { state in
      let gone = state.index.remove(key, inAllPartitions: inAllPartitions)
      note(state)
      return (gone, state.files, state.writing?.hash == key.hash)
    }
    for id in gone { files?.remove(id.name) }
    removeFiles(gone, files)
    if waits, isWriting { settle() }
  }

  /// Removes the files of a URL that other processes have written. One listing of the folder serves all URLs that wait
  /// for it.
  func removeUnknownFiles(of hash: UInt64) {
    let files = state.withLock { state -> CacheFiles? in
      guard let files = state.files else { return nil }
      let isFirst = state.removedHashes.isEmpty
      state.removedHashes.insert(hash)
      return isFirst ? files : nil
    }
    guard let files else { return }
    writer.async {
      let hashes = self.state.withLock { state in
        defer { state.removedHashes = [] }
        return state.removedHashes
      }
      for id in self.unknownFiles(of: files) where hashes.contains(id.hash) { files.remove(id.name) }
    }
  }

  /// Lists the files that other processes have written since the folder was opened.
  private func unknownFiles(of files: CacheFiles) -> [EntryID] {
    let ids = (files.list() ?? []).compactMap { EntryID(name: $0.name) }
    return state.withLock { state in ids.filter { !state.index.hasFile($0) } }
  }

  func removeAll() {
    open()
    let (known, opened, isOpen) = state.withLock { state in
      let known = state.index.removeAll()
      note(state)
      return (known, state.files, state.isOpen)
    }
    // A folder that cannot be listed is not open, and has files nevertheless.
    let files = isOpen ? opened : openFiles().map { CacheFiles($0) }
    files?.removeAll(known)
    settle()
  }

  func remove(since time: Int64) {
    open()
    let (ids, unknown, files) = state.withLock { state in
      let (ids, unknown) = state.index.since(time)
      return (ids, unknown, state.files)
    }
    func isToRemove(_ id: EntryID) -> Bool {
      // A file that cannot be read now is removed too, because the caller may have requested its removal.
      files?.readHead(id.name).data.flatMap { StoredResponse.decodeHead($0) }.map { $0.responseTime >= time }
        ?? true
    }
    let read = unknown.filter(isToRemove)
    change { index in (ids + read).flatMap { index.remove($0) } }
    if let files { removeFiles(unknownFiles(of: files).filter(isToRemove), files) }
    settle()
  }

  // MARK: Sizes

  func usage() -> (memory: Int, disk: Int) {
    open()
    return state.withLock { ($0.index.memoryUsage, $0.index.diskUsage) }
  }

  var capacities: (memory: Int, disk: Int) {
    state.withLock { ($0.index.memoryCapacity, $0.index.diskCapacity) }
  }

  func setCapacities(memory: Int? = nil, disk: Int? = nil) {
    open()
    let (gone, files) = state.withLock { state in
      // Without a folder there is no capacity on the disk.
      let gone = state.index.setCapacities(memory: memory, disk: state.files == nil ? nil : disk)
      note(state)
      return (gone, state.files)
    }
    removeFiles(gone, files)
  }
}

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

  /// The files that could not be removed, by folder.
  private let folders = Mutex<[ByteText: Folder]>([:])

  func add(_ name: String, in folder: String) {
    let folder = ByteText(folder)
    folders.withLock { folders in
      folders[folder, default: Folder()].names.insert(name)
      folders[folder]?.survivors?.remove(name)
    }
  }

  /// Marks all files of a folder as removed, whatever their names are.
  func addAll(in folder: String) {
    folders.withLock { $0[ByteText(folder), default: Folder()].survivors = [] }
  }

  /// Unmarks a file that was replaced.
  func replaced(_ name: String, in folder: String) { forget(name, in: folder, survives: true) }

  /// Unmarks a file whose removal has succeeded in another try.
  func removed(_ name: String, in folder: String) { forget(name, in: folder, survives: false) }

  private func forget(_ name: String, in folder: String, survives: Bool) {
    let folder = ByteText(folder)
    folders.withLock { folders in
      guard folders[folder] != nil else { return }
      folders[folder]?.names.remove(name)
      if survives { folders[folder]?.survivors?.insert(name) }
      if folders[folder]?.names.isEmpty == true, folders[folder]?.survivors == nil { folders[folder] = nil }
    }
  }

  /// Returns the removed ones among the names of a folder's files.
  func hidden(of names: [String], in folder: String) -> Set<String> {
    let folder = ByteText(folder)
    return folders.withLock { folders in
      guard let known = folders[folder] else { return [] }
      let hidden = Set(names.filter { known.hides($0) })
      folders[folder] = hidden.isEmpty ? nil : Folder(names: hidden)
      return hidden
    }
  }

  func hidesAny(in folder: String) -> Bool { folders.withLock { $0[ByteText(folder)] != nil } }

  func hides(_ name: String, in folder: String) -> Bool {
    folders.withLock { $0[ByteText(folder)]?.hides(name) == true }
  }

  func names(in folder: String) -> Set<String> { folders.withLock { $0[ByteText(folder)]?.names ?? [] } }
}

/// The files of a folder, without the ``FailedRemovals``. Their removal is tried again whenever the folder could be
/// changed.
struct CacheFiles: Sendable {
  /// The number of bytes that contain the heads of most responses.
  private static let usualHead = 4_096

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

  /// Reads a file up to the body of its response, and perhaps some of the body.
  func readHead(_ name: String) -> EntryReading {
    guard !failed.hides(name, in: files.location) else { return .missing }
    let first = files.read(name, upTo: Self.usualHead)
    guard case .bytes(let bytes) = first, bytes.count == Self.usualHead,
      let count = StoredResponse.lengthBeforeBody(bytes), count > bytes.count
    else { return first }
    return files.read(name, upTo: count)
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

  /// Removes all responses; other files stay. Without a whole listing, the next process uses those that stay.
  ///
  /// - Parameter known: Responses that are removed also if they are not listed.
  func removeAll(_ known: [EntryID]) {
    let whole = files.list()
    if whole == nil { failed.addAll(in: files.location) }
    let found = (whole ?? files.listUntilError()).map(\.name).filter { EntryID(name: $0) != nil }
    for name in Set(found).union(whole == nil ? known.map(\.name) : []) { remove(name) }
  }

  func touch(_ name: String) { files.touch(name) }
}
