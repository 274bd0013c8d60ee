public import Alamofire
public import Foundation
public import FoundationNetworking

/// Makes requests and performs them, with shared connections, header fields and interceptors.
///
/// A request starts when it is created, before its handlers are added, and also without any
/// (``startRequestsImmediately``). Errors of the arguments are not thrown, but passed to the handlers.
///
/// Retain a manager as long as its requests run: its release ends them with `URLError.cancelled`. A manager may be
/// used from any thread.
///
/// In a subclass, the methods that take a URL call the method that takes a `URLRequestConvertible`, with the request
/// that they have made.
///
/// A manager with a configuration of `URLSessionConfiguration.background(withIdentifier:)` behaves like one with
/// `URLSessionConfiguration.default`: its transfers end with the process.
///
/// ```swift
/// let manager = SessionManager(configuration: .default)
/// manager.request("https://httpbin.org/get").validate().responseJSON { print($0.result) }
/// ```
open class SessionManager: @unchecked Sendable {
  // Unchecked, because the compiler checks no class that can be subclassed: its own properties are constants, and its
  // settings have a lock.

  private struct Settings {
    var startsRequestsImmediately = true
    var adapter: Boxed<any RequestAdapter>?
    var retrier: Boxed<any RequestRetrier>?
    var backgroundCompletionHandler: Boxed<() -> Void>?
  }

  /// The settings of the manager, for any thread.
  private let settings = Mutex(Settings())

  let retryQueue = RetryQueue()

  /// The session that does the work.
  let core: Alamofire::Session

  /// The session that delegates receive; invalidating it ends the manager's requests.
  public let session: URLSession

  /// Is called when something happens to tasks.
  public let delegate: SessionDelegate

  /// Whether requests start when they are created. Default: `true`. With `false` each waits for ``Request/resume()``.
  open var startRequestsImmediately: Bool {
    get { settings.withLock { $0.startsRequestsImmediately } }
    set { settings.withLock { $0.startsRequestsImmediately = newValue } }
  }

  /// Changes requests before they are sent. Applies to requests that are created from now on, and to retries.
  open var adapter: (any RequestAdapter)? {
    get { settings.withLock { $0.adapter }?.value }
    set { settings.set(\.adapter, to: newValue.map { Boxed($0) }) }
  }

  /// Decides about requests that fail from now on.
  open var retrier: (any RequestRetrier)? {
    get { settings.withLock { $0.retrier }?.value }
    set { settings.set(\.retrier, to: newValue.map { Boxed($0) }) }
  }

  /// Called on the main queue if the program calls `urlSessionDidFinishEvents(forBackgroundURLSession:)` of the
  /// delegate, and the delegate has no closure for that. The manager never calls it, because its transfers end with the
  /// process.
  open var backgroundCompletionHandler: (() -> Void)? {
    get { settings.withLock { $0.backgroundCompletionHandler }?.value }
    set {
      settings.set(\.backgroundCompletionHandler, to: newValue.map { Boxed($0) })
      delegate.setBackgroundCompletionHandler(newValue)
    }
  }

  /// Makes a manager.
  ///
  /// - Parameters:
  ///   - configuration:            Header fields, timeouts, connections per host and so on. Copied.
  ///   - delegate:                 Is called when something happens to tasks.
  ///   - serverTrustPolicyManager: The policies by host. Without one, and for hosts that it does not know, the
  ///                               trust store decides.
  public init(
    configuration: URLSessionConfiguration = URLSessionConfiguration.default,
    delegate: SessionDelegate = SessionDelegate(),
    serverTrustPolicyManager: ServerTrustPolicyManager? = nil
  ) {
    core = Self.core(
      configuration, delegate, serverTrustPolicyManager, SessionManager.defaultTransportOptions)
    session = core.session
    self.delegate = delegate
  }

  /// Makes a manager with options of the transport; an addition to Alamofire 4.
  ///
  /// - Parameters:
  ///   - configuration:            The configuration of header fields, timeouts and connections per host. It is
  ///     copied.
  ///   - delegate:                 The delegate of the manager.
  ///   - serverTrustPolicyManager: The policies by host.
  ///   - transportOptions:         Options that a configuration does not have. `allowsBodyInGETRequests` and
  ///     `makesRequestsAtOnce` are always set.
  public init(
    configuration: URLSessionConfiguration = URLSessionConfiguration.default,
    delegate: SessionDelegate = SessionDelegate(),
    serverTrustPolicyManager: ServerTrustPolicyManager? = nil,
    transportOptions: TransportOptions
  ) {
    core = Self.core(configuration, delegate, serverTrustPolicyManager, transportOptions)
    session = core.session
    self.delegate = delegate
  }

  /// Makes a manager with the configuration of one of Foundation's sessions. Later calls of `session` have no effect
  /// on it.
  ///
  /// - Returns: `nil` if `delegate` is not the delegate of `session`.
  public init?(
    session: URLSession, delegate: SessionDelegate,
    serverTrustPolicyManager: ServerTrustPolicyManager? = nil
  ) {
    guard session.delegate === delegate else { return nil }
    core = Self.core(session, delegate, serverTrustPolicyManager, SessionManager.defaultTransportOptions)
    self.session = session
    self.delegate = delegate
  }

  /// Makes a manager for a session of Foundation's, with options of the transport; an addition to the fourth
  /// generation.
  public init?(
    session: URLSession, delegate: SessionDelegate,
    serverTrustPolicyManager: ServerTrustPolicyManager? = nil,
    transportOptions: TransportOptions
  ) {
    guard session.delegate === delegate else { return nil }
    core = Self.core(session, delegate, serverTrustPolicyManager, transportOptions)
    self.session = session
    self.delegate = delegate
  }

  private static func core(
    _ configuration: URLSessionConfiguration, _ delegate: SessionDelegate,
    _ policies: ServerTrustPolicyManager?, _ options: TransportOptions
  ) -> Alamofire::Session {
    Alamofire::Session(
      configuration: configuration.withoutJournal, delegate: delegate, rootQueue: rootQueue,
      startRequestsImmediately: false,
      serverTrustManager: policies?.current, eventMonitors: [], transportOptions: options.forOlderGenerations)
  }

  private static func core(
    _ session: URLSession, _ delegate: SessionDelegate,
    _ policies: ServerTrustPolicyManager?, _ options: TransportOptions
  ) -> Alamofire::Session {
    let configuration = session.configuration
    guard configuration.identifier == nil else { return core(configuration, delegate, policies, options) }
    return Alamofire::Session(
      session: session, delegate: delegate, rootQueue: rootQueue, startRequestsImmediately: false,
      serverTrustManager: policies?.current, eventMonitors: [], transportOptions: options.forOlderGenerations)
  }

  /// A queue for each manager, as each session of the core has one: on it the delegate is called.
  private static var rootQueue: DispatchQueue { DispatchQueue(label: "org.alamofire.session-manager") }

  // MARK: Data requests

  /// Makes a request whose response is collected in memory.
  ///
  /// - Parameters:
  ///   - url:        The URL.
  ///   - method:     Default: GET.
  ///   - parameters: The parameters for the query or the body. Default: none.
  ///   - encoding:   Default: ``URLEncoding/default``.
  ///   - headers:    Header fields; they override the configuration's.
  @discardableResult
  open func request(
    _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil
  ) -> DataRequest {
    do {
      return request(
        try encoding.encode(URLRequest(url: url, method: method, headers: headers), with: parameters))
    } catch {
      return data { throw error }
    }
  }

  /// Makes a request whose response is collected in memory, from a `URLRequest` or a value that becomes one.
  @discardableResult
  open func request(_ urlRequest: any URLRequestConvertible) -> DataRequest {
    data { try urlRequest.asURLRequest() }
  }

  // MARK: Downloads

  /// Makes a request whose response is written to a file.
  ///
  /// - Parameters:
  ///   - url:         The URL.
  ///   - method:      Default: GET.
  ///   - parameters:  The parameters for the query or the body. Default: none.
  ///   - encoding:    Default: ``URLEncoding/default``.
  ///   - headers:     Header fields; they override the configuration's.
  ///   - destination: Returns the destination of the file. Without it, the file stays in the temporary folder.
  @discardableResult
  open func download(
    _ url: any URLConvertible, method: HTTPMethod = .get, parameters: Parameters? = nil,
    encoding: any ParameterEncoding = URLEncoding.default, headers: HTTPHeaders? = nil,
    to destination: DownloadRequest.DownloadFileDestination? = nil
  ) -> DownloadRequest {
    do {
      return download(
        try encoding.encode(URLRequest(url: url, method: method, headers: headers), with: parameters),
        to: destination)
    } catch {
      return download(to: destination) { throw error }
    }
  }

  /// Makes a download from a `URLRequest` or a value that becomes one.
  @discardableResult
  open func download(
    _ urlRequest: any URLRequestConvertible, to destination: DownloadRequest.DownloadFileDestination? = nil
  ) -> DownloadRequest {
    download(to: destination) { try urlRequest.asURLRequest() }
  }

  /// Resumes an interrupted download.
  ///
  /// - Parameters:
  ///   - resumeData:  The ``DownloadRequest/resumeData`` of an earlier request. Other data are an error.
  ///   - destination: Returns the destination of the file.
  @discardableResult
  open func download(
    resumingWith resumeData: Data, to destination: DownloadRequest.DownloadFileDestination? = nil
  ) -> DownloadRequest {
    let bridge = RequestBridge(manager: self)
    return DownloadRequest(
      core.download(resumingWith: resumeData, interceptor: bridge, to: bridge.notedDestination(destination)),
      bridge,
      of: self)
  }

  // MARK: Uploads

  /// Uploads a file, which is read as it is sent.
  @discardableResult
  open func upload(
    _ fileURL: URL, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil
  ) -> UploadRequest {
    do {
      return upload(fileURL, with: try URLRequest(url: url, method: method, headers: headers))
    } catch {
      return upload(.file(fileURL)) { throw error }
    }
  }

  /// Uploads a file, which is read as it is sent.
  @discardableResult
  open func upload(_ fileURL: URL, with urlRequest: any URLRequestConvertible) -> UploadRequest {
    upload(.file(fileURL)) { try urlRequest.asURLRequest() }
  }

  /// Uploads bytes.
  @discardableResult
  open func upload(
    _ data: Data, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil
  ) -> UploadRequest {
    do {
      return upload(data, with: try URLRequest(url: url, method: method, headers: headers))
    } catch {
      return upload(.data(data)) { throw error }
    }
  }

  /// Uploads bytes.
  @discardableResult
  open func upload(_ data: Data, with urlRequest: any URLRequestConvertible) -> UploadRequest {
    upload(.data(data)) { try urlRequest.asURLRequest() }
  }

  /// Uploads the bytes of a stream, which can be read once: a retry needs
  /// `taskNeedNewBodyStream` of the delegate.
  @discardableResult
  open func upload(
    _ stream: InputStream, to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil
  ) -> UploadRequest {
    do {
      return upload(stream, with: try URLRequest(url: url, method: method, headers: headers))
    } catch {
      return upload(.stream(stream)) { throw error }
    }
  }

  /// Uploads the bytes of a stream, which can be read once: a retry needs
  /// `taskNeedNewBodyStream` of the delegate.
  @discardableResult
  open func upload(_ stream: InputStream, with urlRequest: any URLRequestConvertible) -> UploadRequest {
    upload(.stream(stream)) { try urlRequest.asURLRequest() }
  }

  // MARK: Forms

  /// Encodes a form off the caller's thread, then uploads it.
  ///
  /// - Parameters:
  ///   - multipartFormData:       Fills the form; called on a background queue.
  ///   - encodingMemoryThreshold: A form of this many bytes or more goes by way of a temporary file; a shorter one is
  ///                              encoded in memory.
  ///   - url:                     The URL of the request.
  ///   - method:                  Default: POST.
  ///   - headers:                 Header fields.
  ///   - queue:                   The queue of `encodingCompletion`. Default: the main queue.
  ///   - encodingCompletion:      Gets the request, to add handlers to it, or the error.
  open func upload(
    multipartFormData: @escaping (MultipartFormData) -> Void,
    usingThreshold encodingMemoryThreshold: UInt64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
    to url: any URLConvertible, method: HTTPMethod = .post, headers: HTTPHeaders? = nil,
    queue: DispatchQueue? = nil, encodingCompletion: ((MultipartFormDataEncodingResult) -> Void)?
  ) {
    do {
      upload(
        multipartFormData: multipartFormData, usingThreshold: encodingMemoryThreshold,
        with: try URLRequest(url: url, method: method, headers: headers), queue: queue,
        encodingCompletion: encodingCompletion)
    } catch {
      upload(
        FormUpload(
          fill: multipartFormData, threshold: encodingMemoryThreshold, request: .failure(error), queue: queue,
          completion: encodingCompletion))
    }
  }

  /// Encodes a form off the caller's thread, then uploads it with a `URLRequest` or a value that becomes one; see
  /// ``upload(multipartFormData:usingThreshold:to:method:headers:queue:encodingCompletion:)``.
  open func upload(
    multipartFormData: @escaping (MultipartFormData) -> Void,
    usingThreshold encodingMemoryThreshold: UInt64 = SessionManager.multipartFormDataEncodingMemoryThreshold,
    with urlRequest: any URLRequestConvertible, queue: DispatchQueue? = nil,
    encodingCompletion: ((MultipartFormDataEncodingResult) -> Void)?
  ) {
    upload(
      FormUpload(
        fill: multipartFormData, threshold: encodingMemoryThreshold,
        request: Result { try urlRequest.asURLRequest() }, queue: queue, completion: encodingCompletion))
  }
}

// How the factories make their requests.
extension SessionManager {
  /// The body of an upload.
  enum Body {
    case data(Data)
    case file(URL)
    case stream(InputStream)
  }

  func data(_ make: () throws -> URLRequest) -> DataRequest {
    let bridge = RequestBridge(manager: self, make)
    return DataRequest(core.request(bridge.original.convertible, interceptor: bridge), bridge, of: self)
  }

  func download(
    to destination: DownloadRequest.DownloadFileDestination?, _ make: () throws -> URLRequest
  ) -> DownloadRequest {
    let bridge = RequestBridge(manager: self, make)
    return DownloadRequest(
      core.download(
        bridge.original.convertible, interceptor: bridge, to: bridge.notedDestination(destination)), bridge,
      of: self)
  }

  func upload(_ body: Body, _ make: () throws -> URLRequest) -> UploadRequest {
    let bridge = RequestBridge(manager: self, make)
    let upload =
      switch body {
      case .data(let data): core.upload(data, with: bridge.original.convertible, interceptor: bridge)
      case .file(let file): core.upload(file, with: bridge.original.convertible, interceptor: bridge)
      case .stream(let stream): core.upload(stream, with: bridge.original.convertible, interceptor: bridge)
      }
    return UploadRequest(upload, bridge, of: self)
  }

  /// Encodes on a background queue; the manager lives as long as that takes.
  func upload(_ form: FormUpload) {
    let form = Boxed(form)
    DispatchQueue.global(qos: .utility).async {
      let result = Boxed(form.value.encoded(for: self))
      (form.value.queue ?? .main).async { form.value.completion?(result.value) }
    }
  }
}

/// A form that is to be uploaded.
struct FormUpload {
  let fill: (MultipartFormData) -> Void
  let threshold: UInt64
  let request: Result<URLRequest>
  let queue: DispatchQueue?
  let completion: ((SessionManager.MultipartFormDataEncodingResult) -> Void)?

  func encoded(for manager: SessionManager) -> SessionManager.MultipartFormDataEncodingResult {
    let form = MultipartFormData()
    fill(form)
    do {
      var request = try request.unwrap()
      // Foundation ends the process when a copy of a request without a URL is changed. The transport refuses it.
      if request.url != nil { request.setValue(form.contentType, forHTTPHeaderField: "Content-Type") }
      guard form.contentLength >= threshold else {
        let upload = manager.upload(try form.encode(), with: request)
        return .success(request: upload, streamingFromDisk: false, streamFileURL: nil)
      }
      let file = try FormFile("org.alamofire.manager")
      do {
        try form.writeEncodedData(to: file.url)
      } catch {
        file.remove()
        throw error
      }
      let upload = manager.upload(file.url, with: request)
      upload.bridge.own(file)
      return .success(request: upload, streamingFromDisk: true, streamFileURL: file.url)
    } catch {
      return .failure(error)
    }
  }
}
