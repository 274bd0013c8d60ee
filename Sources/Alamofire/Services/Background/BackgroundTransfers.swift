import Foundation
import FoundationNetworking
package import HTTPSystem
import HTTPWire
import Synchronization

/// The transfers of a background session: those that it makes, and those that an earlier process left.
package final class BackgroundTransfers: Sendable {
  private struct WeakTransfer { weak var transfer: BackgroundTransfer? }

  private struct State {
    /// The folder, which is locked as long as it is stored here.
    var storage: Result<any TransferFiles, TransferFolderError>
    /// The transfers that exist. A request that has ended may still have one.
    var live: [UUID: WeakTransfer] = [:]
    /// The restored transfers that have not ended, without those that wait for their options.
    var restored: Set<UUID> = []
    /// The restored transfers that wait for their options: the caller has to resume them.
    var unresumed: Set<UUID> = []
    /// Called when the last of ``restored`` has ended; `nil` without any transfer.
    var whenRestoredEnded: (@Sendable () -> Void)?
  }

  /// Files of resume data without a journal are removed after this number of seconds.
  private static let fileAge: Int64 = 7 * 86_400

  /// A larger journal was not written by this library.
  private static let largestJournal = Int64(Journal.longestLine) * 4

  package let identifier: String
  /// The seconds since 1970.
  let now: @Sendable () -> Double
  /// The transfers that begin one after the other.
  package let turns: TransferTurns?
  /// The restored transfers that have not ended, for attempts and handlers.
  private let state: Mutex<State>

  /// Makes the transfers of a session with a folder.
  ///
  /// - Parameters:
  ///   - folder: The path of the folder.
  ///   - isDiscretionary: Whether the transfers begin one after the other.
  package convenience init(
    identifier: String, folder: String, isDiscretionary: Bool,
    now: @escaping @Sendable () -> Double = { Date().timeIntervalSince1970 }
  ) {
    let files: Result<any TransferFiles, TransferFolderError>
    do throws(TransferFolderError) {
      files = .success(try TransferFolder(path: folder))
    } catch {
      files = .failure(error)
    }
    self.init(identifier: identifier, files: files, isDiscretionary: isDiscretionary, now: now)
  }

  /// Makes the transfers of a session with the files of its folder.
  ///
  /// - Parameters:
  ///   - files: The files of the folder.
  ///   - isDiscretionary: Whether the transfers begin one after the other.
  package init(
    identifier: String, files: Result<any TransferFiles, TransferFolderError>, isDiscretionary: Bool,
    now: @escaping @Sendable () -> Double = { Date().timeIntervalSince1970 }
  ) {
    self.identifier = identifier
    self.now = now
    turns = isDiscretionary ? TransferTurns() : nil
    state = Mutex(State(storage: files))
  }

  /// Returns the files. Throws if the folder cannot be used.
  func files() throws(AFError) -> any TransferFiles {
    do {
      return try state.withLock { $0.storage }.get()
    } catch {
      throw failure(error)
    }
  }

  var boot: String { (try? files())?.boot ?? "" }

  func path(of name: String) -> String { (try? files())?.path(of: name) ?? name }

  package func make() -> BackgroundTransfer { make(UUID(), nil) }

  private func make(_ id: UUID, _ journal: TransferJournal?) -> BackgroundTransfer {
    let transfer = BackgroundTransfer(id, journal, owner: self)
    state.withLock { $0.live[id] = WeakTransfer(transfer: transfer) }
    return transfer
  }

  func forget(_ id: UUID) { state.withLock { _ = $0.live.removeValue(forKey: id) } }

  // MARK: The end of the session

  /// Ends the use of the folder, because the session was released. From then on no transfer writes to its files, so
  /// that another session may continue them at once.
  package func close() {
    for transfer in transfers { transfer.suspend() }
    // Not left to the last reference, which another thread may have for a moment.
    (try? endUse().get())?.unlock()
  }

  /// Removes all transfers and ends the use of the folder, because the program has cancelled the session. This includes
  /// the outcomes that wait for a handler.
  package func removeAll() {
    for transfer in transfers { transfer.remove() }
    let storage = endUse()
    // The requests of others have ended and are gone.
    guard let files = try? storage.get() else { return }
    for name in files.names() ?? [] {
      guard case .transfer(let id, let stored, _) = entry(name, in: files) else { continue }
      files.remove(name)
      BackgroundTransfer.Names(id).removeFiles(in: files, stored.description.bodyFile)
    }
    files.unlock()
  }

  /// Returns the files, which are not used from then on.
  private func endUse() -> Result<any TransferFiles, TransferFolderError> {
    state.withLock { state in
      defer { state.storage = .failure(.closed) }
      return state.storage
    }
  }

  private var transfers: [BackgroundTransfer] { state.withLock { $0.live.values.compactMap(\.transfer) } }

  // MARK: Restoring

  /// The reason why the folder cannot be used; `nil` if it can.
  package var folderError: AFError? {
    do throws(AFError) {
      _ = try files()
      return nil
    } catch {
      return error
    }
  }

  /// Returns the transfers that earlier processes left, the oldest first, and removes files that belong to none. If the
  /// folder cannot be read, it cannot be used either, because the transfers in it would be forgotten.
  package func restore() -> [BackgroundTransfer] {
    guard let files = try? files() else { return [] }
    guard let names = files.names() else {
      state.withLock { $0.storage = .failure(.unusable("its files cannot be listed")) }
      files.unlock()
      return []
    }
    var found: [(BackgroundTransfer, created: Double)] = []
    var known: Set<String> = ["lock"]
    for name in names {
      switch entry(name, in: files) {
      case .other: break
      case .unreadable(let id): known.formUnion(BackgroundTransfer.Names(id).all)
      case .empty: files.remove(name)
      case .transfer(let id, let stored, let size):
        let transfer = make(id, TransferJournal(stored, restored: name, size: size))
        known.formUnion(transfer.names.all)
        found.append((transfer, stored.description.created))
      }
    }
    for name in files.names() ?? [] where !known.contains(name) { sweep(name, in: files) }
    let transfers = found.sorted { $0.created < $1.created }.map(\.0)
    // Not under the lock, because each transfer has its own.
    let unresumed = Set(transfers.filter(\.lacksOptions).map(\.id))
    state.withLock { state in
      state.restored = Set(transfers.map(\.id)).subtracting(unresumed)
      state.unresumed = unresumed
    }
    return transfers
  }

  /// A file of the folder.
  private enum Entry {
    /// No journal.
    case other
    /// A journal that may be readable the next time, such as when the process has fewer files open, or by a later
    /// version.
    case unreadable(UUID)
    /// A journal without a request.
    case empty
    /// A journal, and the number of bytes of its complete records.
    case transfer(UUID, JournalState, size: Int)
  }

  /// Reads the journal with this name. The next record replaces its incomplete end, if it has one.
  private func entry(_ name: String, in files: any TransferFiles) -> Entry {
    guard name.hasSuffix(".journal"), let id = UUID(uuidString: String(name.dropLast(8))) else {
      return .other
    }
    let bytes = files.size(of: name) ?? .max <= Self.largestJournal ? files.read(name) : nil
    let content = bytes.map { Journal.standard.content(of: $0) }
    guard let content, !content.isOfLaterVersion else { return .unreadable(id) }
    guard let stored = JournalState(content.records) else { return .empty }
    return .transfer(id, stored, size: content.length)
  }

  private func sweep(_ name: String, in files: any TransferFiles) {
    if [".body", ".response", ".new"].contains(where: name.hasSuffix) { return files.remove(name) }
    // Resume data of a failed download may contain the file.
    guard name.hasPrefix("Alamofire_"), name.hasSuffix(".tmp"), let changed = files.changed(name) else {
      return
    }
    if Int64(now()) - changed > Self.fileAge { files.remove(name) }
  }

  /// Calls `body` when all restored transfers have ended; never if there are none. Transfers that wait for their
  /// options count once they are resumed. If that is after a call, `body` is called again.
  package func whenRestoredEnded(_ body: @escaping @Sendable () -> Void) {
    state.withLock { state in
      if !state.restored.isEmpty || !state.unresumed.isEmpty { state.whenRestoredEnded = body }
    }
  }

  /// Called when the request of a restored transfer is resumed.
  func resumed(_ transfer: BackgroundTransfer) {
    state.withLock { state in
      if let id = state.unresumed.remove(transfer.id) { state.restored.insert(id) }
    }
  }

  /// Returns whether the transfer waits for its options.
  func isUnresumed(_ transfer: BackgroundTransfer) -> Bool {
    state.withLock { $0.unresumed.contains(transfer.id) }
  }

  /// Called when the request of a transfer has ended, and its response handlers have returned.
  package func ended(_ transfer: BackgroundTransfer) {
    let body = state.withLock { state -> (@Sendable () -> Void)? in
      let wasResumed = state.restored.remove(transfer.id) != nil
      let wasUnresumed = state.unresumed.remove(transfer.id) != nil
      // If one is cancelled instead of being resumed, the others may be resumed next.
      guard state.restored.isEmpty, wasResumed || wasUnresumed && state.unresumed.isEmpty else { return nil }
      return state.whenRestoredEnded
    }
    body?()
  }

  // MARK: Errors

  /// Makes the error of a transfer whose journal cannot be written.
  func failure(_ code: Int32) -> AFError {
    .sessionTaskFailed(error: URLError(.cannotCreateFile, failureText(code), url: nil))
  }

  /// The error of a transfer whose session has ended.
  var ended: AFError { failure(.closed) }

  func failureText(_ code: Int32) -> String {
    "The background transfer cannot be written to \(path(of: "")): \(String(cString: strerror(code)))."
  }

  private func failure(_ error: TransferFolderError) -> AFError {
    let made =
      switch error {
      case .inUse:
        URLError(
          .backgroundSessionInUseByAnotherProcess,
          "Another process, or another session of this one, uses the background session \"\(identifier)\".",
          url: nil)
      case .closed:
        URLError(.cancelled, "The background session \"\(identifier)\" has ended.", url: nil)
      case .notOurs:
        URLError(
          .cannotCreateFile,
          "The folder of the background session \"\(identifier)\" belongs to another user, or others may write to it.",
          url: nil)
      case .unusable(let text):
        URLError(
          .cannotCreateFile,
          "The folder of the background session \"\(identifier)\" cannot be used: \(text).",
          url: nil)
      }
    return .sessionTaskFailed(error: made)
  }
}

/// The turns of discretionary transfers, which run one after the other in the order in which they ask.
package final class TransferTurns: Sendable {
  private struct State {
    var isTaken = false
    var waiting: [(number: UInt64, completion: SingleCompletion<Bool>)] = []
    var lastNumber: UInt64 = 0

    /// Returns the number of a new waiter, or `nil` if the turn was free and has been claimed.
    mutating func take(or completion: SingleCompletion<Bool>) -> UInt64? {
      guard isTaken else {
        isTaken = true
        return nil
      }
      lastNumber += 1
      waiting.append((lastNumber, completion))
      return lastNumber
    }

    /// Returns the waiter that has the turn next; without one, the turn is free.
    mutating func pass() -> SingleCompletion<Bool>? {
      isTaken = !waiting.isEmpty
      return waiting.isEmpty ? nil : waiting.removeFirst().completion
    }

    /// Removes a waiter. Returns false if the turn was passed to it already.
    mutating func remove(_ number: UInt64) -> Bool {
      guard let index = waiting.firstIndex(where: { $0.number == number }) else { return false }
      waiting.remove(at: index)
      return true
    }
  }

  /// The discretionary transfers that wait for their turn.
  private let state = Mutex(State())

  package init() {}

  /// Waits for a turn. Returns false if the surrounding task is cancelled before.
  package func take() async -> Bool {
    var number: UInt64?
    let hasTurn = await SingleCompletion.answer(whenForgotten: false, whenCancelled: false) { completion in
      number = state.withLock { $0.take(or: completion) }
      if number == nil { completion(true) }
    }
    guard !hasTurn else { return true }
    if let number, state.withLock({ $0.remove(number) }) { return false }
    // The turn was granted at the same time as the cancellation.
    pass()
    return false
  }

  /// Gives a turn back.
  package func pass() {
    let next = state.withLock { $0.pass() }
    next?(true)
  }
}

/// The folders of background sessions.
package enum BackgroundFolder {
  /// Returns the folder of an identifier: `$XDG_STATE_HOME/alamofire/background/<identifier>`, below `~/.local/state`
  /// without that variable.
  package static func path(of identifier: String) -> String {
    let state = ProcessInfo.processInfo.environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
    let base = state ?? FileManager.default.homeDirectoryForCurrentUser.path + "/.local/state"
    return "\(base)/alamofire/background/\(name(of: identifier))"
  }

  /// Returns a name for the folder of an identifier. Different identifiers have different names.
  static func name(of identifier: String) -> String {
    var plain = CharacterSet.alphanumerics
    plain.insert(charactersIn: "-_.")
    let name = identifier.utf8.map { byte -> String in
      let isPlain = byte < 0x80 && plain.contains(Unicode.Scalar(byte))
      return isPlain
        ? String(Unicode.Scalar(byte)) : "%" + String(0x100 + UInt16(byte), radix: 16).dropFirst()
    }.joined()
    // A name that begins with a full stop is hidden, or one of the system's own.
    if name.utf8.count <= 200, !name.isEmpty, !name.hasPrefix(".") { return name }
    return "%" + (OpenSSLHashes().text(.sha256, Array(identifier.utf8)) ?? "")
  }
}
