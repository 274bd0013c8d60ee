import Foundation
import HTTPWire

/// A request whose response goes to readers, chunk by chunk or event by event.
final class StreamKind: RequestKind {
  let flow: StreamFlow
  /// The source of server-sent events; `nil` for any other stream.
  let eventSource: EventSource?

  init(flow: StreamFlow, eventSource: EventSource? = nil) {
    self.flow = flow
    self.eventSource = eventSource
  }

  var traits: KindTraits { [.hasReaders, .passesBodyOn] }

  func acceptResult(of attempt: Attempt) throws(AFError) -> Outcome<Attempt> {
    flow.complete()
    return .done
  }

  // MARK: The hops

  func sink(method: String, fields: [HTTPHeader], profile: ConnectionProfile) -> (any BodySink)? {
    flow
  }

  // Permanent redirects of an event source hold for its next connections.
  func redirectedURL(of url: String) -> String? { eventSource?.target(of: url) }

  func redirected(by plan: RedirectPlan, from method: String, status: Int) {
    eventSource?.redirected(by: plan, from: method, status: status)
  }

  func count(after exchange: Exchange) -> ResultCount {
    ResultCount(received: exchange.transfer?.decodedBodyBytes ?? 0)
  }

  // MARK: The end

  var lastValidator: Validator? {
    eventSource.map { source in .custom { _, _, _ in source.validationOfEnd } }
  }

  func readersSettled(_ proceed: @escaping @Sendable () -> Void) -> Bool { flow.settled(proceed) }

  func readersLeave() { flow.readersLeave() }

  // The chunks of any other stream are delivered nevertheless, as upstream does.
  func endDelivery() {
    if eventSource != nil { flow.endDelivery() }
  }

  func beginAgain(because cause: RequestCore.RetryCause) {
    guard cause == .demand else { return }
    eventSource?.beginAgain()
    flow.beginAgain()
  }

  // The end of a connection is not the outcome of an event source that its owner has cancelled.
  func finalError(of core: RequestCore) -> AFError? {
    eventSource != nil && core.isCancelled ? .explicitlyCancelled : nil
  }
}

/// A WebSocket connection. It is the last hop, and has the result of a response without a body.
final class WebSocketKind: RequestKind {
  let flow: WebSocketFlow

  init(flow: WebSocketFlow) { self.flow = flow }

  var traits: KindTraits { [.validatesEarly, .needsEngine] }

  func engineURL(of url: String) -> String { WebSocketURL.http(url) }

  func shownURL(of url: String) -> String { WebSocketURL.webSocket(url) }

  func callerScheme(for scheme: String) -> String { scheme == "https" ? "wss" : "ws" }

  func handler(of request: WireRequest, in services: Services) throws(AFError) -> HopHandler? {
    guard ["http", "https"].contains(request.scheme) else {
      throw .sessionTaskFailed(
        error: URLError(
          .unsupportedURL, "The URL of a WebSocket request has the scheme ws, wss, http or https.",
          url: request.url))
    }
    guard request.method == "GET", !request.body.isPresent else {
      throw .sessionTaskFailed(
        error: URLError(
          .badURL,
          "A WebSocket handshake is a GET request without a body (RFC 6455 §4.1). Use the method GET.",
          url: request.url))
    }
    guard let transport = flow.transport(of: services, from: request.origin) else {
      throw .sessionTaskFailed(
        error: URLError(
          .unsupportedURL, "The transport of this session has no WebSocket connections.", url: request.url))
    }
    return .webSocket(transport)
  }

  // The only valid result is a connection.
  func refusal(of response: WireResponse, to url: String) -> AFError? {
    guard response.head.status != 101 else { return nil }
    let error = WebSocketHandshakeError.status(
      response.head.status,
      supportedVersions: response.head.block.values(of: "Sec-WebSocket-Version").first)
    let excerpt = response.body.map { BodyExcerpt.sentence($0) } ?? ""
    return .sessionTaskFailed(error: URLError(.badServerResponse, error.message + excerpt, url: url))
  }

  func endDelivery() { flow.endDelivery() }

  func settle(_ core: RequestCore, isLate: Bool) {
    flow.end(with: core.error)
  }

  func beginAgain(because cause: RequestCore.RetryCause) {
    if cause == .demand { flow.beginAgain() }
  }
}
