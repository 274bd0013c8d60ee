import Foundation
import HTTPWire

// How the factories make their requests.
extension Session {
  func webSocket(
    _ convertible: any URLRequestConvertible, runsUserCode: Bool,
    _ configuration: WebSocketRequest.Configuration, _ interceptor: (any RequestInterceptor)?,
    _ shouldAutomaticallyResume: Bool?
  ) -> WebSocketRequest {
    let names = configuration.protocol.map { WebSocketClientHandshake.subprotocols(in: $0) } ?? []
    let flow = WebSocketFlow(configuration.channelOptions, subprotocols: names)
    let request = WebSocketRequest(
      core: RequestCore(
        session: core, convertible: convertible, convertsByUserCode: runsUserCode,
        kind: WebSocketKind(flow: flow),
        interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume),
      flow: flow, configuration: configuration)
    request.core.setUp(request, requestSetup)
    return request
  }
}
