public import Foundation
public import FoundationNetworking
import HTTPWire

/// Makes requests and performs them, with shared connections, header fields, timeouts and interceptors.
///
/// Retain a session as long as its requests run: its release ends every unfinished one with
/// `AFError.sessionDeinitialized`. ``default`` (and ``AF``) live as long as the process. A session may be used from
/// any thread. Without requests it has no thread, and its connections stay open for the next request.
///
/// In a subclass, the methods that take a URL call the method that takes a `URLRequestConvertible`. So one override can
/// sign or validate all requests of a kind.
///
/// ```swift
/// let session = Session(interceptor: TokenAdapter(token: token))
/// let user = try await session.request("https://example.com/user").serializingDecodable(User.self).value
/// ```
open class Session: @unchecked Sendable {
  // Unchecked, because the compiler checks no class that can be subclassed: its own properties are constants.
  /// The session for the whole program, with the default configuration.
  public static let `default` = Session()

  package let core: SessionCore

  /// Makes a session with the configuration of `session`, a session of Foundation that delegates and monitors see.
  /// Requests use this library's engine. Later calls of `session`, such as its invalidation, have no effect on it. The
  /// other parameters are the same as in the initialiser with a configuration.
  ///
  /// It is the only designated initialiser: a subclass that overrides it inherits the others, which call it with the
  /// session that ``urlSession(configuration:delegate:transportOptions:)`` makes.
  public init(
    session: URLSession, delegate: SessionDelegate, rootQueue: DispatchQueue,
    startRequestsImmediately: Bool = true, requestSetup: RequestSetup = .lazy,
    requestQueue: DispatchQueue? = nil, serializationQueue: DispatchQueue? = nil,
    interceptor: (any RequestInterceptor)? = nil, serverTrustManager: ServerTrustManager? = nil,
    redirectHandler: (any RedirectHandler)? = nil,
    cachedResponseHandler: (any CachedResponseHandler)? = nil,
    eventMonitors: [any EventMonitor] = [AlamofireNotifications.onDemand]
  ) {
    let facade = session as? SessionFacade
    let planned = facade?.takePlan()
    let plan = planned ?? SessionPlan(configuration: session.configuration)
    let observers =
      plan.observers
      ?? SessionObservers(
        delegate: delegate, redirectHandler: redirectHandler, cachedResponseHandler: cachedResponseHandler,
        eventMonitors: eventMonitors)
    core = SessionCore(
      plan, facade: plan.shown ?? session, observers: observers, rootQueue: rootQueue,
      startRequestsImmediately: startRequestsImmediately,
      requestSetup: requestSetup, requestQueue: requestQueue, serializationQueue: serializationQueue,
      interceptor: interceptor, serverTrustManager: serverTrustManager)
    if planned != nil { facade?.serve(core) }
    core.adopt(self)
    core.restoreTransfers(for: self)
  }

  deinit {
    core.invalidate(.sessionDeinitialized)
  }

  // MARK: Data requests

  /// Makes a request from a URL, parameters in a dictionary and an encoding for them.
  ///
  /// Errors of the arguments are not thrown, but passed to the response handlers.
  ///
  /// - Parameters:
  ///   - convertible: The URL; strings are parsed when the request is created.
  ///   - method: Default: `GET`.
  ///   - parameters: The parameters for the query or the body. Default: none.
  ///   - encoding: Default: ``URLEncoding/default``, the query for GET, HEAD and DELETE, otherwise the body.
  ///   - headers: Header fields; they override the session's.
  ///   - interceptor: Adapts and retries this request, after the session's.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` for the session's setting.
  ///   - requestModifier: Changes the request before the parameters are encoded.
  open func request(
    _ convertible: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
    requestModifier: RequestModifier? = nil
  ) -> DataRequest {
    let description = RequestDescription(
      convertible, method, headers, requestModifier,
      encode: RequestDescription.encoding(parameters, by: encoding))
    return request(
      description, interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume)
  }

  /// Makes a request from a URL, an encodable value and an encoder for it.
  ///
  /// - Parameters:
  ///   - convertible: The URL; strings are parsed when the request is created.
  ///   - method: Default: `GET`.
  ///   - parameters: The value for the query or the body. Default: none.
  ///   - encoder: Default: ``URLEncodedFormParameterEncoder/default``.
  ///   - headers: Header fields; they override the session's.
  ///   - interceptor: Adapts and retries this request, after the session's.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` for the session's setting.
  ///   - requestModifier: Changes the request before the parameters are encoded.
  open func request<Parameters: Encodable & Sendable>(
    _ convertible: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoder: any ParameterEncoder = URLEncodedFormParameterEncoder.default, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
    requestModifier: RequestModifier? = nil
  ) -> DataRequest {
    let description = RequestDescription(
      convertible, method, headers, requestModifier,
      encode: RequestDescription.encoding(parameters, by: encoder))
    return request(
      description, interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume)
  }

  /// Makes a request from a `URLRequest` or a value that becomes one, a router for example.
  ///
  /// - Parameters:
  ///   - convertible: Makes the `URLRequest`, again for each retry.
  ///   - interceptor: Adapts and retries this request, after the session's.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` for the session's setting.
  open func request(
    _ convertible: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil
  ) -> DataRequest {
    let request = DataRequest(
      core.parts(
        of: convertible, runsUserCode: convertible.convertsByUserCode, kind: DataKind.shared, interceptor,
        shouldAutomaticallyResume))
    request.core.setUp(request, isEager: requestSetup == .eager)
    return request
  }

  // MARK: Uploads

  /// Makes a request that sends bytes from memory; no `Content-Type` is added.
  ///
  /// - Parameters:
  ///   - data: The body. An empty one is sent with `Content-Length: 0` (RFC 9110 §8.6).
  ///   - convertible: The URL; an invalid one fails the request with `AFError.invalidURL`.
  ///   - method: Default: `POST`.
  ///   - headers: Header fields; they override the session's. Default: none.
  ///   - interceptor: Adapts and retries this request, after the session's. Default: none.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` for the session's setting.
  ///   - fileManager: Reads the sizes of files and removes them. Default: the file manager of the process.
  ///   - requestModifier: Changes the request before it is adapted. Default: none.
  open func upload(
    _ data: Data, to convertible: any URLConvertible, method: HTTPMethod = .post,
    headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, fileManager: FileManager = .default,
    requestModifier: RequestModifier? = nil
  ) -> UploadRequest {
    upload(
      data, with: RequestDescription(convertible, method, headers, requestModifier),
      interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume,
      fileManager: fileManager)
  }

  /// Makes a request that sends bytes from memory. A body that `convertible` has is not sent.
  open func upload(
    _ data: Data, with convertible: any URLRequestConvertible,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
    fileManager: FileManager = .default
  ) -> UploadRequest {
    upload(
      UploadRequest.Uploadable.data(data), with: convertible, interceptor, shouldAutomaticallyResume,
      fileManager)
  }

  /// Makes a request that sends a file, which is read while it is sent. Bytes that are appended to the file then
  /// are not sent. The request fails if the file was truncated, is missing, a folder or not readable.
  open func upload(
    _ fileURL: URL, to convertible: any URLConvertible, method: HTTPMethod = .post,
    headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, fileManager: FileManager = .default,
    requestModifier: RequestModifier? = nil
  ) -> UploadRequest {
    upload(
      fileURL, with: RequestDescription(convertible, method, headers, requestModifier),
      interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume,
      fileManager: fileManager)
  }

  /// Makes a request that sends a file. A body that `convertible` has is not sent.
  open func upload(
    _ fileURL: URL, with convertible: any URLRequestConvertible,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
    fileManager: FileManager = .default
  ) -> UploadRequest {
    upload(
      UploadRequest.Uploadable.file(fileURL, shouldRemove: false), with: convertible, interceptor,
      shouldAutomaticallyResume, fileManager)
  }

  /// Makes a request that sends a stream, once. Without a `Content-Length` in `headers` the body is sent in chunks
  /// (RFC 9112 §7.1); with one, a stream of another length is an error, and the last byte waits for the end of the
  /// stream. A retry after a part of the stream was read is an error, too. The stream must not be open.
  open func upload(
    _ stream: InputStream, to convertible: any URLConvertible, method: HTTPMethod = .post,
    headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
    fileManager: FileManager = .default, requestModifier: RequestModifier? = nil
  ) -> UploadRequest {
    upload(
      stream, with: RequestDescription(convertible, method, headers, requestModifier),
      interceptor: interceptor, fileManager: fileManager)
  }

  /// Makes a request that sends a stream, once, and may be resumed by hand.
  ///
  /// `shouldAutomaticallyResume` says whether the first handler resumes it; `nil` means the session's setting.
  open func upload(
    _ stream: InputStream, to convertible: any URLConvertible, method: HTTPMethod = .post,
    headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool?, fileManager: FileManager = .default,
    requestModifier: RequestModifier? = nil
  ) -> UploadRequest {
    upload(
      stream, with: RequestDescription(convertible, method, headers, requestModifier),
      interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume, fileManager: fileManager
    )
  }

  /// Makes a request that sends a stream, once. A body that `convertible` has is not sent.
  open func upload(
    _ stream: InputStream, with convertible: any URLRequestConvertible,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
    fileManager: FileManager = .default
  ) -> UploadRequest {
    upload(
      UploadRequest.Uploadable.stream(stream), with: convertible, interceptor, shouldAutomaticallyResume,
      fileManager)
  }

  /// Makes a request that sends a form. `multipartFormData` fills the form during this call.
  ///
  /// A form of `encodingMemoryThreshold` bytes or more, 10 MB by default, is encoded into a temporary file. The file is
  /// removed with the attempt, or with the request if the form has streams. A smaller form is sent like bytes.
  open func upload(
    multipartFormData: (MultipartFormData) -> Void, to convertible: any URLConvertible,
    usingThreshold encodingMemoryThreshold: UInt64 = MultipartFormData.encodingMemoryThreshold,
    method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, fileManager: FileManager = .default,
    requestModifier: RequestModifier? = nil
  ) -> UploadRequest {
    upload(
      multipartFormData: .filled(by: multipartFormData, fileManager), to: convertible,
      usingThreshold: encodingMemoryThreshold, method: method,
      headers: headers, interceptor: interceptor, fileManager: fileManager, requestModifier: requestModifier)
  }

  /// Makes a request that sends a form, and may be resumed by hand. `multipartFormData` fills the form during the call.
  ///
  /// `shouldAutomaticallyResume` says whether the first handler resumes it; `nil` means the session's setting.
  open func upload(
    multipartFormData: (MultipartFormData) -> Void, to convertible: any URLConvertible,
    usingThreshold encodingMemoryThreshold: UInt64 = MultipartFormData.encodingMemoryThreshold,
    method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool?,
    fileManager: FileManager = .default, requestModifier: RequestModifier? = nil
  ) -> UploadRequest {
    upload(
      multipartFormData: .filled(by: multipartFormData, fileManager), to: convertible,
      usingThreshold: encodingMemoryThreshold, method: method,
      headers: headers, interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume,
      fileManager: fileManager, requestModifier: requestModifier)
  }

  /// Makes a request from your own `URLRequest` that sends a form; its `Content-Type` is replaced.
  open func upload(
    multipartFormData: (MultipartFormData) -> Void, with convertible: any URLRequestConvertible,
    usingThreshold encodingMemoryThreshold: UInt64 = MultipartFormData.encodingMemoryThreshold,
    interceptor: (any RequestInterceptor)? = nil, fileManager: FileManager = .default
  ) -> UploadRequest {
    upload(
      multipartFormData: .filled(by: multipartFormData, fileManager), with: convertible,
      usingThreshold: encodingMemoryThreshold,
      interceptor: interceptor, fileManager: fileManager)
  }

  /// Makes a request from your own `URLRequest` that sends a form, and may be resumed by hand.
  ///
  /// `shouldAutomaticallyResume` says whether the first handler resumes it; `nil` means the session's setting.
  open func upload(
    multipartFormData: (MultipartFormData) -> Void, with convertible: any URLRequestConvertible,
    usingThreshold encodingMemoryThreshold: UInt64 = MultipartFormData.encodingMemoryThreshold,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool?,
    fileManager: FileManager = .default
  ) -> UploadRequest {
    upload(
      multipartFormData: .filled(by: multipartFormData, fileManager), with: convertible,
      usingThreshold: encodingMemoryThreshold,
      interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume,
      fileManager: fileManager)
  }

  /// Makes a request that sends a form which has been filled before. Do not change the form afterwards.
  open func upload(
    multipartFormData: MultipartFormData, to convertible: any URLConvertible,
    usingThreshold encodingMemoryThreshold: UInt64 = MultipartFormData.encodingMemoryThreshold,
    method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
    fileManager: FileManager = .default, requestModifier: RequestModifier? = nil
  ) -> UploadRequest {
    upload(
      multipartFormData: multipartFormData,
      with: RequestDescription(convertible, method, headers, requestModifier),
      usingThreshold: encodingMemoryThreshold, interceptor: interceptor,
      shouldAutomaticallyResume: shouldAutomaticallyResume, fileManager: fileManager)
  }

  /// Makes a request from your own `URLRequest` that sends a form which has been filled before.
  open func upload(
    multipartFormData: MultipartFormData, with convertible: any URLRequestConvertible,
    usingThreshold encodingMemoryThreshold: UInt64 = MultipartFormData.encodingMemoryThreshold,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
    fileManager: FileManager = .default
  ) -> UploadRequest {
    upload(
      MultipartUploadable(form: multipartFormData, threshold: encodingMemoryThreshold),
      with: MultipartRequest(base: convertible, contentType: multipartFormData.contentType),
      runsUserCode: convertible.convertsByUserCode, interceptor, shouldAutomaticallyResume, fileManager)
  }

  // MARK: Downloads

  /// Makes a request whose response is written to a file.
  ///
  /// - Parameters:
  ///   - convertible: The URL; an invalid one fails the request with `AFError.invalidURL`.
  ///   - method: Default: `GET`.
  ///   - parameters: The parameters for the query or the body. Default: none.
  ///   - encoding: Default: ``URLEncoding/default``.
  ///   - headers: Header fields; they override the session's. Default: none.
  ///   - interceptor: Adapts and retries this request, after the session's. Default: none.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` for the session's setting.
  ///   - requestModifier: Changes the request before the parameters are encoded. Default: none.
  ///   - destination: Returns the destination of the complete file; `nil` leaves it in the temporary folder. A
  ///     failure to move it becomes `AFError.downloadedFileMoveFailed`.
  open func download(
    _ convertible: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
    requestModifier: RequestModifier? = nil, to destination: DownloadRequest.Destination? = nil
  ) -> DownloadRequest {
    let description = RequestDescription(
      convertible, method, headers, requestModifier,
      encode: RequestDescription.encoding(parameters, by: encoding))
    return download(
      description, interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume,
      to: destination)
  }

  /// Makes a request with `Encodable` parameters whose response goes to a file.
  open func download<Parameters: Encodable & Sendable>(
    _ convertible: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoder: any ParameterEncoder = URLEncodedFormParameterEncoder.default, headers: HTTPHeaders? = nil,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil,
    requestModifier: RequestModifier? = nil, to destination: DownloadRequest.Destination? = nil
  ) -> DownloadRequest {
    let description = RequestDescription(
      convertible, method, headers, requestModifier,
      encode: RequestDescription.encoding(parameters, by: encoder))
    return download(
      description, interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume,
      to: destination)
  }

  /// Makes a request from a `URLRequest` or a value that becomes one, again for each retry. The response is written
  /// to a file.
  open func download(
    _ convertible: any URLRequestConvertible, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, to destination: DownloadRequest.Destination? = nil
  ) -> DownloadRequest {
    download(
      convertible, runsUserCode: convertible.convertsByUserCode, interceptor, shouldAutomaticallyResume,
      destination)
  }

  /// Resumes an interrupted download. If the server has another version of the file by now, or the partial file is
  /// missing, the download begins again. Parts of two versions are never joined.
  ///
  /// `data` is the ``DownloadRequest/resumeData`` of an earlier request, in this process or in another one with the
  /// same temporary folder. Other data is an error.
  open func download(
    resumingWith data: Data, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, to destination: DownloadRequest.Destination? = nil
  ) -> DownloadRequest {
    download(
      ResumedRequest(data: data), runsUserCode: false, interceptor, shouldAutomaticallyResume, destination,
      .resumeData(data))
  }

  // MARK: Streams

  /// Makes a request from a URL, an encodable value and an encoder for it, whose response is delivered in chunks.
  ///
  /// Errors of the arguments are not thrown, but passed to the completions of the handlers.
  ///
  /// - Parameters:
  ///   - convertible: The URL; strings are parsed when the request is created.
  ///   - method: Default: `GET`.
  ///   - parameters: The value for the query or the body. Default: none.
  ///   - encoder: Default: ``URLEncodedFormParameterEncoder/default``.
  ///   - headers: Header fields; they override the session's.
  ///   - automaticallyCancelOnStreamError: Whether an error of a serializer cancels the request.
  ///   - interceptor: Adapts and retries this request, after the session's.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` for the session's setting.
  ///   - requestModifier: Changes the request before the parameters are encoded.
  open func streamRequest<Parameters: Encodable & Sendable>(
    _ convertible: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoder: any ParameterEncoder = URLEncodedFormParameterEncoder.default, headers: HTTPHeaders? = nil,
    automaticallyCancelOnStreamError: Bool = false, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, requestModifier: RequestModifier? = nil
  ) -> DataStreamRequest {
    let description = RequestDescription(
      convertible, method, headers, requestModifier,
      encode: RequestDescription.encoding(parameters, by: encoder))
    return streamRequest(
      description, automaticallyCancelOnStreamError: automaticallyCancelOnStreamError,
      interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume)
  }

  /// Makes a request from a URL; its response is delivered in chunks. The parameters are the same as in the form with
  /// `parameters`.
  open func streamRequest(
    _ convertible: any URLConvertible, method: HTTPMethod = .get, headers: HTTPHeaders? = nil,
    automaticallyCancelOnStreamError: Bool = false, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, requestModifier: RequestModifier? = nil
  ) -> DataStreamRequest {
    streamRequest(
      convertible, method: method, parameters: Empty?.none, headers: headers,
      automaticallyCancelOnStreamError: automaticallyCancelOnStreamError, interceptor: interceptor,
      shouldAutomaticallyResume: shouldAutomaticallyResume, requestModifier: requestModifier)
  }

  /// Makes a request from a `URLRequest` or a value that becomes one, whose response is delivered in chunks.
  open func streamRequest(
    _ convertible: any URLRequestConvertible, automaticallyCancelOnStreamError: Bool = false,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil
  ) -> DataStreamRequest {
    stream(convertible, automaticallyCancelOnStreamError, interceptor, shouldAutomaticallyResume)
  }

  // MARK: Web sockets

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
  ///   - headers: Header fields; they override the session's.
  ///   - interceptor: Adapts and retries this request, after the session's.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` for the session's setting.
  ///   - requestModifier: Changes the request when it has been created.
  open func webSocketRequest(
    to convertible: any URLConvertible, configuration: WebSocketRequest.Configuration = .default,
    headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, requestModifier: RequestModifier? = nil
  ) -> WebSocketRequest {
    webSocketRequest(
      to: convertible, configuration: configuration, parameters: Empty?.none, headers: headers,
      interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume,
      requestModifier: requestModifier)
  }

  /// Makes a request that opens a WebSocket connection, with parameters in the query of its URL.
  ///
  /// The parameters are encoded by `encoder`, by default ``URLEncodedFormParameterEncoder/default``.
  open func webSocketRequest<Parameters: Encodable & Sendable>(
    to convertible: any URLConvertible, configuration: WebSocketRequest.Configuration = .default,
    parameters: Parameters? = nil,
    encoder: any ParameterEncoder = URLEncodedFormParameterEncoder.default,
    headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, requestModifier: RequestModifier? = nil
  ) -> WebSocketRequest {
    let description = RequestDescription(
      convertible, .get, headers, requestModifier,
      encode: RequestDescription.encoding(parameters, by: encoder))
    return webSocketRequest(
      performing: description, configuration: configuration, interceptor: interceptor,
      shouldAutomaticallyResume: shouldAutomaticallyResume)
  }

  /// Makes a request that opens a WebSocket connection from a `URLRequest` or a value that becomes one.
  /// Its method has to be GET.
  open func webSocketRequest(
    performing convertible: any URLRequestConvertible,
    configuration: WebSocketRequest.Configuration = .default,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil
  ) -> WebSocketRequest {
    webSocket(convertible, configuration, interceptor, shouldAutomaticallyResume)
  }
}
