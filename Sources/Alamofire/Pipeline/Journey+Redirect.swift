import Foundation
import HTTPWire

extension Journey {
  /// Stage 3: if the response leads elsewhere (RFC 9110 §15.4), the next hop goes there.
  @inline(never)
  func answer(toRedirect response: WireResponse) throws(AFError) -> RedirectAnswer {
    guard (300..<400).contains(response.head.status) else { return .none }
    let options = core.options
    let decision = Redirect.decide(
      status: response.head.status, location: response.head.block.values(of: "Location").first,
      request: Redirect.Request(
        url: request.url, origin: request.origin, method: request.method, hasBody: request.body.isPresent),
      hopCount: redirects, limit: options.redirectLimit, protectedHeaders: options.protectedHeaders)
    switch decision {
    case .notARedirect: return .none
    case .follow(let proposed):
      let plan = request.upgraded(proposed)
      if core.isRedirectWatched { return .undecided(plan) }
      follow(plan)
      return .followed
    case .refuse(let refusal):
      arrived(response)
      throw .sessionTaskFailed(error: URLError.refused(refusal, from: request.url))
    }
  }
}

/// What becomes of a response.
enum RedirectAnswer {
  /// It is what was asked for.
  case none
  case followed
  /// It leads elsewhere, and somebody wants to be asked.
  case undecided(RedirectPlan)
}

extension Journey {
  func follow(_ plan: RedirectPlan) {
    redirects += 1
    let profile = profile(to: plan.origin, from: request)
    request = request.following(plan)
    if profile !== request.profile { request = request.changing { $0.profile = profile } }
  }

  /// An identity that was meant for one origin is not shown to another.
  private func profile(to origin: Origin, from request: WireRequest) -> ConnectionProfile {
    guard origin != request.origin else { return request.profile }
    return origin == home ? core.profile : request.profile.elsewhere ?? request.profile
  }

  /// Follows to a request that a handler has made of the proposed one.
  func follow(_ plan: RedirectPlan, changedTo changed: URLRequest) throws(AFError) {
    let redirected = request
    follow(plan)
    guard let url = changed.url else { throw .sessionTaskFailed(error: URLError.noURL) }
    guard let target = WireTarget(url.absoluteString) else {
      guard let scheme = url.scheme?.lowercased(), scheme != "http", scheme != "https" else {
        throw .sessionTaskFailed(error: URLError.unsupported(url))
      }
      throw .sessionTaskFailed(error: URLError.refused(.unsupportedScheme(scheme), from: request.url))
    }
    let fields = (changed.allHTTPHeaderFields ?? [:]).map { HTTPHeader(name: $0.key, value: $0.value) }
    if let violation = core.session.settings.violation(
      method: changed.httpMethod ?? "GET", own: changed.allHTTPHeaderFields, all: fields)
    {
      throw .sessionTaskFailed(error: URLError.made(.badURL, violation.message, url: url.absoluteString))
    }
    // The order of the fields is the one of before; new ones follow, by name.
    let order = request.fields.map { $0.name.lowercased() }
    let sorted = SessionSettings.withoutFraming(fields).sorted { left, right in
      let places = (
        order.firstIndex(of: left.name.lowercased()), order.firstIndex(of: right.name.lowercased())
      )
      switch places {
      case (let left?, let right?): return left < right
      case (nil, nil): return left.name < right.name
      case (let left, _): return left != nil
      }
    }
    let next = request.redirected { parts in
      parts.url = target.url
      parts.origin = target.origin
      parts.method = changed.httpMethod ?? "GET"
      parts.fields = sorted
      parts.body = body(of: changed)
      parts.profile = profile(to: target.origin, from: redirected)
    }
    request = next.upgraded
  }

  /// The body of a request that a handler has made: its own, else that of the request before.
  private func body(of changed: URLRequest) -> RequestBody {
    if let data = changed.httpBody { return .bytes(data) }
    if let stream = changed.httpBodyStream, stream !== urlRequest.httpBodyStream {
      return .source(
        InputStreamSource(stream, length: WireRequest.contentLength(changed.allHTTPHeaderFields)))
    }
    return changed.httpMethod == request.method ? request.body : .none
  }
}
