import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

extension WireRequest {
  /// Makes what goes over the wire of a user's request and its session: their header fields merged, the
  /// timeouts of whichever is more specific. Nothing is sent if a part of it cannot be sent safely.
  convenience init(_ request: URLRequest, for core: RequestCore) throws(AFError) {
    let session = core.session
    guard let url = request.url else { throw .sessionTaskFailed(error: URLError.noURL) }
    let method = request.httpMethod ?? "GET"
    let text = url.absoluteString
    let target = WireTarget(text) ?? core.webSocket.flatMap { _ in WireTarget(WebSocketURL.http(text)) }
    guard let origin = target?.origin ?? Self.otherOrigin(url, for: session) else {
      throw .sessionTaskFailed(error: URLError.unsupported(url))
    }
    if let target, let user = target.user {
      core.useCredentialOfURL(user: user, password: target.password ?? "")
    }
    let own = request.allHTTPHeaderFields
    let fields = session.settings.fields(adding: own)
    if let violation = session.settings.violation(method: method, own: own, all: fields) {
      throw .sessionTaskFailed(error: URLError.made(.badURL, violation.message, url: text))
    }
    let body = try Self.body(of: request, own: own, for: core)
    let sink = core.keepingChallenges(try core.download?.sink() ?? core.stream) ?? core.observedBody
    let (profile, priority) = core.profileAndPriority
    self.init(url: target?.url ?? text, origin: origin, profile: profile) { parts in
      parts.method = method
      parts.fields = fields
      parts.body = body
      parts.sink = sink
      parts.priority = priority
      parts.idleTimeout = session.settings.idleTimeout(of: request, profile)
      parts.deadline = session.settings.deadline(profile)
      parts.wireObserver = core.wireObserver(profile)
    }
  }

  /// Returns the origin of a URL that the engine does not serve; `nil` if no other handler can serve it either.
  @inline(never)
  private static func otherOrigin(_ url: URL, for session: SessionCore) -> Origin? {
    guard let scheme = url.scheme?.lowercased(), scheme != "http", scheme != "https",
      HopHandler(scheme: scheme) != nil || !session.settings.protocolClasses.isEmpty
    else { return nil }
    return Origin(scheme: scheme, host: url.host ?? "", port: url.port)
  }

  private static func body(
    of request: URLRequest, own: [String: String]?, for core: RequestCore
  ) throws(AFError) -> RequestBody {
    // Nothing is sent if the outcome is in the journal.
    if core.transfer?.completed != nil { return .none }
    if let resumer = core.resumer {
      do throws(TransportFailure) {
        if let content = try resumer.content() { return content }
      } catch {
        throw AFError(error, url: request.url?.absoluteString ?? "")
      }
    }
    switch core.body == nil ? nil : core.state.withLock({ $0.extras.uploadable }) {
    case .data(let data): return .bytes(data)
    case .file(let url, _): return .source(core.journalled(try fileSource(url)))
    case .stream(let stream): return .source(core.source(of: stream, length: contentLength(own)))
    case nil: break
    }
    if let data = request.httpBody { return .bytes(data) }
    guard let stream = request.httpBodyStream else { return .none }
    return .source(core.source(of: stream, length: contentLength(own)))
  }

  private static func fileSource(_ url: URL) throws(AFError) -> any BodySource {
    guard url.isFileURL else {
      throw .sessionTaskFailed(
        error: URLError.made(
          .badURL, "\(url.shownText) is no file: URL; only files can be uploaded by URL.",
          url: url.absoluteString))
    }
    do throws(TransportFailure) {
      return try BodyFiles.source(path: url.path)
    } catch {
      throw AFError(error, url: url.absoluteString)
    }
  }

  /// Returns the length that the user announces for a stream; −1 without one.
  static func contentLength(_ fields: [String: String]?) -> Int64 {
    guard let text = fields?.first(where: { FieldName.equal($0.key, "Content-Length") })?.value,
      text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let length = Int64(text)
    else { return -1 }
    return length
  }

  /// Returns the request that follows a redirect.
  func following(_ plan: RedirectPlan) -> WireRequest {
    redirected { parts in
      // User and password in `Location` are dropped.
      parts.url = WireTarget(plan.url)?.url ?? plan.url
      parts.origin = plan.origin
      parts.method = plan.method
      parts.fields = plan.fields(from: fields)
      if !plan.resendsBody { parts.body = .none }
    }
  }

  /// Returns the request with further fields, whose response body is collected in memory.
  func collecting(adding conditions: [HTTPHeader]) -> WireRequest {
    changing { parts in
      parts.fields += conditions
      parts.sink = nil
    }
  }
}
