/// The handlers that answer requests when no reply is enqueued.
///
/// ```swift
/// let routes = Routes.standard.adding("/people/{id}", methods: ["GET"]) { request, parameters in
///   .json("{\"id\": \"\(parameters[0])\"}")
/// }
/// let server = try HTTPTestServer(routes: routes)
/// ```
///
/// HEAD is answered like GET, without the body. OPTIONS gets a response with `Allow` and without a body. A method that
/// is missing for the path gets 405 with `Allow`, and a path without a route 404; both have a JSON document.
public struct Routes: Sendable {
  /// Answers one request. `parameters` are the decoded values of the `{…}` of the pattern, in their order.
  /// Called on the thread of the connection; ``HTTPTestServer/stop()`` waits for its end.
  public typealias Handler = @Sendable (_ request: RecordedRequest, _ parameters: [String]) -> Reply

  private var routes: [Route] = []
  /// The endpoints for uploads, which precede the routes.
  var uploads: [UploadRoute] = []

  /// No routes: every request without an enqueued reply gets a 404.
  public static let none = Routes()

  /// The routes of httpbin that tests of clients use, with the same keys in their JSON documents.
  ///
  /// | routes | answer |
  /// |---|---|
  /// | `/get` `/post` `/put` `/patch` `/delete` `/anything` | what was sent: `args`, `headers`, `url`, … |
  /// | `/headers` `/ip` `/user-agent` `/cookies` | one part of that |
  /// | `/echo` | the body, with its type |
  /// | `/upload-sink` | `{"received": n}`; the body is counted, not kept |
  /// | `/status/{n}` | that status |
  /// | `/bytes/{n}` `/stream-bytes/{n}` | ``Reply/patternByte(at:)``, with a length or in chunks |
  /// | `/stream/{n}` | so many JSON documents, a line each, in chunks |
  /// | `/delay/{s}` `/drip?numbytes=&duration=&delay=&code=` | late, or slowly; fractions of seconds count |
  /// | `/redirect/{n}` `/relative-redirect/{n}` `/absolute-redirect/{n}` | so many redirects to `/get` |
  /// | `/redirect-to?url=&status_code=` | a redirect to there |
  /// | `/basic-auth/{user}/{password}` `/hidden-basic-auth/{user}/{password}` `/bearer` | needs credentials |
  /// | `/digest-auth/{qop}/{user}/{password}`, `…/{algorithm}` | needs Digest credentials |
  /// | `/json` `/html` `/xml` `/encoding/utf8` `/image/png` `/uuid` | a document |
  /// | `/gzip` `/deflate` | a document in that content coding |
  /// | `/cookies/set?name=value` `/cookies/delete?name` | cookies, and a redirect to `/cookies` |
  /// | `/response-headers?name=value` | those header fields |
  /// | `/etag/{tag}` `/cache` `/cache/{s}` | conditional requests, freshness |
  /// | `/range/{n}` | the alphabet over and over, in ranges |
  public static let standard = Routes.none
    .inspection.dynamic.redirects.authentication.digest.formats.caching.cookies

  init() {}

  /// Returns a copy with one more route, which precedes the existing ones.
  ///
  /// `pattern` is a path in which `{name}` matches one segment and a final `**` any rest, also none. `methods` are
  /// the methods of the route; `nil`, the default, matches all. `requestBody` is the handling of the request body
  /// before the handler is called; with `afterReply` and `ignored` the handler gets an empty body.
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

/// A pattern and its handler.
struct Route: Sendable {
  let pattern: RoutePattern
  let methods: [String]?
  let requestBody: Reply.RequestBody
  let handler: Routes.Handler
}

/// The route for a method and a path, or the reason why there is none.
enum RouteMatch: Sendable {
  case route(Route, [String])
  case options([String])
  case methodNotAllowed([String])
  case notFound

  var requestBody: Reply.RequestBody {
    switch self {
    case .route(let route, _): route.requestBody
    case .options, .methodNotAllowed, .notFound: .recorded
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

/// A path with placeholders for values, such as `/basic-auth/{user}/{password}`.
struct RoutePattern: Sendable, Equatable {
  private enum Segment: Sendable, Equatable {
    case text(String)
    case parameter
  }

  private let segments: [Segment]
  private let takesRest: Bool

  init(_ pattern: String) {
    var parts = Self.segments(of: pattern)
    takesRest = parts.last == "**"
    if takesRest { parts.removeLast() }
    segments = parts.map { $0.hasPrefix("{") && $0.hasSuffix("}") ? .parameter : .text($0) }
  }

  /// Returns the decoded segments of a path, without empty ones at both ends.
  static func segments(of path: String) -> [String] {
    var parts = path.split(separator: "/", omittingEmptySubsequences: false)[...]
    if parts.first?.isEmpty == true { parts = parts.dropFirst() }
    if parts.last?.isEmpty == true { parts = parts.dropLast() }
    return parts.map { PercentCoding.decode($0, plusIsSpace: false) }
  }

  /// Returns the values of the parameters, or `nil` when the path does not match.
  func match(_ path: [String]) -> [String]? {
    guard takesRest ? path.count >= segments.count : path.count == segments.count else { return nil }
    var parameters: [String] = []
    for (segment, part) in zip(segments, path) {
      switch segment {
      case .text(let text): if text != part { return nil }
      case .parameter: parameters.append(part)
      }
    }
    return parameters
  }
}
