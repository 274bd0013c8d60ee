import Foundation
import FoundationNetworking
import HTTPWire

extension Journey {
  /// An answer that is stored, unless it is larger than the options of this request allow: then the server's own
  /// is refused as well.
  func allowed(_ answer: StoredAnswer?) -> StoredAnswer? {
    guard let answer, let limit = request.profile.options.bodySizeLimit, Int64(answer.body.count) > limit
    else { return answer }
    return nil
  }

  /// Takes the cookies of a response to what was sent last, when the request itself may be over.
  var cookieTaker: @Sendable (ResponseHead) -> Void {
    guard let store = core.session.cookies, urlRequest.httpShouldHandleCookies else { return { _ in } }
    let source = CookieSource(
      target: CookieTarget(url: request.url, origin: request.origin), origin: request.origin,
      document: urlRequest.mainDocumentURL.flatMap { Origin(url: $0.absoluteString) },
      policy: core.session.settings.cookiePolicy)
    return { head in
      guard head.role == .hop, head.block.contains("Set-Cookie") else { return }
      store.keep(head.block.rawValues(of: "Set-Cookie"), of: source)
    }
  }
}
