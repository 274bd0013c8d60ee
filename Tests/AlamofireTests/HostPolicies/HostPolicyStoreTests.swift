import Alamofire
import HTTPWire
import Testing

@Suite("Storage of host policies", .timeLimit(.minutes(5)))
struct HostPolicyStoreTests {
  private func note(
    _ hosts: HostPolicyStore<StrictTransportTable>, _ name: String, maxAge: Int64 = 100
  ) throws {
    let host = try #require(HostPolicyName(name))
    let field = StrictTransportField(maxAge: maxAge, includesSubdomains: false)
    hosts.change { $0.note(field, of: host, now: $1) }
  }

  @Test("A new policy is written in the background") func backgroundWrite() async throws {
    let file = FakePolicyFile()
    let store = HostPolicyStore(StrictTransportTable(limit: 10), file: file, now: { 1000 })
    try note(store, "a.test")
    await file.untilWritten()
    #expect(file.text == "# strict-transport-security 1\na.test 1100\n")
    let again = HostPolicyStore(StrictTransportTable(limit: 10), file: file, now: { 1099 })
    #expect(again.read { $0.hosts(now: $1) } == ["a.test"])
    #expect(again.error == nil)
  }

  @Test("A policy that comes after a write is written, too") func laterWrites() async throws {
    let file = FakePolicyFile()
    let store = HostPolicyStore(StrictTransportTable(limit: 10), file: file, now: { 1000 })
    for (index, host) in ["a", "b", "c"].enumerated() {
      try note(store, "\(host).test")
      await file.untilWritten(UInt64(index + 1))
    }
    #expect(file.text == "# strict-transport-security 1\na.test 1100\nb.test 1100\nc.test 1100\n")
  }

  @Test("Saving writes all policies") func save() throws {
    let file = FakePolicyFile()
    let store = HostPolicyStore(StrictTransportTable(limit: 1000), file: file, now: { 0 })
    for index in 0..<200 { try note(store, "h\(index).test") }
    try store.save()
    #expect(file.text?.split(separator: "\n").count == 201)
  }

  @Test("A corrupt file is treated as empty and replaced") func corruptFile() throws {
    let file = FakePolicyFile("# strict-transport-security 1\na.test 99 includ")
    let store = HostPolicyStore(StrictTransportTable(limit: 10), file: file, now: { 0 })
    #expect(store.error == .brokenLine(2))
    #expect(store.read { $0.hosts(now: $1) }.isEmpty)
    try note(store, "b.test")
    try store.save()
    #expect(store.error == nil)
    #expect(file.text == "# strict-transport-security 1\nb.test 100\n")
  }

  @Test("A foreign file is not overwritten") func foreignFile() throws {
    let file = FakePolicyFile("secret")
    let store = HostPolicyStore(StrictTransportTable(limit: 10), file: file, now: { 0 })
    try note(store, "b.test")
    #expect(throws: HostStorageError.otherFile) { try store.save() }
    #expect(file.text == "secret")
    #expect(store.error == .otherFile)
    #expect(store.read { $0.hosts(now: $1) } == ["b.test"])
  }

  @Test("A file that cannot be written is an error, and no policy is lost") func unwritableFile() throws {
    let file = FakePolicyFile(failures: .max)
    let store = HostPolicyStore(StrictTransportTable(limit: 10), file: file, now: { 0 })
    try note(store, "b.test")
    #expect(throws: HostStorageError.notWritten) { try store.save() }
    #expect(store.error == .notWritten)
    #expect(store.read { $0.hosts(now: $1) } == ["b.test"])
  }

  @Test("A write that failed is repeated a minute later, although the policy is known") func failedWrite()
    async throws
  {
    let file = FakePolicyFile(failures: 2)
    let time = Mutex<Int64>(1000)
    let store = HostPolicyStore(
      StrictTransportTable(limit: 10), file: file, now: { time.withLock { $0 } })
    try note(store, "a.test", maxAge: 1_000_000)
    #expect(await eventually { store.error == .notWritten })
    try note(store, "a.test", maxAge: 1_000_000)
    #expect(file.attempts == 1, "not at once, because the disk may be read-only")
    time.withLock { $0 = 1060 }
    try note(store, "a.test", maxAge: 1_000_000)
    try #require(await eventually { file.attempts == 2 })
    // The clock is set back.
    time.withLock { $0 = 999 }
    try note(store, "a.test", maxAge: 1_000_000)
    await file.untilWritten()
    #expect(file.text == "# strict-transport-security 1\na.test 1000999\n")
    #expect(await eventually { store.error == nil })
  }

  @Test("A save that failed is repeated as well") func failedSave() async throws {
    let file = FakePolicyFile(failures: 1)
    let time = Mutex<Int64>(1000)
    let services = HostPolicyStore(AlternativeTable(limit: 10), file: file, now: { time.withLock { $0 } })
    #expect(throws: HostStorageError.notWritten) { try services.save() }
    time.withLock { $0 = 1060 }
    services.change { _, _ in false }
    #expect(await eventually { file.text == "# alternative-services 1\n" })
  }

  /// A table that calls a closure when its text is made.
  private struct WatchedTable: HostPolicyTable {
    static let title = "# watched 1"
    let onText: @Sendable () -> Void

    func lines(now: Int64) -> [String] {
      onText()
      return []
    }

    mutating func read(_ line: Substring) -> Bool { true }
  }

  @Test("The table can be used while its text is made") func textOutsideLock() async throws {
    let (file, known) = (FakePolicyFile(), Recorder<HostPolicyStore<WatchedTable>>())
    let texts = Recorder<Bool>()
    let table = WatchedTable { texts.add(known.values.allSatisfy { store in store.read { _, _ in true } }) }
    let store = HostPolicyStore(table, file: file, now: { 0 })
    known.add(store)
    try store.save()
    store.change { _, _ in true }
    await file.untilWritten(2)
    #expect(texts.values == [true, true])
  }

  @Test("Saving without a file has no effect") func noFile() throws {
    try StrictTransportSecurity().save()
    #expect(StrictTransportSecurity().storageError == nil)
    let hosts = StrictTransportSecurity()
    #expect(hosts == hosts)
    #expect(hosts != StrictTransportSecurity())
    #expect(Set([AlternativeServices(), AlternativeServices()]).count == 2)
  }
}

/// A file in memory.
final class FakePolicyFile: HostPolicyFile {
  private struct State {
    var text: String?
    var edition: UInt64 = 0
    var attempts = 0
    /// The number of the next writes that fail.
    var failures: Int
    var waiter: (edition: UInt64, continuation: CheckedContinuation<Void, Never>)?
  }

  private let state: Mutex<State>

  init(_ text: String? = nil, failures: Int = 0) { state = Mutex(State(text: text, failures: failures)) }

  var text: String? { state.withLock { $0.text } }
  /// The number of writes, with those that failed.
  var attempts: Int { state.withLock { $0.attempts } }

  /// Waits until this edition or a later one is written.
  func untilWritten(_ edition: UInt64 = 1) async {
    await withCheckedContinuation { continuation in
      let isWritten = state.withLock { state in
        if state.edition < edition { state.waiter = (edition, continuation) }
        return state.edition >= edition
      }
      if isWritten { continuation.resume() }
    }
  }

  func read() throws(HostStorageError) -> String? { text }

  func write(_ text: String, edition: UInt64) throws(HostStorageError) {
    let fails = state.withLock { state in
      state.attempts += 1
      defer { state.failures -= 1 }
      return state.failures > 0
    }
    if fails { throw .notWritten }
    let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
      if edition > state.edition {
        state.text = text
        state.edition = edition
      }
      guard let waiter = state.waiter, waiter.edition <= state.edition else { return nil }
      state.waiter = nil
      return waiter.continuation
    }
    waiter?.resume()
  }
}
