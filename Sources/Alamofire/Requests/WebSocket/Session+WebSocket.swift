import Foundation
import HTTPWire

extension Session {
  /// Makes a request that opens a WebSocket connection.
  ///
  /// ```swift
  /// let socket = session.webSocketRequest(to: "wss://example.com/prices", configuration: .pingInterval(30))
  /// socket.streamDecodable(Price.self) { price in print(price) }
  /// ```
  ///
  /// - Parameters:
  ///   - convertible: The URL with the scheme `ws`, `wss`, `http` or `https`.
  ///   - configuration: The parameters of the connection.
  ///   - headers: Header fields; they override those of the session.
  ///   - interceptor: Adapts and retries this request, after the session's.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` for the session's setting.
  ///   - requestModifier: Changes the request when it has been made.
  public func webSocketRequest(
    to convertible: any URLConvertible, configuration: WebSocketRequest.Configuration = .default,
    headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, requestModifier: RequestModifier? = nil
  ) -> WebSocketRequest {
    let description = RequestDescription(
      url: convertible, method: .get, headers: headers, modifier: requestModifier)
    return webSocket(
      description, runsUserCode: description.runsUserCode, configuration, interceptor,
      shouldAutomaticallyResume)
  }

  /// Makes a request that opens a WebSocket connection, with parameters in the query of its URL.
  ///
  /// - Parameters:
  ///   - convertible: The URL with the scheme `ws`, `wss`, `http` or `https`.
  ///   - configuration: The parameters of the connection.
  ///   - parameters: The value for the query. Default: none.
  ///   - encoder: Default: ``URLEncodedFormParameterEncoder/default``.
  ///   - headers: Header fields; they override those of the session.
  ///   - interceptor: Adapts and retries this request, after the session's.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` for the session's setting.
  ///   - requestModifier: Changes the request before the parameters are encoded.
  public func webSocketRequest<Parameters: Encodable & Sendable>(
    to convertible: any URLConvertible, configuration: WebSocketRequest.Configuration = .default,
    parameters: Parameters? = nil,
    encoder: any ParameterEncoder = URLEncodedFormParameterEncoder.default,
    headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, requestModifier: RequestModifier? = nil
  ) -> WebSocketRequest {
    var description = RequestDescription(
      url: convertible, method: .get, headers: headers, modifier: requestModifier)
    if let parameters { description.encode = { try encoder.encode(parameters, into: $0) } }
    return webSocket(
      description, runsUserCode: description.runsUserCode, configuration, interceptor,
      shouldAutomaticallyResume)
  }

  /// Makes a request that opens a WebSocket connection from a `URLRequest` or a value that becomes one.
  ///
  /// - Parameters:
  ///   - convertible: Makes the `URLRequest`, again for each retry. Its method has to be GET.
  ///   - configuration: The parameters of the connection.
  ///   - interceptor: Adapts and retries this request, after the session's.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` for the session's setting.
  public func webSocketRequest(
    performing convertible: any URLRequestConvertible,
    configuration: WebSocketRequest.Configuration = .default,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil
  ) -> WebSocketRequest {
    webSocket(
      convertible, runsUserCode: !(convertible is URLRequest), configuration, interceptor,
      shouldAutomaticallyResume)
  }

  private func webSocket(
    _ convertible: any URLRequestConvertible, runsUserCode: Bool,
    _ configuration: WebSocketRequest.Configuration, _ interceptor: (any RequestInterceptor)?,
    _ shouldAutomaticallyResume: Bool?
  ) -> WebSocketRequest {
    let names = configuration.protocol.map { WebSocketClientHandshake.subprotocols(in: $0) } ?? []
    let flow = WebSocketFlow(configuration.channelOptions, subprotocols: names)
    let request = WebSocketRequest(
      core: RequestCore(
        session: core, convertible: convertible, convertsByUserCode: runsUserCode, kind: .webSocket(flow),
        interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume),
      flow: flow, configuration: configuration)
    request.core.setUp(request, requestSetup)
    return request
  }
}
