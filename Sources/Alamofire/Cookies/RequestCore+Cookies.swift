import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

extension SessionCore {
  /// The cookies as they are now.
  ///
  /// Of the requests that begin in one turn of the engine, only the first looks into an empty storage, because a request
  /// that begins after a cookie was stored belongs to a later turn.
  func glance(into store: CookieStore) -> CookieStore.Glance {
    guard let turn = turn else { return store.glance() }
    if turnWithoutCookies.load(ordering: .relaxed) == turn, !store.isBeingWritten { return .none }
    let glance = store.glance()
    if case .none = glance { turnWithoutCookies.store(turn, ordering: .relaxed) }
    return glance
  }
}

extension RequestCore {
  /// Stores the cookies of a response as soon as its head is there, even if its body fails.
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

  /// Waits until the cookies of the response are in the storage.
  @inline(never)
  nonisolated(nonsending) func cookiesKept() async {
    guard hasCookies, let store = session.cookies else { return }
    hasCookiesToKeep.store(false, ordering: .releasing)
    await store.kept()
  }

  /// The cookies that would be sent with a request to `url`, for its description.
  func cookies(for url: URL) -> [Cookie] {
    guard session.settings.sendsCookies, let store = session.cookies,
      let target = CookieTarget(url: url.absoluteString)
    else { return [] }
    let candidates = store.current().candidates(for: target.host)
    return CookieSelection.cookies(for: target, from: candidates, now: .now) { .sameSite }
  }
}
