import Foundation
public import HTTPWire

extension Session {
  /// Makes a request from a URL, an encodable value and an encoder for it, whose response is handed out as it comes.
  ///
  /// Nothing is thrown: whatever is wrong with the arguments arrives in the completions of the handlers.
  ///
  /// - Parameters:
  ///   - convertible: The URL; strings are parsed when the request is made.
  ///   - method: Default: `GET`.
  ///   - parameters: What is encoded into the query or the body. Default: nothing.
  ///   - encoder: How. Default: ``URLEncodedFormParameterEncoder/default``.
  ///   - headers: Header fields; they win over those of the session.
  ///   - automaticallyCancelOnStreamError: Whether a piece that a serializer refuses cancels the request.
  ///   - interceptor: Adapts and retries this request, after the session's.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` asks the session.
  ///   - requestModifier: Changes the request before the parameters are encoded.
  public func streamRequest<Parameters: Encodable & Sendable>(
    _ convertible: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoder: any ParameterEncoder = URLEncodedFormParameterEncoder.default, headers: HTTPHeaders? = nil,
    automaticallyCancelOnStreamError: Bool = false, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, requestModifier: RequestModifier? = nil
  ) -> DataStreamRequest {
    var description = RequestDescription(
      url: convertible, method: method, headers: headers, modifier: requestModifier)
    if let parameters { description.encode = { try encoder.encode(parameters, into: $0) } }
    return stream(
      description, runsUserCode: description.runsUserCode, automaticallyCancelOnStreamError, interceptor,
      shouldAutomaticallyResume)
  }

  /// Makes a request from a URL, whose response is handed out as it comes.
  ///
  /// - Parameters:
  ///   - convertible: The URL; strings are parsed when the request is made.
  ///   - method: Default: `GET`.
  ///   - headers: Header fields; they win over those of the session.
  ///   - automaticallyCancelOnStreamError: Whether a piece that a serializer refuses cancels the request.
  ///   - interceptor: Adapts and retries this request, after the session's.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` asks the session.
  ///   - requestModifier: Changes the request when it has been made.
  public func streamRequest(
    _ convertible: any URLConvertible, method: HTTPMethod = .get, headers: HTTPHeaders? = nil,
    automaticallyCancelOnStreamError: Bool = false, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, requestModifier: RequestModifier? = nil
  ) -> DataStreamRequest {
    let description = RequestDescription(
      url: convertible, method: method, headers: headers, modifier: requestModifier)
    return stream(
      description, runsUserCode: description.runsUserCode, automaticallyCancelOnStreamError, interceptor,
      shouldAutomaticallyResume)
  }

  /// Makes a request from a `URLRequest` or anything that becomes one, whose response is handed out as it comes.
  ///
  /// - Parameters:
  ///   - convertible: Asked for its request when it is made, and again for each retry.
  ///   - automaticallyCancelOnStreamError: Whether a piece that a serializer refuses cancels the request.
  ///   - interceptor: Adapts and retries this request, after the session's.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` asks the session.
  public func streamRequest(
    _ convertible: any URLRequestConvertible, automaticallyCancelOnStreamError: Bool = false,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil
  ) -> DataStreamRequest {
    stream(
      convertible, runsUserCode: !(convertible is URLRequest), automaticallyCancelOnStreamError, interceptor,
      shouldAutomaticallyResume)
  }

  private func stream(
    _ convertible: any URLRequestConvertible, runsUserCode: Bool, _ cancelsOnStreamError: Bool,
    _ interceptor: (any RequestInterceptor)?, _ shouldAutomaticallyResume: Bool?
  ) -> DataStreamRequest {
    let flow = StreamFlow(executor: core.executor)
    let request = DataStreamRequest(
      core: RequestCore(
        session: core, convertible: convertible, convertsByUserCode: runsUserCode, stream: flow,
        interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume),
      flow: flow, automaticallyCancelOnStreamError: cancelsOnStreamError)
    if requestSetup == .eager { request.core.setUp(request) }
    return request
  }
}
