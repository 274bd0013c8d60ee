import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

extension Journey {
  /// Stage 2, before each hop: the cookies that the session's storage has for it by now go along, unless the
  /// user brings a `Cookie` field, or wants none. Returns false when that takes a moment.
  @inline(never)
  func tookCookies(from store: CookieStore) -> Bool {
    outgoing = nil
    guard hopHandler.isEngine, core.session.settings.sendsCookies else { return true }
    guard !core.hasCookies else { return !wantsCookies }
    switch core.session.glance(into: store) {
    case .none: return true
    case .cookies(let index):
      take(from: index)
      return true
    case .later: return !wantsCookies
    }
  }

  /// The same, however long it takes: those of the hop before are stored first.
  // Not inlined, like the waiting below: it would make the frame of the task larger, which is allocated anew each time.
  @inline(never)
  nonisolated(nonsending) func takeCookies(from store: CookieStore) async {
    await core.cookiesKept()
    take(from: await store.read())
  }

  private var wantsCookies: Bool {
    urlRequest.httpShouldHandleCookies
      && !request.fields.contains { FieldName.equal($0.name, "Cookie") }
  }

  /// Takes the cookies of a response to what was sent last, when the request itself may be over.
  var cookieTaker: @Sendable (ResponseHead) -> Void {
    guard let store = core.session.cookies, urlRequest.httpShouldHandleCookies else { return { _ in } }
    let source = CookieSource(request, of: urlRequest, policy: core.session.settings.cookiePolicy)
    return { head in
      guard head.role == .hop, head.block.marks.contains(.setCookie) else { return }
      store.keep(head.block.rawValues(of: "Set-Cookie"), of: source)
    }
  }

  private func take(from index: CookieIndex) {
    guard wantsCookies else { return }
    let target = CookieTarget(url: request.url, origin: request.origin)
    let field = index.field(for: target, now: .now) {
      CookieSelection.cause(
        of: request.origin, method: request.method, home: home,
        document: urlRequest.mainDocumentURL.flatMap { Origin(url: $0.absoluteString) },
        suffixes: Engine.publicSuffixes)
    }
    guard let field else { return }
    outgoing = request.changing { $0.fields.append(HTTPHeader(name: "Cookie", value: field)) }
  }
}

extension SessionCore {
  /// The cookies as they are now.
  ///
  /// Of the requests that begin in one turn of the engine, only the first looks into a storage that is empty: whoever
  /// stores a cookie and then begins a request is heard of in a later turn.
  fileprivate func glance(into store: CookieStore) -> CookieStore.Glance {
    guard let turn = turn else { return store.glance() }
    if turnWithoutCookies.load(ordering: .relaxed) == turn, !store.isBeingWritten { return .none }
    let glance = store.glance()
    if case .none = glance { turnWithoutCookies.store(turn, ordering: .relaxed) }
    return glance
  }
}

extension RequestCore {
  /// What a response sets is stored as soon as its head is there, whatever becomes of its body.
  func keepCookies(of head: ResponseHead, in store: CookieStore) {
    guard head.role == .hop, head.block.marks.contains(.setCookie) else { return }
    let (hop, request) = state.withLock { ($0.hop, $0.request) }
    guard let hop, let request, request.httpShouldHandleCookies else { return }
    hasCookiesToKeep.store(true, ordering: .releasing)
    store.keep(
      head.block.rawValues(of: "Set-Cookie"),
      of: CookieSource(hop.request, of: request, policy: session.settings.cookiePolicy))
  }

  /// Whether cookies of the last response are being stored.
  var hasCookies: Bool { hasCookiesToKeep.load(ordering: .acquiring) }

  /// Waits until they are where the user of the response will look for them.
  @inline(never)
  nonisolated(nonsending) func cookiesKept() async {
    guard hasCookies, let store = session.cookies else { return }
    hasCookiesToKeep.store(false, ordering: .releasing)
    await store.kept()
  }

  /// The cookies that would go along with a request to `url`, for whoever describes it.
  func cookies(for url: URL) -> [Cookie] {
    guard session.settings.sendsCookies, let store = session.cookies,
      let target = CookieTarget(url: url.absoluteString)
    else { return [] }
    let candidates = store.current().candidates(for: target.host)
    return CookieSelection.cookies(for: target, from: candidates, now: .now) { .sameSite }
  }
}
