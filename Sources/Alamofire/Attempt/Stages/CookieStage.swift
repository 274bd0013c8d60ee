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
    guard let cookies = core.session.cookies, values.handler.isOverNetwork else { return .done }
    // Cookies of the previous hop are still being stored.
    if core.hasPendingCookies { return cookieQuery.takesCookies ? nil : .done }
    switch cookies.header(for: cookieQuery) {
    case .none: return .done
    case .header(let header):
      addCookies(header)
      return .done
    case .needsReading: return nil
    }
  }

  // Not inlined, because its frame would enlarge that of the task.
  @inline(never)
  nonisolated(nonsending) func addCookies() async -> AttemptEvent {
    guard let cookies = core.session.cookies else { return .done }
    await core.cookiesStored()
    if let header = await cookies.readHeader(for: cookieQuery) { addCookies(header) }
    return .done
  }

  private var cookieQuery: CookieQuery {
    CookieQuery(
      request: values.request, urlRequest: values.urlRequest, initialOrigin: values.initialOrigin)
  }

  private func addCookies(_ header: String) {
    values.requestWithCookies = values.request.changing {
      $0.fields.append(HTTPHeader(name: "Cookie", value: header))
    }
  }

  /// Stores the cookies of a response to the current hop, also after the end of the request.
  var cookieTaker: @Sendable (ResponseHead) -> Void {
    let (request, urlRequest) = (values.request, values.urlRequest)
    guard let cookies = core.session.cookies, urlRequest.httpShouldHandleCookies else { return { _ in } }
    return { head in
      guard head.role == .hop, head.block.marks.contains(.setCookie) else { return }
      cookies.store(head.block.rawValues(of: "Set-Cookie"), of: request, for: urlRequest)
    }
  }

  /// Waits until the cookies of the response are where the caller will look for them.
  nonisolated(nonsending) func waitForCookies() async -> AttemptEvent {
    await core.cookiesStored()
    return .done
  }
}
