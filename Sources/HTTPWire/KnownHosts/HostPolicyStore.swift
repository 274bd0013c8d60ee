import FoundationEssentials
import Synchronization

/// Where a notebook is kept. Every call may wait for the disk.
package protocol NotebookFile: Sendable {
  /// `nil` when there is none yet.
  func read() throws(HostStorageError) -> String?
  /// Puts `text` there as a whole, unless a later edition is there already.
  func write(_ text: String, edition: UInt64) throws(HostStorageError)
}

/// A table of what is remembered of hosts, for all who ask and tell on any thread, and its file if it has one.
package final class HostPolicyStore<Table: KeptTable>: Sendable {
  private struct State {
    var table: Table
    var error: HostStorageError?
    /// How often there was something to be written down.
    var edition: UInt64 = 0
    var isWriting = false
  }

  private let state: Mutex<State>
  private let file: (any NotebookFile)?
  private let now: @Sendable () -> Int64

  /// - Parameters:
  ///   - table: An empty one.
  ///   - file:  Where it is kept; it is read at once.
  ///   - error: Why there is no file, if there should be one.
  ///   - now:   Seconds since 1970.
  package init(
    _ table: Table, file: (any NotebookFile)? = nil, error: HostStorageError? = nil,
    now: @escaping @Sendable () -> Int64 = { Int64(Date().timeIntervalSince1970) }
  ) {
    var state = State(table: table, error: error)
    do throws(HostStorageError) {
      if let text = try file?.read() { try state.table.read(text: text) }
    } catch {
      state.error = error
    }
    // What somebody keeps there under this name is his.
    let isKept = state.error != .otherFile && state.error != .unreadable
    self.file = isKept ? file : nil
    self.now = now
    self.state = Mutex(state)
  }

  /// Why the file is not used, or was not written the last time.
  package var error: HostStorageError? { state.withLock { $0.error } }

  package func look<Value: Sendable>(_ body: (Table, Int64) -> Value) -> Value {
    let now = now()
    return state.withLock { body($0.table, now) }
  }

  /// Changes the table; `body` returns whether that is worth being written down, which happens soon, elsewhere.
  package func change(_ body: (inout Table, Int64) -> Bool) {
    let now = now()
    let begins = state.withLock { state in
      guard body(&state.table, now), file != nil else { return false }
      state.edition += 1
      defer { state.isWriting = true }
      return !state.isWriting
    }
    if begins { Task.detached(priority: .utility) { self.writeDown() } }
  }

  /// Writes until there is nothing new any more.
  private func writeDown() {
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

  /// Writes all that is known by now, before it returns.
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
