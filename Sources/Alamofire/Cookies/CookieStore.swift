import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// The cookies in one `HTTPCookieStorage`, which stays what users see and change at any time: it is asked
/// before every request (empty, once for all that begin in one turn of the engine). Sessions with the same storage share
/// their store.
///
/// Foundation's shared storage writes its whole file for every cookie that is set, for milliseconds, and whoever looks into it
/// meanwhile waits. So cookies are stored on a queue, and while that is going on the storage is read on another; neither
/// holds up the engine's thread. (A user who sets cookies in the shared storage at that moment can, for as long as the file
/// takes.) Nothing of Foundation's that parses is used: it takes commas for the end of a
/// cookie, and some texts end the process.
final class CookieStore: Sendable {
  let storage: HTTPCookieStorage
  private let index = Mutex(CookieIndex())
  /// Where cookies are stored, one response after the other, so that no two decide about the same cookie.
  private let writing: DispatchQueue
  /// Where the storage is read while ``writing`` keeps it, so that the engine's thread does not wait.
  private let reading: DispatchQueue
  /// How many responses wait for their cookies to be stored, or are at it.
  private let writers = Atomic<Int>(0)

  /// Only for ``CookieStores``.
  init(_ storage: HTTPCookieStorage) {
    self.storage = storage
    writing = DispatchQueue(label: "org.alamofire.cookies.writing")
    reading = DispatchQueue(label: "org.alamofire.cookies.reading")
  }

  // MARK: Sending

  /// The result of a lookup that does not wait.
  enum Lookup {
    /// There are none at all.
    case none
    /// All that there are, by domain.
    case cookies(CookieIndex)
    /// Cookies are being stored, or the storage has changed; call ``CookieStore/read()``.
    case needsReading
  }

  /// The cookies as they are now.
  func lookUp() -> Lookup {
    guard !isBeingWritten else { return .needsReading }
    let objects = storage.cookies ?? []
    if objects.isEmpty { return .none }
    let index = index.withLock { $0 }
    return index.describes(objects) ? .cookies(index) : .needsReading
  }

  /// The cookies as they are now, however long it takes to find out.
  nonisolated(nonsending) func read() async -> CookieIndex {
    await withCheckedContinuation { continuation in
      reading.async { [self] in continuation.resume(returning: current()) }
    }
  }

  /// Whether cookies of responses wait to be stored, or are at it.
  var isBeingWritten: Bool { writers.load(ordering: .acquiring) != 0 }

  /// What the storage holds now. May wait for its file.
  func current() -> CookieIndex {
    let objects = storage.cookies ?? []
    let known = index.withLock { $0 }
    if known.describes(objects) { return known }
    let new = CookieIndex(objects)
    index.withLock { $0 = new }
    return new
  }

  // MARK: Storing

  /// Stores what a response sets, soon.
  func keep(_ fields: [[UInt8]], of source: CookieSource) {
    writers.add(1, ordering: .acquiringAndReleasing)
    writing.async { [self] in
      store(fields, of: source)
      writers.subtract(1, ordering: .acquiringAndReleasing)
    }
  }

  /// Waits until whatever was to be kept before is stored.
  nonisolated(nonsending) func kept() async {
    await withCheckedContinuation { continuation in
      writing.async { continuation.resume() }
    }
  }

  private func store(_ fields: [[UInt8]], of source: CookieSource) {
    let policy = source.policy.and(CookiePolicy(storage.cookieAcceptPolicy))
    let suffixes = Engine.publicSuffixes
    guard policy.allows(host: source.origin.host, document: source.document?.host, suffixes: suffixes) else {
      return
    }
    var rules = CookieRules(target: source.target, suffixes: suffixes, now: .now)
    rules.isThirdParty = source.document.map { !suffixes.isSameSite($0, source.origin) } ?? false
    var bridge = CookieStorageBridge(current(), in: storage)
    // One domain cannot have more, and each may write a file: a server must not keep everybody waiting with thousands.
    for field in fields.prefix(CookieRules.domainLimit) {
      guard let wish = try? SetCookie(field) else { continue }
      bridge.apply(rules.decide(wish, existing: bridge.cookies, creation: bridge.nextCreation()), by: rules)
    }
    // The next request finds the index ready.
    _ = current()
  }
}

/// Where cookies come from.
struct CookieSource: Sendable {
  let target: CookieTarget
  let origin: Origin
  /// The document that the user named for the request.
  let document: Origin?
  let policy: CookiePolicy

  /// - Parameters:
  ///   - sent:   What was sent, and was answered with cookies.
  ///   - user:   The user's request that it belongs to.
  ///   - policy: That of the session.
  init(_ sent: WireRequest, of user: URLRequest, policy: CookiePolicy) {
    target = CookieTarget(url: sent.url, origin: sent.origin)
    origin = sent.origin
    document = user.mainDocumentURL.flatMap { Origin(url: $0.absoluteString) }
    self.policy = policy
  }
}

/// The stores of all storages that sessions use.
final class CookieStores: Sendable {
  static let shared = CookieStores()

  private struct Entry {
    weak var store: CookieStore?
  }

  private let entries = Mutex<[ObjectIdentifier: Entry]>([:])

  private init() {}

  /// The store of a storage; the same one as long as anybody has it.
  func store(of storage: HTTPCookieStorage) -> CookieStore {
    entries.withLock { entries in
      // A store holds its storage, so that one that is there is the right one.
      if let store = entries[ObjectIdentifier(storage)]?.store { return store }
      entries = entries.filter { $0.value.store != nil }
      let store = CookieStore(storage)
      entries[ObjectIdentifier(storage)] = Entry(store: store)
      return store
    }
  }
}
