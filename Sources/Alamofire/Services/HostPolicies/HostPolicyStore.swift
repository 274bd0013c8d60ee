public import Foundation
import FoundationNetworking
import HTTPSystem
public import HTTPWire
import Synchronization

extension HostStorageError: NSErrorConvertible {}

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
    /// The second since 1970 in which the last write failed; `nil` if it has not failed.
    var failureTime: Int64?
  }

  /// The policies of hosts, and whether they are being written, for any thread.
  private let state: Mutex<State>
  private let file: (any HostPolicyFile)?
  private let now: @Sendable () -> Int64

  /// Makes a store, and reads its file.
  ///
  /// - Parameters:
  ///   - table: An empty table.
  ///   - file:  Its file, which is read now.
  ///   - error: The reason why there is no file, if the caller requested one.
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
    let isUsable = state.error != .otherFile && state.error != .unreadable
    self.file = isUsable ? file : nil
    self.now = now
    self.state = Mutex(state)
  }

  package var error: HostStorageError? { state.withLock { $0.error } }

  package func read<Value: Sendable>(_ body: (Table, Int64) -> Value) -> Value {
    let now = now()
    return state.withLock { body($0.table, now) }
  }

  /// Changes the table. The file is written by a separate task. If the last write failed, it is repeated although
  /// nothing has changed: most servers repeat the field of a policy that the file lacks.
  package func change(_ body: (inout Table, Int64) -> Bool) {
    let now = now()
    let begins = state.withLock { state in
      let isChanged = body(&state.table, now)
      guard file != nil, isChanged || Self.isDue(state.failureTime, now) else { return false }
      state.edition += 1
      defer { state.isWriting = true }
      return !state.isWriting
    }
    // Not on Swift's pool, because a flush may wait for the disk.
    if begins { DispatchQueue.global(qos: .utility).async { self.writeChanges() } }
  }

  /// Whether a write that failed at a time is repeated. On a read-only disk, each response would be followed by another
  /// write otherwise. The clock may have been set back.
  private static func isDue(_ failureTime: Int64?, _ now: Int64) -> Bool {
    failureTime.map { now < $0 || now - $0 >= 60 } ?? false
  }

  /// Writes until there are no further changes.
  private func writeChanges() {
    var written: UInt64 = 0
    while true {
      let now = now()
      // A copy, because the thread of the loop may wait for the lock.
      let next = state.withLock { state -> (table: Table, edition: UInt64)? in
        guard state.edition > written else {
          state.isWriting = false
          return nil
        }
        return (state.table, state.edition)
      }
      guard let next else { return }
      written = next.edition
      try? write(next.table, next.edition, now)
    }
  }

  package func save() throws(HostStorageError) {
    let now = now()
    let (table, edition, error) = state.withLock { state in
      state.edition += 1
      return (state.table, state.edition, state.error)
    }
    guard file != nil else {
      if let error { throw error }
      return
    }
    try write(table, edition, now)
  }

  private func write(_ table: Table, _ edition: UInt64, _ now: Int64) throws(HostStorageError) {
    var failure: HostStorageError?
    let text = table.text(now: now)
    do throws(HostStorageError) { try file?.write(text, edition: edition) } catch { failure = error }
    state.withLock { state in
      state.error = failure
      state.failureTime = failure == nil ? nil : now
    }
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

/// A file that only its owner can read and that is replaced atomically. After a crash of the machine it has the earlier
/// text or the new one: an empty file would count as a new one, and the policies of all hosts would be lost.
final class AtomicFile: HostPolicyFile {
  /// The most bytes of a file. A larger one is not one of ours.
  static let largest = 16 << 20

  private let path: String
  private let name: String
  private let folder: EntryFolder
  private let flush: @Sendable (Int32) -> Int32
  /// The latest edition that was written. The file is written under this lock, so that the later of two editions stays.
  private let edition = Mutex<UInt64>(0)

  /// Makes the file, which is created at the first write.
  ///
  /// - Parameter flush: Flushes a file to the disk. Returns the number of the error, or 0.
  init(
    _ url: URL, flush: @escaping @Sendable (Int32) -> Int32 = { fsync($0) == 0 ? 0 : errno }
  ) throws(HostStorageError) {
    guard url.isFileURL, !url.hasDirectoryPath,
      let folder = EntryFolder(path: url.deletingLastPathComponent().path, mustBeWritable: false)
    else { throw .folderNotOurs }
    path = url.path
    name = url.lastPathComponent
    self.folder = folder
    self.flush = flush
    folder.removeLeftovers()
  }

  func read() throws(HostStorageError) -> String? {
    guard let attributes = try? FileManager.default.attributesOfItem(atPath: path) else {
      // In a folder that cannot be searched, there may be one.
      if case .missing = folder.read(name) { return nil }
      throw .unreadable
    }
    let size = (attributes[.size] as? NSNumber)?.intValue ?? 0
    guard size <= Self.largest, let data = folder.read(name).data,
      let text = String(bytes: data, encoding: .utf8)
    else { throw .unreadable }
    // An empty file was created and never written.
    return text.isEmpty ? nil : text
  }

  func write(_ text: String, edition: UInt64) throws(HostStorageError) {
    // The next process could not read it, and would never replace it.
    guard text.utf8.count <= Self.largest else { throw .notWritten }
    let isWritten = self.edition.withLock { latest in
      guard edition > latest else { return true }
      guard folder.write(name, Data(text.utf8), flush: flush) else { return false }
      latest = edition
      return true
    }
    guard isWritten else { throw .notWritten }
  }
}

extension StrictTransportSecurity {
  /// Makes an empty object in memory.
  ///
  /// - Parameter hostLimit: The most hosts with a policy, without preloaded ones. At the limit, another host is noted
  ///   when a policy has expired, because one host must not evict the policies of others.
  public convenience init(hostLimit: Int = 10_000) {
    self.init(storage: HostPolicyStore(StrictTransportTable(limit: hostLimit)))
  }

  /// Makes an object with a file, which is read now and written in the background after each change.
  ///
  /// ```swift
  /// let folder = URL(fileURLWithPath: "/var/lib/shop", isDirectory: true)
  /// let hosts = StrictTransportSecurity(file: folder.appendingPathComponent("hosts.txt"))
  /// if let error = hosts.storageError { print(error.localizedDescription) }
  /// ```
  ///
  /// Only its owner can read the file, which contains the names of visited hosts. It is replaced atomically, also if
  /// the machine crashes. If two processes share a file, the last write stays. A file that is broken or cannot be used
  /// counts as empty, and ``storageError`` has the reason. A file that can only be read is used, and the next change
  /// reports that it was not written. A write that failed is repeated at the next change, or after a minute when a
  /// server repeats its field. The file does not contain preloaded hosts (``preload(_:includingSubdomains:)``).
  ///
  /// - Parameters:
  ///   - file:      The URL of the file. Its folder is created if it does not exist. The folder must belong to the user
  ///                of the process, and no other user may write to it.
  ///   - hostLimit: The most hosts that are noted, as in ``init(hostLimit:)``.
  public convenience init(file: URL, hostLimit: Int = 10_000) {
    self.init(storage: HostPolicyStore(StrictTransportTable(limit: hostLimit), at: file))
  }
}

extension AlternativeServices {
  /// Makes an empty object in memory.
  ///
  /// - Parameter originLimit: The most pairs of host and port with services. One more evicts an eighth of them, at
  ///   least one pair: those that expire first.
  public convenience init(originLimit: Int = 1_000) {
    self.init(storage: HostPolicyStore(AlternativeTable(limit: originLimit)))
  }

  /// Makes an object with a file, as ``StrictTransportSecurity/init(file:hostLimit:)`` does. The file contains only
  /// services that outlast a change of the network (`persist=1`).
  ///
  /// - Parameters:
  ///   - file:        The URL of the file, in a folder that only this user may write to.
  ///   - originLimit: The most pairs of host and port, as in ``init(originLimit:)``.
  public convenience init(file: URL, originLimit: Int = 1_000) {
    self.init(storage: HostPolicyStore(AlternativeTable(limit: originLimit), at: file))
  }
}

/// Decorates the observer of a transfer, and notes the host policies in the head of the response.
final class HostPolicyObserver: TransferObserver {
  private let observer: any TransferObserver
  private let request: WireRequest
  private let trust: TrustService?
  private let isAtAlternative: Bool
  /// Whether the response is dropped because the request is sent again to its origin.
  private let isMisdirected = Atomic<Bool>(false)

  init(
    _ observer: any TransferObserver, _ request: WireRequest, trust: TrustService?,
    isAtAlternative: Bool = false
  ) {
    self.observer = observer
    self.request = request
    self.trust = trust
    self.isAtAlternative = isAtAlternative
  }

  func transferBegan(_ control: any TransferControl) -> TransferStart { observer.transferBegan(control) }

  func informationalHeadReceived(_ head: ResponseHead) { observer.informationalHeadReceived(head) }

  func headReceived(_ head: ResponseHead) -> HeadDisposition {
    if isAtAlternative, head.status == AlternativeServices.misdirected {
      isMisdirected.store(true, ordering: .relaxed)
      return .discard
    }
    note(head)
    return observer.headReceived(head)
  }

  func loginHeadReceived(_ head: ResponseHead) {
    note(head)
    observer.loginHeadReceived(head)
  }

  private func note(_ head: ResponseHead) {
    // A delegate may have accepted the server after the request began.
    guard trust?.wasAcceptedByDelegate(request.origin.host) != true else { return }
    let options = request.profile.options
    options.strictTransportSecurity?.note(head, of: request.origin)
    options.alternativeServices?.note(head, of: request.origin)
  }

  func bytesMoved(_ count: ByteCount) {
    guard !isMisdirected.load(ordering: .relaxed) else { return }
    observer.bytesMoved(count)
  }

  func transferEnded() { observer.transferEnded() }
}

// The upgrade of requests to hosts with an HSTS policy (RFC 6797 §8.3). It comes before every other use of the URL.
extension WireRequest {
  /// The request, sent to the `https` URL if its host has an HSTS policy.
  var upgraded: WireRequest {
    guard profile.hasHostPolicies, let hosts = profile.options.strictTransportSecurity,
      let target = hosts.upgrade(url, origin)
    else { return self }
    return redirected {
      $0.url = target.url
      $0.origin = target.origin
    }
  }

  /// Returns the redirect with the `https` URL if the host of its target has an HSTS policy. Fields and credentials
  /// that the proposed redirect drops stay dropped.
  func upgraded(_ plan: RedirectPlan) -> RedirectPlan {
    guard profile.hasHostPolicies, let hosts = profile.options.strictTransportSecurity,
      let target = hosts.upgrade(plan.url, plan.origin)
    else { return plan }
    return plan.withTarget(target.url, origin: target.origin)
  }
}

extension URLRequest {
  /// Returns this request with the URL of `request` if that is an upgrade of `original`.
  func withURL(of request: WireRequest, upgradedFrom original: WireRequest) -> URLRequest {
    guard request !== original, let url = URL(wire: request.url) else { return self }
    var result = self
    let isWebSocket = self.url?.scheme?.lowercased() == "ws"
    result.url = isWebSocket ? URL(wire: WebSocketURL.webSocket(request.url)) : url
    return result
  }
}
