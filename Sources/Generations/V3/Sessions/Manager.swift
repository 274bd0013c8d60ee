public import Alamofire
public import Foundation
public import FoundationNetworking

/// Makes requests and performs them, with connections, header fields and timeouts that they share.
///
/// Keep a manager as long as its requests run: when it is released, every unfinished one ends with the error
/// `NSURLErrorCancelled`. It may be used from any thread.
///
/// ```swift
/// let manager = Alamofire.Manager(configuration: .default)
/// manager.request(.GET, "https://example.com/get").responseJSON { response in print(response.result) }
/// ```
///
/// Whatever is wrong with the arguments of a request, for example a text that is not a URL, arrives in its handlers.
///
/// In a subclass, the methods that take a URL call the method that takes a `URLRequestConvertible`, with the request
/// that they have made.
open class Manager: @unchecked Sendable {
  // Unchecked, because the compiler checks no class that can be subclassed: its own properties are constants, or have
  // a lock.

  /// The shared manager, created on first use.
  private static let shared = Mutex<Manager?>(nil)

  /// The manager of the functions of the namespace ``Alamofire``: a default configuration with ``defaultHTTPHeaders``.
  /// A program can replace the manager, by one with transport options for example. Requests of the earlier manager end
  /// unless the program retains it.
  public static var sharedInstance: Manager {
    get {
      shared.withLock { manager in
        if let manager { return manager }
        let configuration = URLSessionConfiguration.default
        configuration.httpAdditionalHeaders = defaultHTTPHeaders
        let made = Manager(configuration: configuration)
        manager = made
        return made
      }
    }
    set {
      // The one before is released outside of the lock.
      _ = shared.withLock { manager in
        defer { manager = newValue }
        return manager
      }
    }
  }

  /// The header fields of the shared manager: `Accept-Encoding`, `Accept-Language` with up to six languages of the
  /// user's, and `User-Agent`.
  public static let defaultHTTPHeaders: [String: String] = {
    var fields = HTTPHeaders.default.dictionary
    fields["Accept-Encoding"] = "gzip;q=1.0, compress;q=0.5"
    return fields
  }()

  private struct Settings: Sendable {
    var startsImmediately = true
    var backgroundCompletionHandler: Boxed<() -> Void>?
  }

  /// The session that does the work.
  let core: Alamofire::Session
  /// Is called when something happens to tasks; its closures decide.
  public let delegate: SessionDelegate
  /// The settings of the manager, for any thread.
  private let settings = Mutex(Settings())

  /// The session that delegates receive. Invalidating it ends the manager.
  public var session: URLSession { core.session }

  /// Whether a request starts when it is created, handlers or not. Default: `true`. Otherwise call
  /// ``Request/resume()``.
  open var startRequestsImmediately: Bool {
    get { settings.withLock { $0.startsImmediately } }
    set { settings.withLock { $0.startsImmediately = newValue } }
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
  ///   - configuration: Header fields, timeouts, connections per host and so on. Copied; later changes have no
  ///     effect. Default: the system's, without ``defaultHTTPHeaders``.
  ///   - delegate: The delegate whose closures decide, or an instance of a subclass. Default: a new one.
  ///   - serverTrustPolicyManager: The policies that decide about servers. Default: none; the certificates that the
  ///     system trusts decide.
  public init(
    configuration: URLSessionConfiguration = .default, delegate: SessionDelegate = SessionDelegate(),
    serverTrustPolicyManager: ServerTrustPolicyManager? = nil
  ) {
    self.delegate = delegate
    core = Self.core(configuration, delegate, serverTrustPolicyManager, TransportOptions())
  }

  /// Makes a manager with options of the transport; an addition to Alamofire 3.
  ///
  /// - Parameters:
  ///   - configuration: The configuration of header fields, timeouts and connections per host.
  ///   - delegate: The delegate of the manager. Default: a new one.
  ///   - serverTrustPolicyManager: The policies by host. Default: none.
  ///   - transportOptions: Options that a configuration does not have. `allowsBodyInGETRequests` and
  ///     `makesRequestsAtOnce` are always set.
  public init(
    configuration: URLSessionConfiguration = .default, delegate: SessionDelegate = SessionDelegate(),
    serverTrustPolicyManager: ServerTrustPolicyManager? = nil, transportOptions: TransportOptions
  ) {
    self.delegate = delegate
    core = Self.core(configuration, delegate, serverTrustPolicyManager, transportOptions)
  }

  /// Makes a manager for a session of Foundation's, with that session's configuration; the engine is still ours. `nil`
  /// if the session has another delegate.
  public init?(
    session: URLSession, delegate: SessionDelegate,
    serverTrustPolicyManager: ServerTrustPolicyManager? = nil
  ) {
    guard session.delegate === delegate else { return nil }
    self.delegate = delegate
    core = Self.core(beside: session, delegate, serverTrustPolicyManager, TransportOptions())
  }

  /// Makes a manager for a session of Foundation's, with options of the transport; an addition to the third generation.
  /// `nil` when the session has another delegate.
  public init?(
    session: URLSession, delegate: SessionDelegate,
    serverTrustPolicyManager: ServerTrustPolicyManager? = nil, transportOptions: TransportOptions
  ) {
    guard session.delegate === delegate else { return nil }
    self.delegate = delegate
    core = Self.core(beside: session, delegate, serverTrustPolicyManager, transportOptions)
  }

  private static func core(
    _ configuration: URLSessionConfiguration, _ delegate: SessionDelegate,
    _ policies: ServerTrustPolicyManager?, _ options: TransportOptions
  ) -> Alamofire::Session {
    Alamofire::Session(
      configuration: configuration.withoutJournal, delegate: delegate, rootQueue: rootQueue,
      startRequestsImmediately: false,
      serverTrustManager: trustManager(policies), transportOptions: options.forOlderGenerations)
  }

  private static func core(
    beside session: URLSession, _ delegate: SessionDelegate, _ policies: ServerTrustPolicyManager?,
    _ options: TransportOptions
  ) -> Alamofire::Session {
    let configuration = session.configuration
    guard configuration.identifier == nil else { return core(configuration, delegate, policies, options) }
    return Alamofire::Session(
      session: session, delegate: delegate, rootQueue: rootQueue, startRequestsImmediately: false,
      serverTrustManager: trustManager(policies), transportOptions: options.forOlderGenerations)
  }

  /// A queue for each manager, as each session of the core has one: on it the delegate is called.
  private static var rootQueue: DispatchQueue { DispatchQueue(label: "com.alamofire.manager") }

  private static func trustManager(_ policies: ServerTrustPolicyManager?) -> ServerTrustManager? {
    guard let policies else { return nil }
    // Only a subclass has to be asked; the core finds a host in any spelling.
    guard type(of: policies) == ServerTrustPolicyManager.self else {
      let policies = Boxed(policies)
      return PolicyTrustManager { policies.value.serverTrustPolicyForHost($0)?.evaluator }
    }
    // The core knows wildcards, which this generation has never had.
    let evaluators = policies.policies.filter { !$0.key.hasPrefix("*") }.mapValues(\.evaluator)
    return Alamofire::ServerTrustManager(allHostsMustBeEvaluated: false, evaluators: evaluators)
  }

  // MARK: Data requests

  /// Makes a request from a method, a URL, parameters and an encoding for them.
  ///
  /// - Parameters:
  ///   - method: The method; it replaces the method of a `URLRequest` passed as the URL.
  ///   - URLString: The URL. From a `URLRequest`, header fields, body, timeout and cache policy are used, too.
  ///   - parameters: The parameters for the query or the body. Default: none.
  ///   - encoding: Default: the query for GET, HEAD and DELETE, otherwise the body.
  ///   - headers: Header fields; they override the configuration's. Default: none.
  @discardableResult
  open func request(
    _ method: Method, _ URLString: any URLStringConvertible, parameters: [String: Any]? = nil,
    encoding: ParameterEncoding = .URL, headers: [String: String]? = nil
  ) -> Request {
    let prepared = PreparedRequest(
      method, URLString, headers: headers, parameters: parameters, encoding: encoding)
    return prepared.value.map { request($0) } ?? request(prepared)
  }

  /// Makes a request from a value that becomes a URL request, a router for example.
  @discardableResult
  open func request(_ URLRequest: any URLRequestConvertible) -> Request {
    request(PreparedRequest(URLRequest))
  }

  private func request(_ prepared: PreparedRequest) -> Request {
    // A valid request is passed directly, which costs less than one that may throw.
    begin(prepared.value.map { core.request($0) } ?? core.request(prepared), prepared)
  }

  // MARK: Uploads

  /// Sends a file. One that is missing, a folder or not readable is an error in the handlers.
  @discardableResult
  open func upload(
    _ method: Method, _ URLString: any URLStringConvertible, headers: [String: String]? = nil, file: URL
  ) -> Request {
    let prepared = PreparedRequest(method, URLString, headers: headers)
    return prepared.value.map { upload($0, file: file) } ?? begin(core.upload(file, with: prepared), prepared)
  }

  /// Sends a file with your own URL request; the body of that request is not sent.
  @discardableResult
  open func upload(_ URLRequest: any URLRequestConvertible, file: URL) -> Request {
    let prepared = PreparedRequest(URLRequest)
    return begin(core.upload(file, with: prepared), prepared)
  }

  /// Sends bytes; no content type is added.
  @discardableResult
  open func upload(
    _ method: Method, _ URLString: any URLStringConvertible, headers: [String: String]? = nil, data: Data
  ) -> Request {
    let prepared = PreparedRequest(method, URLString, headers: headers)
    return prepared.value.map { upload($0, data: data) } ?? begin(core.upload(data, with: prepared), prepared)
  }

  /// Sends bytes with your own URL request; the body of that request is not sent.
  @discardableResult
  open func upload(_ URLRequest: any URLRequestConvertible, data: Data) -> Request {
    let prepared = PreparedRequest(URLRequest)
    return begin(core.upload(data, with: prepared), prepared)
  }

  /// Sends a stream, once, that was not opened.
  @discardableResult
  open func upload(
    _ method: Method, _ URLString: any URLStringConvertible, headers: [String: String]? = nil,
    stream: InputStream
  ) -> Request {
    let prepared = PreparedRequest(method, URLString, headers: headers)
    return prepared.value.map { upload($0, stream: stream) }
      ?? begin(core.upload(stream, with: prepared), prepared)
  }

  /// Sends a stream, once, with your own URL request; the body of that request is not sent.
  @discardableResult
  open func upload(_ URLRequest: any URLRequestConvertible, stream: InputStream) -> Request {
    let prepared = PreparedRequest(URLRequest)
    return begin(core.upload(stream, with: prepared), prepared)
  }

  // MARK: Forms

  /// Fills and encodes a form on a background queue, then sends it.
  ///
  /// - Parameters:
  ///   - method: The method.
  ///   - URLString: The URL.
  ///   - headers: Header fields. Default: none.
  ///   - multipartFormData: Fills the form. Called on a background queue.
  ///   - encodingMemoryThreshold: A form of this many bytes or more is written to a temporary file, which is removed
  ///     after the request.
  ///   - encodingCompletion: Called on the main queue with the request, or with the error of the encoding.
  open func upload(
    _ method: Method, _ URLString: any URLStringConvertible, headers: [String: String]? = nil,
    multipartFormData: @escaping (MultipartFormData) -> Void,
    encodingMemoryThreshold: UInt64 = Manager.MultipartFormDataEncodingMemoryThreshold,
    encodingCompletion: ((MultipartFormDataEncodingResult) -> Void)?
  ) {
    let prepared = PreparedRequest(method, URLString, headers: headers)
    guard let request = prepared.value else {
      return send(prepared, multipartFormData, encodingMemoryThreshold, encodingCompletion)
    }
    upload(
      request, multipartFormData: multipartFormData, encodingMemoryThreshold: encodingMemoryThreshold,
      encodingCompletion: encodingCompletion)
  }

  /// Fills and encodes a form on a background queue, and sends it with a URL request whose `Content-Type` is replaced.
  open func upload(
    _ URLRequest: any URLRequestConvertible, multipartFormData: @escaping (MultipartFormData) -> Void,
    encodingMemoryThreshold: UInt64 = Manager.MultipartFormDataEncodingMemoryThreshold,
    encodingCompletion: ((MultipartFormDataEncodingResult) -> Void)?
  ) {
    send(PreparedRequest(URLRequest), multipartFormData, encodingMemoryThreshold, encodingCompletion)
  }

  // MARK: Downloads

  /// Makes a request whose response is written to the file that `destination` returns.
  ///
  /// - Parameters:
  ///   - method: The method.
  ///   - URLString: The URL.
  ///   - parameters: The parameters for the query or the body. Default: none.
  ///   - encoding: Default: the query for GET, HEAD and DELETE, otherwise the body.
  ///   - headers: Header fields. Default: none.
  ///   - destination: Returns the destination of the complete file. The handlers get the error of a failed move.
  @discardableResult
  open func download(
    _ method: Method, _ URLString: any URLStringConvertible, parameters: [String: Any]? = nil,
    encoding: ParameterEncoding = .URL, headers: [String: String]? = nil,
    destination: @escaping Request.DownloadFileDestination
  ) -> Request {
    let prepared = PreparedRequest(
      method, URLString, headers: headers, parameters: parameters, encoding: encoding)
    return prepared.value.map { download($0, destination: destination) }
      ?? begin(core.download(prepared, to: coreDestination(destination)), prepared)
  }

  /// Makes a download from a URL request.
  @discardableResult
  open func download(
    _ URLRequest: any URLRequestConvertible, destination: @escaping Request.DownloadFileDestination
  ) -> Request {
    let prepared = PreparedRequest(URLRequest)
    return begin(core.download(prepared, to: coreDestination(destination)), prepared)
  }

  /// Resumes an interrupted download from its ``Request/resumeData``. Other data are an error.
  @discardableResult
  open func download(
    resumeData data: Data, destination: @escaping Request.DownloadFileDestination
  ) -> Request {
    begin(core.download(resumingWith: data, to: coreDestination(destination)), .unknown)
  }

  /// Returns a request, and starts it if ``startRequestsImmediately`` is set.
  func begin(_ core: Alamofire::Request, _ prepared: PreparedRequest) -> Request {
    let request = Request(core, prepared, session)
    if startRequestsImmediately { request.resume() }
    return request
  }
}

private func coreDestination(_ destination: @escaping Request.DownloadFileDestination)
  -> DownloadRequest.Destination
{
  let destination = Boxed(destination)
  return { (destination.value($0, $1), []) }
}

/// The options of the transport. A manager can have other options than the rest of the program.
public typealias TransportOptions = Alamofire::TransportOptions

extension URLSessionConfiguration {
  /// Makes a configuration with the name of a background session. A manager with this configuration behaves like one
  /// with a default configuration: its requests end with the process.
  public static func backgroundSessionConfigurationWithIdentifier(
    _ identifier: String
  ) -> URLSessionConfiguration {
    plainBackground(withIdentifier: identifier)
  }

  // Without it, the function of the current generation would be visible, whose sessions write a journal.
  /// Makes a configuration as ``backgroundSessionConfigurationWithIdentifier(_:)`` does.
  public static func background(withIdentifier identifier: String) -> URLSessionConfiguration {
    plainBackground(withIdentifier: identifier)
  }
}

extension Manager {
  /// The delegate of a manager: it is called for events of tasks, and decides about some of them. Set its closures,
  /// or override methods in a subclass, which take precedence.
  ///
  /// ```swift
  /// manager.delegate.taskWillPerformHTTPRedirection = { session, task, response, request in nil }
  /// ```
  open class SessionDelegate: ClosureSessionDelegate<NSError>, @unchecked Sendable {
    // Unchecked, as its superclass is: it adds nothing.

    /// Makes a delegate without closures.
    public init() {
      super.init(
        ownClass: SessionDelegate.self,
        neededEvents: { $0.taskDidComplete == nil ? $0.events : $0.events.union(.transfers) },
        convertError: generationThreeError)
    }

    /// Called when a task has ended.
    open override func urlSession(
      _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
      super.urlSession(session, task: task, didCompleteWithError: error)
      taskDidComplete?(session, task, error.map(generationThreeError))
    }
  }
}

/// The task of a stream. Foundation's own class of this name can do nothing on Linux.
public typealias URLSessionStreamTask = Alamofire::ByteStreamTask

extension Manager {
  /// Makes a two-way connection to a host and a port, without TLS.
  ///
  /// Its task performs the operations in the order of the calls, and calls handlers on a queue of the manager. Its
  /// `startSecureConnection()` begins TLS; the manager's policies evaluate the server.
  ///
  /// ```swift
  /// let stream = manager.stream(hostName: "mail.example.com", port: 25)
  /// if let task = stream.task as? URLSessionStreamTask {
  ///   task.readData(ofMinLength: 1, maxLength: 512, timeout: 10) { data, isAtEnd, error in
  ///     if let data { print(String(decoding: data, as: UTF8.self)) }
  ///   }
  ///   task.write(Data("QUIT\r\n".utf8), timeout: 10) { error in task.closeWrite() }
  /// }
  /// ```
  ///
  /// The stream ends when both sides are closed, when it fails or is cancelled, and with its manager. Handlers of the
  /// request then get the error, if there is one, and no value; validators are not called.
  ///
  /// The method with an `NSNetService` is missing, because Linux has no such services. So are `captureStreams()` and
  /// `stopSecureConnection()` of the tasks, and the `streamTask…` closures of the delegate: the handlers of reads and
  /// writes report what happened.
  ///
  /// - Parameters:
  ///   - hostName: A name or an address. An invalid one is an error in the handlers.
  ///   - port: From 1 to 65,535.
  @discardableResult
  public func stream(hostName: String, port: Int) -> Request {
    let request = Request(core.byteStream(host: hostName, port: port), session)
    if startRequestsImmediately { request.resume() }
    return request
  }
}

extension Alamofire {
  /// `AlamofireV3.URLSessionStreamTask`, also in files that import FoundationNetworking themselves.
  public typealias URLSessionStreamTask = AlamofireV3::URLSessionStreamTask

  /// Makes a connection to a host and a port; see ``Manager/stream(hostName:port:)``.
  @discardableResult
  public static func stream(hostName: String, port: Int) -> Request {
    Manager.sharedInstance.stream(hostName: hostName, port: port)
  }
}
