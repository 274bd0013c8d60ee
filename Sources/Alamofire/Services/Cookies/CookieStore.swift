import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Synchronization

/// The cookies in one `HTTPCookieStorage`, which users can read and change at any time. The storage is read before
/// every request; an empty one is read once in a turn of the engine. Sessions with the same storage share their
/// store.
///
/// Foundation's shared storage writes its whole file for each cookie that is set, which takes milliseconds and
/// blocks its readers. Therefore a queue stores cookies. It also reads the storage if cookies are being stored, so
/// that the engine's thread is not blocked. If a user sets cookies in the shared storage at that moment, the
/// engine's thread can wait for the file. Foundation's parsers are not used, because they split cookies at commas,
/// and some texts end the process.
final class CookieStore: Sendable {
  let storage: HTTPCookieStorage
  /// The last known content of the storage, for attempts and the queue. The storage is used outside the lock.
  private let index = Mutex(CookieIndex())
  /// The serial queue that stores cookies, so that decisions about the same cookie are not concurrent. It also
  /// reads the storage, so that a request gets the cookies of all responses before it, and the engine's thread does
  /// not wait.
  let queue: DispatchQueue
  /// The number of responses whose cookies are not stored yet.
  private let writers = Atomic<Int>(0)

  /// Makes the store of a storage. Only ``CookieStores`` calls it, so that there is one for each storage.
  init(_ storage: HTTPCookieStorage) {
    self.storage = storage
    queue = DispatchQueue(label: "org.alamofire.cookies")
  }

  // MARK: Sending

  /// The result of a lookup that does not wait.
  enum Lookup {
    /// The storage is empty.
    case none
    /// All cookies, by domain.
    case cookies(CookieIndex)
    /// Cookies are being stored, or the storage has changed; call ``CookieStore/read()``.
    case needsReading
  }

  /// Returns the current cookies if this takes no waiting.
  func lookUp() -> Lookup {
    guard !isBeingWritten else { return .needsReading }
    let objects = storage.cookies ?? []
    if objects.isEmpty { return .none }
    let index = index.withLock { $0 }
    return index.describes(objects) ? .cookies(index) : .needsReading
  }

  /// Returns the current cookies, once those passed to ``keep(_:of:)`` so far are stored. Can wait for the file of the
  /// storage.
  nonisolated(nonsending) func read() async -> CookieIndex {
    await withCheckedContinuation { continuation in
      queue.async { [self] in continuation.resume(returning: current()) }
    }
  }

  /// Whether cookies of responses are waiting to be stored, or being stored.
  var isBeingWritten: Bool { writers.load(ordering: .acquiring) != 0 }

  /// Returns the current cookies. May wait for the file of the storage.
  func current() -> CookieIndex {
    let objects = storage.cookies ?? []
    let known = index.withLock { $0 }
    if known.describes(objects) { return known }
    let new = CookieIndex(objects)
    index.withLock { $0 = new }
    return new
  }

  // MARK: Storing

  /// Stores the cookies of a response, asynchronously.
  func keep(_ fields: [[UInt8]], of source: CookieSource) {
    writers.add(1, ordering: .acquiringAndReleasing)
    queue.async { [self] in
      store(fields, of: source)
      writers.subtract(1, ordering: .acquiringAndReleasing)
    }
  }

  /// Calls `proceed` once all cookies passed to ``keep(_:of:)`` so far are stored. Returns false, and never calls
  /// `proceed`, if they are.
  func kept(_ proceed: @escaping @Sendable () -> Void) -> Bool {
    guard isBeingWritten else { return false }
    queue.async(execute: proceed)
    return true
  }

  private func store(_ fields: [[UInt8]], of source: CookieSource) {
    let policy = source.policy.and(CookiePolicy(storage.cookieAcceptPolicy))
    let suffixes = PublicSuffixList.shared
    guard policy.allows(host: source.origin.host, document: source.document?.host, suffixes: suffixes) else {
      return
    }
    var rules = CookieRules(target: source.target, suffixes: suffixes, now: .now)
    rules.isThirdParty = source.document.map { !suffixes.isSameSite($0, source.origin) } ?? false
    var bridge = CookieStorageBridge(current(), in: storage)
    // Bounded, because each cookie may write a file, and a domain cannot have more cookies.
    for field in fields.prefix(CookieRules.domainLimit) {
      guard let wish = try? SetCookie(field) else { continue }
      bridge.apply(rules.decide(wish, existing: bridge.cookies, creation: bridge.nextCreation()), by: rules)
    }
    // The next request finds the index ready.
    _ = current()
  }
}

/// The origin of cookies: the request whose response has them.
struct CookieSource: Sendable {
  let target: CookieTarget
  let origin: Origin
  /// The document that the user named for the request.
  let document: Origin?
  let policy: CookiePolicy

  /// Makes the source of the cookies of a response.
  ///
  /// - Parameters:
  ///   - sent:   The request whose response has the cookies.
  ///   - user:   The user's request.
  ///   - policy: The policy of the session.
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

  /// The store of each storage, for threads that create sessions.
  private let entries = Mutex<[ObjectIdentifier: Entry]>([:])

  private init() {}

  /// Returns the store of a storage; the same one as long as it is in use.
  func store(of storage: HTTPCookieStorage) -> CookieStore {
    entries.withLock { entries in
      // A store retains its storage, so an existing entry belongs to this storage.
      if let store = entries[ObjectIdentifier(storage)]?.store { return store }
      entries = entries.filter { $0.value.store != nil }
      let store = CookieStore(storage)
      entries[ObjectIdentifier(storage)] = Entry(store: store)
      return store
    }
  }
}

/// A snapshot of the cookies of a storage, by domain. The snapshot is valid as long as the storage returns the same
/// objects, because these are immutable; so a comparison of identities is enough.
final class CookieIndex: Sendable {
  /// Retained, so that no address is reused for another cookie.
  let objects: [HTTPCookie]
  /// The attributes of each object.
  let cookies: [Cookie]
  private let byDomain: [String: [Int]]
  /// The fields that an unchanged storage has given, for attempts.
  private let cache = Mutex(CookieFieldCache())

  init(_ objects: [HTTPCookie] = []) {
    self.objects = objects
    let cookies = objects.map { Cookie($0) }
    self.cookies = cookies
    byDomain = Dictionary(grouping: cookies.indices) { cookies[$0].domain }
  }

  /// Whether these are the objects that were looked at, in the same order; a storage that has not changed keeps that
  /// order.
  func describes(_ objects: [HTTPCookie]) -> Bool {
    guard objects.count == self.objects.count else { return false }
    for index in objects.indices where objects[index] !== self.objects[index] { return false }
    return true
  }

  /// Returns the cookies of a host and of its parent domains, for any path.
  func candidates(for host: String) -> [Cookie] {
    var found: [Int] = byDomain[host] ?? []
    if !CookieTarget.isAddress(host) {
      var rest = host[...]
      while let dot = rest.utf8.firstIndex(of: UInt8(ascii: ".")) {
        rest = rest[rest.utf8.index(after: dot)...]
        if let more = byDomain[String(rest)] { found += more }
      }
    }
    return found.isEmpty ? [] : found.map { cookies[$0] }
  }

  /// Returns the `Cookie` field for a target; `nil` without cookies. The field is cached as long as the storage does
  /// not change and none of its cookies expires.
  ///
  /// - Parameter cause: Asked only when a cookie depends on it.
  func field(for target: CookieTarget, now: HTTPDate, cause: () -> CookieSelection.Cause) -> String? {
    var asked: CookieSelection.Cause?
    switch cache.withLock({ $0.entry(for: target, now: now) }) {
    case .field(let field, _, _): return field
    case .dependsOnCause:
      let known = cause()
      if case .field(let field, _, _) = cache.withLock({ $0.entry(for: target, cause: known, now: now) }) {
        return field
      }
    case nil: break
    }
    let cookies = CookieSelection.cookies(for: target, from: candidates(for: target.host), now: now) {
      let known = cause()
      asked = known
      return known
    }
    let field = CookieSelection.field(cookies)
    cache.withLock { [asked] in $0.remember(field, of: cookies, for: target, cause: asked, now: now) }
    return field
  }
}

/// A storage and a copy of its cookies, while one response's cookies are stored.
struct CookieStorageBridge {
  private let storage: HTTPCookieStorage
  private(set) var objects: [HTTPCookie]
  private(set) var cookies: [Cookie]
  private var lastCreation: Int64 = 0

  init(_ index: CookieIndex, in storage: HTTPCookieStorage) {
    self.storage = storage
    objects = index.objects
    cookies = index.cookies
  }

  /// Returns a time for a new cookie, later than the one before, in microseconds.
  mutating func nextCreation() -> Int64 {
    let now = Int64((Date().timeIntervalSince1970 * 1e6).rounded())
    lastCreation = max(now, lastCreation + 1)
    return lastCreation
  }

  /// Applies a decision to the storage and to the copy.
  mutating func apply(_ decision: CookieRules.Decision, by rules: CookieRules) {
    switch decision {
    case .nothing, .refuse: break
    case .remove(let index): remove(at: index)
    case .store(let cookie, let old):
      // Setting a cookie may write a file, so an unchanged cookie is skipped.
      if let old, cookies[old].equals(cookie) { return }
      guard let object = StoredCookie(cookie), maySet(object, by: rules) else { return }
      // A cookie that a user created may spell the domain differently; then the new one would not replace it.
      if let old, !Self.haveOneKey(objects[old], object) { storage.deleteCookie(objects[old]) }
      storage.setCookie(object)
      if let old {
        objects[old] = object
        cookies[old] = cookie
      } else {
        objects.append(object)
        cookies.append(cookie)
        removeSurplus(of: cookie.domain, now: rules.now)
      }
    }
  }

  private mutating func remove(at index: Int) {
    storage.deleteCookie(objects[index])
    objects.remove(at: index)
    cookies.remove(at: index)
  }

  /// Whether a cookie can be set without replacing a secure one from an insecure origin. Foundation's key joins
  /// domain, path and name without a separator, so that `/b` and `c` equal `/` and `bc`.
  private func maySet(_ object: StoredCookie, by rules: CookieRules) -> Bool {
    guard !rules.target.isSecure else { return true }
    return !objects.indices.contains { cookies[$0].isSecure && Self.haveOneKey(objects[$0], object) }
  }

  private static func haveOneKey(_ left: HTTPCookie, _ right: HTTPCookie) -> Bool {
    left.domain == right.domain && left.path + left.name == right.path + right.name
  }

  /// Removes the cookies above the limit of a domain, and above the total limit.
  private mutating func removeSurplus(of domain: String, now: HTTPDate) {
    removeSurplus(
      at: cookies.indices.filter { cookies[$0].domain == domain }, limit: CookieRules.domainLimit, now: now)
    if cookies.count > CookieRules.totalLimit {
      removeSurplus(at: Array(cookies.indices), limit: CookieRules.totalLimit, now: now)
    }
  }

  private mutating func removeSurplus(at places: [Int], limit: Int, now: HTTPDate) {
    guard places.count > limit else { return }
    let surplus = CookieRules.surplus(of: places.map { cookies[$0] }, limit: limit, now: now)
    for index in surplus.map({ places[$0] }).sorted(by: >) { remove(at: index) }
  }
}

/// A request for which cookies are chosen.
struct CookieQuery {
  let request: WireRequest
  /// The caller's request, to which ``request`` belongs.
  let urlRequest: URLRequest
  /// The origin of the caller's request, which `SameSite` is about.
  let initialOrigin: Origin
  /// The other origins whose redirects led to the request.
  let redirectors: [Origin]

  /// Whether cookies of the storage are sent: the request has no `Cookie` field, allows cookies, and is not repeated in
  /// its response.
  var takesCookies: Bool {
    urlRequest.httpShouldHandleCookies && !request.isTRACE
      && !request.fields.contains { FieldName.equal($0.name, "Cookie") }
  }
}

/// The cookies of one session. It does not know requests in progress, delegates or the cache.
final class SessionCookies: Sendable {
  /// The `Cookie` field of a request, as far as it is known at once.
  enum Answer {
    case none
    case header(String)
    /// The storage has to be read.
    case needsReading
  }

  private let store: CookieStore
  /// Whether requests send cookies of the storage.
  private let areSent: Bool
  private let policy: CookiePolicy
  /// The number of the engine's turn, on its own thread; `nil` elsewhere.
  private let turn: @Sendable () -> UInt64?
  /// The turn of the engine in which there were no cookies.
  private let turnWithoutCookies = Atomic<UInt64>(0)

  init(
    _ storage: HTTPCookieStorage, areSent: Bool, policy: CookiePolicy, turn: @escaping @Sendable () -> UInt64?
  ) {
    store = CookieStores.shared.store(of: storage)
    self.areSent = areSent
    self.policy = policy
    self.turn = turn
  }

  // MARK: Sending

  func header(for query: @autoclosure () -> CookieQuery) -> Answer {
    guard areSent else { return .none }
    switch lookUp() {
    case .none: return .none
    case .cookies(let index): return header(for: query(), of: index).map { .header($0) } ?? .none
    case .needsReading: return query().takesCookies ? .needsReading : .none
    }
  }

  /// Returns the `Cookie` field, and waits as long as it takes to read the storage.
  nonisolated(nonsending) func readHeader(for query: CookieQuery) async -> String? {
    areSent ? header(for: query, of: await store.read()) : nil
  }

  private func header(for query: CookieQuery, of index: CookieIndex) -> String? {
    guard query.takesCookies else { return nil }
    let request = query.request
    return index.field(for: CookieTarget(url: request.url, origin: request.origin), now: .now) {
      CookieSelection.cause(
        of: request.origin, method: request.method, initialOrigin: query.initialOrigin,
        redirectors: query.redirectors,
        document: query.urlRequest.mainDocumentURL.flatMap { Origin(url: $0.absoluteString) },
        suffixes: PublicSuffixList.shared)
    }
  }

  /// Returns the current cookies if this takes no waiting.
  ///
  /// In one turn of the engine, only the first request reads an empty storage, unless a response sets cookies.
  private func lookUp() -> CookieStore.Lookup {
    guard let turn = turn() else { return store.lookUp() }
    if turnWithoutCookies.load(ordering: .relaxed) == turn, !store.isBeingWritten { return .none }
    let lookup = store.lookUp()
    if case .none = lookup { turnWithoutCookies.store(turn, ordering: .relaxed) }
    return lookup
  }

  /// Returns the cookies that would be sent with a request to `url`, for its description.
  func cookies(for url: URL) -> [Cookie] {
    guard areSent, let target = CookieTarget(url: url.absoluteString) else { return [] }
    let candidates = store.current().candidates(for: target.host)
    return CookieSelection.cookies(for: target, from: candidates, now: .now) { .sameSite }
  }

  // MARK: Storing

  /// Stores the `Set-Cookie` fields of a response, soon.
  ///
  /// - Parameters:
  ///   - sent:       The request that was answered.
  ///   - urlRequest: The caller's request, to which it belongs.
  func store(_ fields: [[UInt8]], of sent: WireRequest, for urlRequest: URLRequest) {
    // The next hop of the request may begin in this turn.
    turnWithoutCookies.store(0, ordering: .relaxed)
    store.keep(fields, of: CookieSource(sent, of: urlRequest, policy: policy))
  }

  /// Whether cookies of some response are not stored yet.
  var areBeingStored: Bool { store.isBeingWritten }

  /// Calls `proceed` once all cookies so far are in the storage. Returns false, and never calls `proceed`, if they are.
  func stored(_ proceed: @escaping @Sendable () -> Void) -> Bool { store.kept(proceed) }

  /// Waits until all cookies so far are in the storage.
  func storesFinished() async {
    await withCheckedContinuation { continuation in
      if !stored({ continuation.resume() }) { continuation.resume() }
    }
  }
}
