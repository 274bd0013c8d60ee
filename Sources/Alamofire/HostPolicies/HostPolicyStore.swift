import Foundation
package import HTTPWire

/// The file of a ``HostPolicyStore``. Every call may wait for the disk.
package protocol HostPolicyFile: Sendable {
  /// Returns the text; `nil` if the file does not exist.
  func read() throws(HostStorageError) -> String?
  /// Replaces the text atomically, unless a later edition was written.
  func write(_ text: String, edition: UInt64) throws(HostStorageError)
}

/// A table of the policies of hosts under a lock, and its file if it has one.
package final class HostPolicyStore<Table: HostPolicyTable>: HostPolicyStorage {
  private struct State {
    var table: Table
    var error: HostStorageError?
    /// The number of changes that have to be written.
    var edition: UInt64 = 0
    var isWriting = false
  }

  private let state: Mutex<State>
  private let file: (any HostPolicyFile)?
  private let now: @Sendable () -> Int64

  /// Makes a store, and reads its file.
  ///
  /// - Parameters:
  ///   - table: An empty table.
  ///   - file:  Its file, which is read now.
  ///   - error: The reason why there is no file, if the caller wanted one.
  ///   - now:   Returns the seconds since 1970.
  package init(
    _ table: Table, file: (any HostPolicyFile)? = nil, error: HostStorageError? = nil,
    now: @escaping @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }
  ) {
    var state = State(table: table, error: error)
    do throws(HostStorageError) {
      if let text = try file?.read() { try state.table.read(text: text) }
    } catch {
      state.error = error
    }
    // A file that holds something else is never overwritten.
    let isKept = state.error != .otherFile && state.error != .unreadable
    self.file = isKept ? file : nil
    self.now = now
    self.state = Mutex(state)
  }

  package var error: HostStorageError? { state.withLock { $0.error } }

  package func read<Value: Sendable>(_ body: (Table, Int64) -> Value) -> Value {
    let now = now()
    return state.withLock { body($0.table, now) }
  }

  /// Changes the table. The file is written by a task of its own.
  package func change(_ body: (inout Table, Int64) -> Bool) {
    let now = now()
    let begins = state.withLock { state in
      guard body(&state.table, now), file != nil else { return false }
      state.edition += 1
      defer { state.isWriting = true }
      return !state.isWriting
    }
    if begins { Task.detached(priority: .utility) { self.writeChanges() } }
  }

  /// Writes until there are no further changes.
  private func writeChanges() {
    var written: UInt64 = 0
    while true {
      let now = now()
      let next = state.withLock { state -> (text: String, edition: UInt64)? in
        guard state.edition > written else {
          state.isWriting = false
          return nil
        }
        return (state.table.text(now: now), state.edition)
      }
      guard let next else { return }
      written = next.edition
      try? write(next.text, next.edition)
    }
  }

  package func save() throws(HostStorageError) {
    let now = now()
    let (text, edition, error) = state.withLock { state in
      state.edition += 1
      return (state.table.text(now: now), state.edition, state.error)
    }
    guard file != nil else {
      if let error { throw error }
      return
    }
    try write(text, edition)
  }

  private func write(_ text: String, _ edition: UInt64) throws(HostStorageError) {
    var failure: HostStorageError?
    do throws(HostStorageError) { try file?.write(text, edition: edition) } catch { failure = error }
    state.withLock { $0.error = failure }
    if let failure { throw failure }
  }
}

extension HostPolicyStore {
  /// Makes a store with a file, or one in memory with the error of the file.
  convenience init(_ table: Table, at url: URL) {
    do throws(HostStorageError) {
      self.init(table, file: try AtomicFile(url))
    } catch {
      self.init(table, error: error)
    }
  }
}
