import Foundation
import FoundationNetworking
import HTTPWire

extension Session {
  /// Makes a request for server-sent events from a URL.
  ///
  /// ```swift
  /// AF.eventSourceRequest("https://example.com/prices").responseEvents { stream in
  ///   if case .stream(.success(let event)) = stream.event { print(event.data) }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - convertible: The URL; strings are parsed when the request is made.
  ///   - method: Default: `GET`. With a method that is not safe, the request connects once.
  ///   - headers: Header fields; they take precedence over those of the session.
  ///   - configuration: Delays and limits. Default: those of the standard.
  ///   - interceptor: Adapts each connection and is asked when one ends, after the session's. Default: none.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` for the session's setting.
  ///   - requestModifier: Changes the `URLRequest` of each connection. Default: none.
  public func eventSourceRequest(
    _ convertible: any URLConvertible, method: HTTPMethod = .get, headers: HTTPHeaders? = nil,
    configuration: EventSourceRequest.Configuration = .init(), interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, requestModifier: RequestModifier? = nil
  ) -> EventSourceRequest {
    let description = RequestDescription(
      url: convertible, method: method, headers: headers, modifier: requestModifier)
    return eventSource(
      description, runsUserCode: description.runsUserCode, configuration, interceptor,
      shouldAutomaticallyResume)
  }

  /// Makes a request for server-sent events from a `URLRequest` or a value that becomes one.
  ///
  /// - Parameters:
  ///   - convertible: Makes the `URLRequest`, again for each connection.
  ///   - configuration: Delays and limits. Default: those of the standard.
  ///   - interceptor: Adapts each connection and is asked when one ends, after the session's. Default: none.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` for the session's setting.
  public func eventSourceRequest(
    _ convertible: any URLRequestConvertible, configuration: EventSourceRequest.Configuration = .init(),
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil
  ) -> EventSourceRequest {
    eventSource(
      convertible, runsUserCode: !(convertible is URLRequest), configuration, interceptor,
      shouldAutomaticallyResume)
  }

  private func eventSource(
    _ convertible: any URLRequestConvertible, runsUserCode: Bool,
    _ configuration: EventSourceRequest.Configuration, _ interceptor: (any RequestInterceptor)?,
    _ shouldAutomaticallyResume: Bool?
  ) -> EventSourceRequest {
    let source = EventSource(configuration)
    let flow = StreamFlow(executor: core.executor, eventSource: source)
    let own = EventSourceInterceptor(source: source)
    let request = EventSourceRequest(
      core: RequestCore(
        session: core, convertible: convertible, convertsByUserCode: runsUserCode,
        kind: StreamKind(flow: flow),
        interceptor: interceptor.map { Interceptor(interceptors: [$0, own]) } ?? own,
        shouldAutomaticallyResume: shouldAutomaticallyResume),
      flow: flow, source: source)
    request.core.state.withLock { state in
      state.handlers.add(.custom { _, response, _ in source.validation(response) })
      state.extras.forgetsEarlierAttempts = true
    }
    request.core.setUp(request, requestSetup)
    return request
  }
}
