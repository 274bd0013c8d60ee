import Foundation
import HTTPWire

extension Journey {
  /// Stage 3: if the response leads elsewhere (RFC 9110 §15.4), the next hop goes there.
  @inline(never)
  func follows(redirect response: WireResponse) throws(AFError) -> Bool {
    guard (300..<400).contains(response.head.status) else { return false }
    let options = core.options
    let decision = Redirect.decide(
      status: response.head.status, location: response.head.block.value(of: "Location"),
      request: Redirect.Request(
        url: request.url, origin: request.origin, method: request.method, hasBody: request.body.isPresent),
      hopCount: redirects, limit: options.redirectLimit, protectedHeaders: options.protectedHeaders)
    switch decision {
    case .notARedirect: return false
    case .follow(let plan):
      redirects += 1
      request = request.following(plan)
      return true
    case .refuse(let refusal):
      arrived(response)
      throw .sessionTaskFailed(error: URLError.refused(refusal, from: request.url))
    }
  }
}
