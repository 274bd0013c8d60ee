import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

/// A subclass of the session that overrides upstream's designated initializer and every method. It inherits the other
/// initializers.
class FullSession: Session, @unchecked Sendable {
  override init(
    session: URLSession, delegate: SessionDelegate, rootQueue: DispatchQueue,
    startRequestsImmediately: Bool = true, requestSetup: RequestSetup = .lazy,
    requestQueue: DispatchQueue? = nil, serializationQueue: DispatchQueue? = nil,
    interceptor: (any RequestInterceptor)? = nil, serverTrustManager: ServerTrustManager? = nil,
    redirectHandler: (any RedirectHandler)? = nil, cachedResponseHandler: (any CachedResponseHandler)? = nil,
    eventMonitors: [any EventMonitor] = [AlamofireNotifications()]
  ) {
    super.init(
      session: session, delegate: delegate, rootQueue: rootQueue,
      startRequestsImmediately: startRequestsImmediately, requestSetup: requestSetup,
      requestQueue: requestQueue, serializationQueue: serializationQueue, interceptor: interceptor,
      serverTrustManager: serverTrustManager, redirectHandler: redirectHandler,
      cachedResponseHandler: cachedResponseHandler, eventMonitors: eventMonitors)
  }

  override func request(
    _ convertible: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
    requestModifier: RequestModifier? = nil
  ) -> DataRequest {
    super.request(
      convertible, method: method, parameters: parameters, encoding: encoding, headers: headers,
      interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume,
      requestModifier: requestModifier)
  }

  override func request<Parameters: Encodable & Sendable>(
    _ convertible: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoder: any ParameterEncoder = URLEncodedFormParameterEncoder.default, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
    requestModifier: RequestModifier? = nil
  ) -> DataRequest {
    super.request(
      convertible, method: method, parameters: parameters, encoder: encoder, headers: headers,
      interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume,
      requestModifier: requestModifier)
  }

  override func request(
    _ convertible: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil
  ) -> DataRequest {
    super.request(
      convertible, interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume)
  }

  // MARK: Streams

  override func streamRequest<Parameters: Encodable & Sendable>(
    _ convertible: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoder: any ParameterEncoder = URLEncodedFormParameterEncoder.default, headers: HTTPHeaders? = nil,
    automaticallyCancelOnStreamError: Bool = false, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, requestModifier: RequestModifier? = nil
  ) -> DataStreamRequest {
    super.streamRequest(
      convertible, method: method, parameters: parameters, encoder: encoder, headers: headers,
      automaticallyCancelOnStreamError: automaticallyCancelOnStreamError, interceptor: interceptor,
      shouldAutomaticallyResume: shouldAutomaticallyResume, requestModifier: requestModifier)
  }

  override func streamRequest(
    _ convertible: any URLConvertible, method: HTTPMethod = .get, headers: HTTPHeaders? = nil,
    automaticallyCancelOnStreamError: Bool = false, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, requestModifier: RequestModifier? = nil
  ) -> DataStreamRequest {
    super.streamRequest(
      convertible, method: method, headers: headers,
      automaticallyCancelOnStreamError: automaticallyCancelOnStreamError, interceptor: interceptor,
      shouldAutomaticallyResume: shouldAutomaticallyResume, requestModifier: requestModifier)
  }

  override func streamRequest(
    _ convertible: any URLRequestConvertible, automaticallyCancelOnStreamError: Bool = false,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil
  ) -> DataStreamRequest {
    super.streamRequest(
      convertible, automaticallyCancelOnStreamError: automaticallyCancelOnStreamError,
      interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume)
  }

  override func webSocketRequest(
    to url: any URLConvertible, configuration: WebSocketRequest.Configuration = .default,
    headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, requestModifier: RequestModifier? = nil
  ) -> WebSocketRequest {
    super.webSocketRequest(
      to: url, configuration: configuration, headers: headers, interceptor: interceptor,
      shouldAutomaticallyResume: shouldAutomaticallyResume, requestModifier: requestModifier)
  }

  override func webSocketRequest<Parameters: Encodable & Sendable>(
    to url: any URLConvertible, configuration: WebSocketRequest.Configuration = .default,
    parameters: Parameters? = nil, encoder: any ParameterEncoder = URLEncodedFormParameterEncoder.default,
    headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, requestModifier: RequestModifier? = nil
  ) -> WebSocketRequest {
    super.webSocketRequest(
      to: url, configuration: configuration, parameters: parameters, encoder: encoder, headers: headers,
      interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume,
      requestModifier: requestModifier)
  }

  override func webSocketRequest(
    performing convertible: any URLRequestConvertible,
    configuration: WebSocketRequest.Configuration = .default,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil
  ) -> WebSocketRequest {
    super.webSocketRequest(
      performing: convertible, configuration: configuration, interceptor: interceptor,
      shouldAutomaticallyResume: shouldAutomaticallyResume)
  }

  // MARK: Downloads

  override func download(
    _ convertible: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
    requestModifier: RequestModifier? = nil, to destination: DownloadRequest.Destination? = nil
  ) -> DownloadRequest {
    super.download(
      convertible, method: method, parameters: parameters, encoding: encoding, headers: headers,
      interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume,
      requestModifier: requestModifier, to: destination)
  }

  override func download<Parameters: Encodable & Sendable>(
    _ convertible: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoder: any ParameterEncoder = URLEncodedFormParameterEncoder.default, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
    requestModifier: RequestModifier? = nil, to destination: DownloadRequest.Destination? = nil
  ) -> DownloadRequest {
    super.download(
      convertible, method: method, parameters: parameters, encoder: encoder, headers: headers,
      interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume,
      requestModifier: requestModifier, to: destination)
  }

  override func download(
    _ convertible: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, to destination: DownloadRequest.Destination? = nil
  ) -> DownloadRequest {
    super.download(
      convertible, interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume,
      to: destination)
  }

  override func download(
    resumingWith data: Data, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, to destination: DownloadRequest.Destination? = nil
  ) -> DownloadRequest {
    super.download(
      resumingWith: data, interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume,
      to: destination)
  }

  // MARK: Uploads

  override func upload(
    _ data: Data, to convertible: any URLConvertible, method: HTTPMethod = .post,
    headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, fileManager: FileManager = .default,
    requestModifier: RequestModifier? = nil
  ) -> UploadRequest {
    super.upload(
      data, to: convertible, method: method, headers: headers, interceptor: interceptor,
      shouldAutomaticallyResume: shouldAutomaticallyResume, fileManager: fileManager,
      requestModifier: requestModifier)
  }

  override func upload(
    _ data: Data, with convertible: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, fileManager: FileManager = .default
  ) -> UploadRequest {
    super.upload(
      data, with: convertible, interceptor: interceptor,
      shouldAutomaticallyResume: shouldAutomaticallyResume, fileManager: fileManager)
  }

  override func upload(
    _ fileURL: URL, to convertible: any URLConvertible, method: HTTPMethod = .post,
    headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, fileManager: FileManager = .default,
    requestModifier: RequestModifier? = nil
  ) -> UploadRequest {
    super.upload(
      fileURL, to: convertible, method: method, headers: headers, interceptor: interceptor,
      shouldAutomaticallyResume: shouldAutomaticallyResume, fileManager: fileManager,
      requestModifier: requestModifier)
  }

  override func upload(
    _ fileURL: URL, with convertible: any URLRequestConvertible,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
    fileManager: FileManager = .default
  ) -> UploadRequest {
    super.upload(
      fileURL, with: convertible, interceptor: interceptor,
      shouldAutomaticallyResume: shouldAutomaticallyResume, fileManager: fileManager)
  }

  override func upload(
    _ stream: InputStream, to convertible: any URLConvertible, method: HTTPMethod = .post,
    headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
    fileManager: FileManager = .default, requestModifier: RequestModifier? = nil
  ) -> UploadRequest {
    super.upload(
      stream, to: convertible, method: method, headers: headers, interceptor: interceptor,
      fileManager: fileManager, requestModifier: requestModifier)
  }

  override func upload(
    _ stream: InputStream, with convertible: any URLRequestConvertible,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
    fileManager: FileManager = .default
  ) -> UploadRequest {
    super.upload(
      stream, with: convertible, interceptor: interceptor,
      shouldAutomaticallyResume: shouldAutomaticallyResume, fileManager: fileManager)
  }

  override func upload(
    multipartFormData: (MultipartFormData) -> Void, to url: any URLConvertible,
    usingThreshold encodingMemoryThreshold: UInt64 = MultipartFormData.encodingMemoryThreshold,
    method: HTTPMethod = .post, headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
    fileManager: FileManager = .default, requestModifier: RequestModifier? = nil
  ) -> UploadRequest {
    super.upload(
      multipartFormData: multipartFormData, to: url, usingThreshold: encodingMemoryThreshold,
      method: method, headers: headers, interceptor: interceptor, fileManager: fileManager,
      requestModifier: requestModifier)
  }

  override func upload(
    multipartFormData: (MultipartFormData) -> Void, with request: any URLRequestConvertible,
    usingThreshold encodingMemoryThreshold: UInt64 = MultipartFormData.encodingMemoryThreshold,
    interceptor: (any RequestInterceptor)? = nil, fileManager: FileManager = .default
  ) -> UploadRequest {
    super.upload(
      multipartFormData: multipartFormData, with: request, usingThreshold: encodingMemoryThreshold,
      interceptor: interceptor, fileManager: fileManager)
  }

  override func upload(
    multipartFormData: MultipartFormData, to url: any URLConvertible,
    usingThreshold encodingMemoryThreshold: UInt64 = MultipartFormData.encodingMemoryThreshold,
    method: HTTPMethod = .post, headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, fileManager: FileManager = .default,
    requestModifier: RequestModifier? = nil
  ) -> UploadRequest {
    super.upload(
      multipartFormData: multipartFormData, to: url, usingThreshold: encodingMemoryThreshold,
      method: method, headers: headers, interceptor: interceptor,
      shouldAutomaticallyResume: shouldAutomaticallyResume, fileManager: fileManager,
      requestModifier: requestModifier)
  }

  override func upload(
    multipartFormData: MultipartFormData, with request: any URLRequestConvertible,
    usingThreshold encodingMemoryThreshold: UInt64 = MultipartFormData.encodingMemoryThreshold,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
    fileManager: FileManager = .default
  ) -> UploadRequest {
    super.upload(
      multipartFormData: multipartFormData, with: request, usingThreshold: encodingMemoryThreshold,
      interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume,
      fileManager: fileManager)
  }
}

/// A subclass with its own initializer on top of an inherited one.
private final class TokenSession: FullSession, @unchecked Sendable {
  convenience init(token: String) {
    self.init(configuration: .af.default, interceptor: .retryPolicy(retryLimit: UInt(token.count)))
  }
}

/// A subclass with an initializer that passes options of this library.
private final class Tuned: Session, @unchecked Sendable {
  init(options: TransportOptions) {
    let delegate = SessionDelegate()
    super.init(
      session: Session.urlSession(delegate: delegate, transportOptions: options), delegate: delegate,
      rootQueue: DispatchQueue(label: "tuned"))
  }
}

private func sessions(_ stream: InputStream, _ urlSession: URLSession) {
  let sessions: [Session] = [
    FullSession(), FullSession(configuration: .af.default), TokenSession(token: "a"),
    Tuned(options: TransportOptions()),
    Session(
      session: urlSession, delegate: SessionDelegate(), rootQueue: .main, transportOptions: TransportOptions()
    ),
  ]
  for session in sessions {
    let url = "http://localhost"
    session.upload(stream, to: url).response { _ in }
    session.upload(stream, to: url, shouldAutomaticallyResume: false).response { _ in }
    session.upload(multipartFormData: { _ in }, to: url).response { _ in }
    session.upload(multipartFormData: { _ in }, to: url, shouldAutomaticallyResume: false).response { _ in }
  }
}
