/// What a server answers when no reply was enqueued.
///
/// ```swift
/// let routes = Routes.standard.adding("/people/{id}", methods: ["GET"]) { request, parameters in
///   .json("{\"id\": \"\(parameters[0])\"}")
/// }
/// let server = try HTTPTestServer(routes: routes)
/// ```
///
/// HEAD is answered as GET, without the body; OPTIONS with `Allow`; a method that no route of the path
/// takes with 405 and `Allow`; a path without a route with 404, all with a JSON document.
public struct Routes: Sendable {
  /// Answers one request. `parameters` are the decoded values of the `{…}` of the pattern, in their order.
  /// Called on the thread of the connection; ``HTTPTestServer/stop()`` waits for its end.
  public typealias Handler = @Sendable (_ request: RecordedRequest, _ parameters: [String]) -> Reply

  private var routes: [Route] = []

  /// No routes: every request that no enqueued reply answers gets a 404.
  public static let none = Routes()

  /// The routes that httpbin has, as far as clients need them; see the documentation of the module.
  public static let standard = Routes.none
    .inspection.dynamic.redirects.authentication.formats.caching.cookies

  init() {}

  /// A copy with one more route, which comes before those that are there.
  ///
  /// `pattern` is a path in which `{name}` stands for one segment and a final `**` for any rest, also none.
  /// `methods` are those that the route takes; `nil`, the default, takes all. `requestBody` says what is
  /// done with the body of the request before the handler is called; `afterReply` and `ignored` hand an
  /// empty body to it.
  public func adding(
    _ pattern: String, methods: [String]? = nil, requestBody: Reply.RequestBody = .recorded,
    handler: @escaping Handler
  ) -> Routes {
    var copy = self
    copy.routes.insert(
      Route(
        pattern: RoutePattern(pattern), methods: methods, requestBody: requestBody, handler: handler),
      at: 0)
    return copy
  }

  func match(method: String, path: String) -> RouteMatch {
    let segments = RoutePattern.segments(of: path)
    var allowed: [String] = []
    for route in routes {
      guard let parameters = route.pattern.match(segments) else { continue }
      guard let methods = route.methods else { return .route(route, parameters) }
      if methods.contains(method) || (method == "HEAD" && methods.contains("GET")) {
        return .route(route, parameters)
      }
      allowed += methods.filter { !allowed.contains($0) }
    }
    guard !allowed.isEmpty else { return .notFound }
    if allowed.contains("GET"), !allowed.contains("HEAD") { allowed.append("HEAD") }
    if !allowed.contains("OPTIONS") { allowed.append("OPTIONS") }
    return method == "OPTIONS" ? .options(allowed) : .methodNotAllowed(allowed)
  }
}

/// One pattern and what answers it.
struct Route: Sendable {
  let pattern: RoutePattern
  let methods: [String]?
  let requestBody: Reply.RequestBody
  let handler: Routes.Handler
}

/// What the routes know about a method and a path.
enum RouteMatch: Sendable {
  case route(Route, [String])
  case options([String])
  case methodNotAllowed([String])
  case notFound

  var requestBody: Reply.RequestBody {
    switch self {
    case .route(let route, _): route.requestBody
    case .options, .methodNotAllowed, .notFound: .counted
    }
  }

  func reply(to request: RecordedRequest) -> Reply {
    switch self {
    case .route(let route, let parameters):
      return route.handler(request, parameters)
    case .options(let allowed):
      return Reply.ok.with(header: "Allow", value: allowed.joined(separator: ", "))
    case .methodNotAllowed(let allowed):
      let document = JSONValue.object([
        ("error", .string("method not allowed")), ("method", .string(request.method)),
      ])
      return .json(document, status: 405).with(header: "Allow", value: allowed.joined(separator: ", "))
    case .notFound:
      return .json(
        .object([("error", .string("not found")), ("path", .string(request.path))]), status: 404)
    }
  }
}
