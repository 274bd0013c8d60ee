import Foundation
import FoundationNetworking
import HTTPWire

// The cookies that the session's storage holds for a hop are sent with it, unless the caller sets `Cookie` or
// `httpShouldHandleCookies` is false.
extension HopLoop {
  mutating func addCookies() -> Outcome<HopLoop> {
    requests.dropCookies()
    guard let cookies = services.cookies, route.handler.isOverNetwork else { return .done }
    guard delegate.hasPendingCookies, cookieQuery.takesCookies else { return add(cookies) }
    // Cookies of the previous hop are still being stored.
    return .gate(.cookies) { hops in hops.add(cookies) }
  }

  private mutating func add(_ cookies: SessionCookies) -> Outcome<HopLoop> {
    switch cookies.header(for: cookieQuery) {
    case .none: break
    case .header(let header): requests.addCookies(header)
    case .needsReading:
      return .task { [query = cookieQuery] in
        await cookies.readHeader(for: query)
      } then: { hops, header in
        if let header { hops.requests.addCookies(header) }
        return .done
      }
    }
    return .done
  }

  private var cookieQuery: CookieQuery {
    CookieQuery(
      request: request, urlRequest: urlRequest, initialOrigin: redirects.initialOrigin)
  }

  /// Stores the cookies of a response to the current hop, also after the end of the request.
  var cookieTaker: @Sendable (ResponseHead) -> Void {
    let (request, urlRequest) = (request, urlRequest)
    guard let cookies = services.cookies, urlRequest.httpShouldHandleCookies else { return { _ in } }
    return { head in
      guard head.role.isHop, head.block.marks.contains(.setCookie) else { return }
      cookies.store(head.block.rawValues(of: "Set-Cookie"), of: request, for: urlRequest)
    }
  }
}
