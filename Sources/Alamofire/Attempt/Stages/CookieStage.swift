import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// The cookies that the session's storage holds for a hop are sent with it, unless the caller sets `Cookie` or
// `httpShouldHandleCookies` is false.
extension AttemptDriver {
  @inline(never)
  func addCookiesAtOnce() -> AttemptEvent? {
    values.requestWithCookies = nil
    guard let store = core.session.cookies, values.handler.isEngine, core.session.settings.sendsCookies else {
      return .done
    }
    // Cookies of the previous hop are still being stored.
    guard !core.hasCookies else { return wantsCookies ? nil : .done }
    switch core.session.glance(into: store) {
    case .none: return .done
    case .cookies(let index):
      addCookies(of: index)
      return .done
    case .later: return wantsCookies ? nil : .done
    }
  }

  // Not inlined, because its frame would enlarge that of the task.
  @inline(never)
  nonisolated(nonsending) func addCookies() async -> AttemptEvent {
    guard let store = core.session.cookies else { return .done }
    await core.cookiesKept()
    addCookies(of: await store.read())
    return .done
  }

  private var wantsCookies: Bool {
    values.urlRequest.httpShouldHandleCookies
      && !values.request.fields.contains { FieldName.equal($0.name, "Cookie") }
  }

  private func addCookies(of index: CookieIndex) {
    guard wantsCookies else { return }
    let request = values.request
    let target = CookieTarget(url: request.url, origin: request.origin)
    let field = index.field(for: target, now: .now) {
      CookieSelection.cause(
        of: request.origin, method: request.method, home: values.initialOrigin,
        document: values.urlRequest.mainDocumentURL.flatMap { Origin(url: $0.absoluteString) },
        suffixes: Engine.publicSuffixes)
    }
    guard let field else { return }
    values.requestWithCookies = request.changing {
      $0.fields.append(HTTPHeader(name: "Cookie", value: field))
    }
  }

  /// Stores the cookies of a response to the current hop, also after the end of the request.
  var cookieTaker: @Sendable (ResponseHead) -> Void {
    let urlRequest = values.urlRequest
    guard let store = core.session.cookies, urlRequest.httpShouldHandleCookies else { return { _ in } }
    let source = CookieSource(values.request, of: urlRequest, policy: core.session.settings.cookiePolicy)
    return { head in
      guard head.role == .hop, head.block.marks.contains(.setCookie) else { return }
      store.keep(head.block.rawValues(of: "Set-Cookie"), of: source)
    }
  }

  /// Waits until the cookies of the response are where the caller will look for them.
  nonisolated(nonsending) func waitForCookies() async -> AttemptEvent {
    await core.cookiesKept()
    return .done
  }
}
