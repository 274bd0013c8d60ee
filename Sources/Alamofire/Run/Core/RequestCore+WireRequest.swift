import Foundation
import FoundationNetworking
import HTTPWire

extension RequestCore {
  /// Makes what goes over the wire of a user's request and its session: their header fields merged, the
  /// timeouts of whichever is more specific.
  ///
  /// Remembers the credential of the URL, and begins the file of a download.
  ///
  /// - Parameters:
  ///   - violation: Receives the fault of the method or a field. It is an error if the engine has to send them.
  ///   - wireObserver: Returns the observer of the bytes of the attempt; `nil` without any.
  func makeWireRequest(
    of request: URLRequest, _ violation: inout HeaderFieldRules.Violation?,
    wireObserver: (ConnectionProfile) -> (any WireObserver)?
  ) throws(AFError) -> WireRequest {
    guard let url = request.url else { throw .sessionTaskFailed(error: URLError.noURL) }
    let method = request.httpMethod ?? "GET"
    let text = url.absoluteString
    let target = WireTarget(kind.engineURL(of: text))
    guard let origin = target?.origin ?? otherOrigin(url) else {
      throw .sessionTaskFailed(error: URLError.unsupported(url))
    }
    let own = request.allHTTPHeaderFields
    let (profile, priority) = beginOptions(at: origin, target.flatMap { CredentialOfURL($0) })
    let fields = session.settings.fields(adding: own, repeated: profile.options.repeatedHeaders)
    violation = session.settings.violation(method: method, own: own, all: fields)
    let body = try body(of: request, own: own)
    let sink =
      keepingChallenges(try kind.sink(method: method, fields: fields, profile: profile)) ?? observedBody
    // At once, because a variable would be copied.
    return WireRequest(
      WireRequest.Parts(
        url: target?.url ?? text, origin: origin, method: method, fields: fields, body: body,
        trailers: kind.trailers, sink: sink, idleTimeout: session.settings.idleTimeout(of: request, profile),
        deadline: session.settings.deadline(profile), priority: priority, profile: profile,
        wireObserver: wireObserver(profile)))
  }

  /// Returns the origin of a URL that the engine does not serve; `nil` if no other handler can serve it either.
  @inline(never)
  private func otherOrigin(_ url: URL) -> Origin? {
    guard let scheme = url.scheme?.lowercased(), scheme != "http", scheme != "https",
      HopHandler(scheme: scheme) != nil || !session.settings.protocolClasses.isEmpty
    else { return nil }
    return Origin(scheme: scheme, host: url.host ?? "", port: url.port)
  }

  private func body(of request: URLRequest, own: [String: String]?) throws(AFError) -> RequestBody {
    if let content = try kind.content(for: request, of: self) { return content }
    if let data = request.httpBody { return .bytes(data) }
    guard let stream = request.httpBodyStream else { return .none }
    return .source(source(of: stream, length: WireRequest.contentLength(own)))
  }
}

/// The bodies that all attempts of a request share. Most requests have none.
struct SharedBodies: RareValue {
  static let unchanged = Rare<SharedBodies>.Memory()

  /// The chunk readers of a data request.
  var chunks: ResponseChunks?
  /// The source that sends the body, if it is a stream.
  var streamSource: InputStreamSource?
}

extension RequestCore {
  /// Returns the source of a stream. All attempts share it, because the bytes that an earlier one has consumed cannot
  /// be sent again, and the rest alone must not be sent.
  func source(of stream: InputStream, length: Int64) -> InputStreamSource {
    let (source, _) = state.withLock { state in
      if let source = state.bodies.value.streamSource, source.stream === stream {
        return (source, nil as InputStreamSource?)
      }
      let source = InputStreamSource(stream, length: length)
      return (source, replace(&state.bodies.value.streamSource, with: source))
    }
    return source
  }
}
