import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// Who serves one hop of a request.
enum HopHandler: Sendable {
  /// The session's engine: http and https.
  case engine
  /// Ourselves: `file:` and `data:`.
  case local
  /// A `URLProtocol` class of the user.
  case userProtocol(ProtocolTransport)

  /// Who serves a URL of this scheme when no class of the user does; `nil` is nobody.
  init?(scheme: String) {
    switch scheme {
    case "http", "https": self = .engine
    case "file", "data": self = .local
    default: return nil
    }
  }

  func transport(of session: SessionCore) -> any Transport {
    switch self {
    case .engine: session.transport
    case .local: LocalTransport()
    case .userProtocol(let transport): transport
    }
  }

  /// Whether anything goes over the network that can be measured.
  var isEngine: Bool {
    switch self {
    case .engine: true
    case .local, .userProtocol: false
    }
  }

  /// The response and the error that a class of the user has given, as they are.
  var given: ProtocolTransport.Given? {
    switch self {
    case .engine, .local: nil
    case .userProtocol(let transport): transport.given
    }
  }
}

extension Pipeline {
  /// Stage 2, before each hop: finds out who serves it. The user's `URLProtocol` classes are asked in their
  /// order, once, when there are any.
  nonisolated(nonsending) func chooseHandler(for journey: Journey) async throws(AFError) {
    let classes = core.session.settings.protocolClasses
    try journey.checkScheme()
    guard !classes.isEmpty else { return }
    let request = journey.foundationRequest()
    let taker = await offLoop { classes.first { $0.canInit(with: request) } }
    if let taker {
      journey.hopHandler = .userProtocol(
        ProtocolTransport(taker, request: request, credential: core.state.withLock { $0.extras.credential }))
      return
    }
    guard let hopHandler = HopHandler(scheme: journey.request.origin.scheme) else {
      throw .sessionTaskFailed(error: URLError.unsupported(scheme: journey.request.url))
    }
    journey.hopHandler = hopHandler
  }
}

extension Journey {
  /// Whether the hop must go through ``Pipeline/chooseHandler(for:)``.
  var mustChooseHandler: Bool {
    !core.session.settings.protocolClasses.isEmpty || request.profile.options.allowedSchemes != nil
  }

  func checkScheme() throws(AFError) {
    let scheme = request.origin.scheme
    guard let allowed = request.profile.options.allowedSchemes, !allowed.contains(scheme) else { return }
    throw .sessionTaskFailed(
      error: URLError.made(
        .unsupportedURL,
        "TransportOptions.allowedSchemes does not allow URLs with \(scheme):; add it if that is in order.",
        url: request.url))
  }

  /// The hop as a class of the user sees it: with the session's fields, and its body as data or as a stream.
  func foundationRequest() -> URLRequest {
    var made = urlRequest
    if redirects > 0 { made.url = URL(string: request.url) }
    made.httpMethod = request.method
    var fields: [String: String] = [:]
    for field in request.fields where fields.updateValue(field.value, forKey: field.name) != nil {}
    made.allHTTPHeaderFields = fields
    switch request.body {
    case .none:
      made.httpBody = nil
      made.httpBodyStream = nil
    case .bytes(let data): made.httpBody = data
    case .source:
      switch core.state.withLock({ $0.extras.uploadable }) {
      case .file(let url, _): made.httpBodyStream = InputStream(url: url)
      case .stream(let stream): made.httpBodyStream = stream
      case .data, nil: break
      }
    }
    return made
  }
}
