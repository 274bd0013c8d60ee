import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

extension Journey {
  /// Stage 2, before each hop: the cookies that the session's storage has for it by now go along, unless the
  /// user brings a `Cookie` field, or wants none. Returns false when the storage has to be read elsewhere first.
  @inline(never)
  func tookCookies(from store: CookieStore) -> Bool {
    outgoing = nil
    guard carrier.isEngine else { return true }
    guard let candidates = store.candidates(for: request.origin.host) else { return !wantsCookies }
    if !candidates.isEmpty { take(candidates) }
    return true
  }

  nonisolated(nonsending) func takeCookies(from store: CookieStore) async {
    take(await store.readCandidates(for: request.origin.host))
  }

  private var wantsCookies: Bool {
    core.session.settings.sendsCookies && urlRequest.httpShouldHandleCookies
      && !request.fields.contains { FieldName.equal($0.name, "Cookie") }
  }

  private func take(_ candidates: [Cookie]) {
    guard wantsCookies else { return }
    let target = CookieTarget(url: request.url, origin: request.origin)
    let cookies = CookieSelection.cookies(for: target, from: candidates, now: .now) {
      CookieSelection.cause(
        of: request.origin, method: request.method, home: home,
        document: urlRequest.mainDocumentURL.flatMap { Origin(url: $0.absoluteString) },
        suffixes: Engine.publicSuffixes)
    }
    guard let field = CookieSelection.field(cookies) else { return }
    outgoing = request.with(fields: request.fields + [HTTPHeader(name: "Cookie", value: field)])
  }
}

extension RequestCore {
  /// What a response sets is stored as soon as its head is there, whatever becomes of its body.
  func keepCookies(of head: ResponseHead, in store: CookieStore) {
    guard head.role == .hop, head.block.contains("Set-Cookie") else { return }
    let (hop, request) = state.withLock { ($0.hop, $0.request) }
    guard let hop, let request, request.httpShouldHandleCookies else { return }
    let sent = hop.request
    hasCookiesToKeep.store(true, ordering: .releasing)
    store.keep(
      head.block.rawValues(of: "Set-Cookie"),
      of: CookieSource(
        target: CookieTarget(url: sent.url, origin: sent.origin), origin: sent.origin,
        document: request.mainDocumentURL.flatMap { Origin(url: $0.absoluteString) },
        policy: session.settings.cookiePolicy))
  }

  /// The store in which cookies of the last response are being stored, if they are.
  var cookiesToKeep: CookieStore? {
    hasCookiesToKeep.load(ordering: .acquiring) ? session.cookies : nil
  }

  /// Waits until the cookies of the last response are where its user will look for them.
  nonisolated(nonsending) func cookiesKept(in store: CookieStore) async {
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
