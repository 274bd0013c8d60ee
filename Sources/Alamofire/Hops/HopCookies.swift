import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

// The cookies that the session's storage holds for a hop are sent with it, unless the caller sets `Cookie` or
// `httpShouldHandleCookies` is false.
extension RequestRun {
  func addCookies() -> Outcome {
    values.requestWithCookies = nil
    guard let cookies = core.session.cookies, values.handler.isOverNetwork else { return .done }
    guard core.hasPendingCookies, cookieQuery.takesCookies else { return add(cookies) }
    // Cookies of the previous hop are still being stored.
    return .gate(.cookies) { run in run.add(cookies) }
  }

  private func add(_ cookies: SessionCookies) -> Outcome {
    switch cookies.header(for: cookieQuery) {
    case .none: break
    case .header(let header): addCookies(header)
    case .needsReading:
      return .task { [query = cookieQuery] in
        await cookies.readHeader(for: query)
      } then: { run, header in
        if let header { run.addCookies(header) }
        return .done
      }
    }
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
  func waitForCookies() -> Outcome {
    core.hasPendingCookies ? .gate(.cookies) { _ in .done } : .done
  }
}
