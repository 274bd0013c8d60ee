import Foundation
import FoundationNetworking
import HTTPWire

/// The redirects that led to a hop, and the origin at which they began.
struct HopRedirects: Sendable {
  private(set) var count = 0
  /// Whether a hop went to another origin. Credentials are no longer sent preemptively.
  private(set) var leftInitialOrigin = false
  /// The other origins whose redirects were followed. Whether one is of another site is decided only for a cookie that
  /// depends on it, because that reads the list of public suffixes.
  private(set) var redirectors: [Origin] = []
  private var origin: Origin?

  /// The origin of the caller's request. Credentials go to no other origin.
  @inline(__always) var initialOrigin: Origin { origin ?? HopLoop.missing("an origin") }

  mutating func begin(at origin: Origin) { self.origin = origin }

  /// Gives the secrets of the request to another origin than the hop's.
  mutating func keepSecrets(at owner: Origin) {
    origin = owner
    leftInitialOrigin = true
  }

  /// Notes a redirect that is followed.
  ///
  /// - Parameter redirector: The origin of the response.
  mutating func follow(from redirector: Origin) {
    count += 1
    if redirector != initialOrigin, !redirectors.contains(redirector) { redirectors.append(redirector) }
  }

  /// Notes the origin of a hop.
  mutating func arrive(at origin: Origin) {
    if origin != initialOrigin { leftInitialOrigin = true }
  }
}

// If the response is a redirect (RFC 9110 §15.4), the next hop follows it.
extension HopLoop {
  mutating func followRedirect() throws(AFError) -> Outcome<HopLoop> {
    guard let head = responses.last?.head, (300..<400).contains(head.status) else {
      return .event(.redirect(.none))
    }
    let request = request
    switch delegate.redirect(by: head, of: request, after: redirects.count) {
    case .notARedirect: return .event(.redirect(.none))
    case .follow(let proposed):
      let plan = request.upgraded(proposed)
      if delegate.observers.contains(.redirects) { return askDelegate(about: plan, head) }
      noteRedirect(plan)
      follow(plan)
      return .event(.redirect(.followed))
    case .refuse(let refusal):
      recordResult()
      throw .sessionTaskFailed(error: URLError.refused(refusal, from: request.url))
    }
  }

  /// Asks the delegate, which asks the redirect handlers.
  private mutating func askDelegate(about plan: RedirectPlan, _ head: ResponseHead) -> Outcome<HopLoop> {
    let followed = request.following(plan)
    guard let redirect = Exchange(url: shownURL(of: request), head: head).httpResponse,
      let question = delegate.question(about: redirect, to: followed)
    else {
      noteRedirect(plan)
      follow(plan)
      return .event(.redirect(.followed))
    }
    return .task(question.ask) { (hops, answer) throws(AFError) in
      try hops.delegate.checkAlive()
      try hops.checkDeadline(asked: "The delegate, or a redirect handler,")
      return try hops.redirect(by: plan, head, proposing: question.proposed, answer)
    }
  }

  /// Follows the redirect as the delegate wants.
  ///
  /// - Parameter answer: The request to send instead of the proposed one; `nil` if the redirect is not followed.
  private mutating func redirect(
    by plan: RedirectPlan, _ head: ResponseHead, proposing proposed: URLRequest, _ answer: URLRequest?
  ) throws(AFError) -> Outcome<HopLoop> {
    guard let answer else {
      responses.deliversBody = false
      delegate.redirectDeclined(head)
      return .event(.redirect(.declined))
    }
    if answer.isSent(like: proposed) {
      noteRedirect(plan)
      follow(plan)
    } else {
      try follow(plan, changing: proposed, to: answer)
    }
    return .event(.redirect(.followed))
  }

  /// Notes a redirect that is followed as proposed. A redirect that the caller's code has changed is not known to be
  /// permanent.
  private func noteRedirect(_ plan: RedirectPlan) {
    guard let status = responses.last?.head.status else { return }
    kind.redirected(by: plan, from: request.method, status: status)
  }

  private mutating func follow(_ plan: RedirectPlan) {
    let request = request
    redirects.follow(from: request.origin)
    kind.redirectFollowed()
    let profile = profile(to: plan.origin, from: request)
    let next = request.following(plan)
    self.request = profile === next.profile ? next : next.changing { $0.profile = profile }
  }

  /// Returns the profile for the next origin. A client certificate for one origin is not presented to another, and is
  /// presented again when a redirect leads back.
  private func profile(to origin: Origin, from request: WireRequest) -> ConnectionProfile {
    guard origin != request.origin else { return request.profile }
    return origin == redirects.initialOrigin ? delegate.profile : request.profile.elsewhere ?? request.profile
  }

  /// Follows the redirect with a request that a handler has derived from the proposed one.
  private mutating func follow(
    _ plan: RedirectPlan, changing proposed: URLRequest, to changed: URLRequest
  ) throws(AFError) {
    let redirected = request
    follow(plan)
    let target = try redirectTarget(of: changed, proposed: proposed)
    var fields = (changed.allHTTPHeaderFields ?? [:]).map { HTTPHeader(name: $0.key, value: $0.value) }
    // A field that the handler has set is for its target. The others are for the target of the proposed request.
    fields.removeAll { !plan.keeps($0.name, to: target.origin) && proposed.hasField(like: $0) }
    requests.violation = services.settings.violation(
      method: changed.httpMethod ?? "GET", own: changed.allHTTPHeaderFields, all: fields)
    fields = fields.flatMap { lines(of: $0, proposed: proposed) }
    let sorted = SessionSettings.withoutFraming(fields).sorted(like: request.fields)
    let body = body(of: changed)
    let trailers = body.isPresent && hasSameBody(changed, as: proposed) ? request.trailers : nil
    let profile = profile(to: target.origin, from: redirected)
    let next = request.redirected { parts in
      parts.url = target.url
      parts.origin = target.origin
      parts.method = changed.httpMethod ?? "GET"
      parts.fields = sorted
      parts.body = body
      parts.trailers = trailers?.filtered { [origin = target.origin] in plan.keeps($0, to: origin) }
      parts.profile = profile
    }
    request = next.upgraded
  }

  /// Returns a field of a request that a handler has created. If it is the proposed one, it has as many lines as there,
  /// because `URLRequest` joins them.
  private func lines(of field: HTTPHeader, proposed: URLRequest) -> [HTTPHeader] {
    guard proposed.hasField(like: field) else { return [field] }
    let equal = request.fields.filter { FieldName.equal($0.name, field.name) }
    return equal.isEmpty ? [field] : equal
  }

  /// Returns the target of a request that a handler has created. If its URL is the proposed one, it is sent as the
  /// server wrote it.
  private func redirectTarget(of changed: URLRequest, proposed: URLRequest) throws(AFError) -> WireTarget {
    if changed.url == proposed.url, let target = WireTarget(request.url) { return target }
    guard let url = changed.url else { throw .sessionTaskFailed(error: URLError.noURL) }
    if let target = WireTarget(kind.engineURL(of: url.absoluteString)) { return target }
    guard let scheme = url.scheme?.lowercased(), scheme != "http", scheme != "https" else {
      throw .sessionTaskFailed(error: URLError.unsupported(url))
    }
    throw .sessionTaskFailed(error: URLError.refused(.unsupportedScheme(scheme), from: request.url))
  }

  /// Returns the body of a request that a handler has created: its own, or else the previous request's.
  private func body(of changed: URLRequest) -> RequestBody {
    if let data = changed.httpBody { return .bytes(data) }
    if let stream = changed.httpBodyStream, stream !== urlRequest.httpBodyStream {
      return .source(
        InputStreamSource(stream, length: WireRequest.contentLength(changed.allHTTPHeaderFields)))
    }
    return changed.httpMethod == request.method ? request.body : .none
  }

  /// Whether a handler has left the body of the proposed request as it was, so that the trailers of that body still
  /// describe it.
  private func hasSameBody(_ changed: URLRequest, as proposed: URLRequest) -> Bool {
    changed.httpBody == proposed.httpBody && changed.httpBodyStream === proposed.httpBodyStream
  }
}

extension [HTTPHeader] {
  /// Returns the fields in the order of `fields`; further ones follow by name.
  fileprivate func sorted(like fields: [HTTPHeader]) -> [HTTPHeader] {
    let order = fields.map { $0.name.lowercased() }
    return sorted { left, right in
      let indices = (
        order.firstIndex(of: left.name.lowercased()), order.firstIndex(of: right.name.lowercased())
      )
      switch indices {
      case (let left?, let right?): return left < right
      case (nil, nil): return left.name < right.name
      case (let left, _): return left != nil
      }
    }
  }
}
