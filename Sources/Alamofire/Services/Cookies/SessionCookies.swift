import Foundation
import FoundationNetworking
import HTTPSystem
import HTTPWire
import Synchronization

/// A request for which cookies are chosen.
struct CookieQuery {
  let request: WireRequest
  /// The caller's request, to which ``request`` belongs.
  let urlRequest: URLRequest
  /// The origin of the caller's request, which `SameSite` is about.
  let initialOrigin: Origin

  /// Whether cookies of the storage are sent: the request has no `Cookie` field and allows cookies.
  var takesCookies: Bool {
    urlRequest.httpShouldHandleCookies && !request.fields.contains { FieldName.equal($0.name, "Cookie") }
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
