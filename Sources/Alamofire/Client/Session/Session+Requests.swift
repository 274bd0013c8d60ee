public import Foundation
import FoundationNetworking
import HTTPWire

// All requests of a session at once.
extension Session {
  /// Calls `action` on ``rootQueue`` with the requests that are running then.
  @preconcurrency
  public func withAllRequests(perform action: @escaping @Sendable (Set<Request>) -> Void) {
    let core = core
    rootQueue.async { action(Set(core.activeRequests)) }
  }

  /// Returns the requests that wait or are in flight at this moment, and the connections. Callable from any thread.
  ///
  /// It shows the requests that the engine has: neither requests before their first attempt, nor requests that
  /// `URLProtocol` classes serve.
  public func transportSnapshot() async -> TransportSnapshot { await core.transportSnapshot() }

  /// Cancels the requests that are running, and the streams of bytes and downloads in segments that are not over. Then
  /// calls `completion`.
  ///
  /// - Parameters:
  ///   - queue: The queue of `completion`. Default: the main queue.
  ///   - completion: Called once, when all have been cancelled; their handlers may still be called afterwards.
  @preconcurrency
  public func cancelAllRequests(
    completingOnQueue queue: DispatchQueue = .main, completion: (@Sendable () -> Void)? = nil
  ) {
    for request in core.activeRequests { request.cancel() }
    for stream in core.activeStreams { stream.cancel() }
    if let completion { queue.async(execute: completion) }
  }
}

/// The session of the whole program: `Session.default`.
public let AF = Session.default

// How the factories make their requests: of a description and, for uploads, of a body.
extension Session {
  func download(
    _ convertible: any URLRequestConvertible, runsUserCode: Bool, _ interceptor: (any RequestInterceptor)?,
    _ shouldAutomaticallyResume: Bool?, _ destination: DownloadRequest.Destination?,
    _ downloadable: DownloadRequest.Downloadable? = nil, transfer: BackgroundTransfer? = nil
  ) -> DownloadRequest {
    let transfer = transfer ?? core.background?.make()
    var source: Data?
    if case .resumeData(let data)? = downloadable { source = data }
    let plan = DownloadPlan(
      resuming: source, destination: destination.map { DownloadRequest.move(to: $0) }, transfer: transfer)
    let request = DownloadRequest(
      core.parts(
        of: transfer == nil ? convertible : BackgroundDownload(base: convertible, plan: plan),
        runsUserCode: runsUserCode || transfer != nil, kind: DownloadKind(plan: plan),
        core.interceptor(interceptor, of: transfer), shouldAutomaticallyResume),
      downloadable ?? .request(convertible), plan)
    request.core.useIdentifier(of: transfer)
    setUp(request, transfer)
    return request
  }

  package func upload(
    _ uploadable: any UploadableConvertible, with convertible: any URLRequestConvertible,
    runsUserCode: Bool? = nil, _ interceptor: (any RequestInterceptor)?,
    _ shouldAutomaticallyResume: Bool?, _ fileManager: FileManager
  ) -> UploadRequest {
    upload(
      uploadable, with: convertible, runsUserCode: runsUserCode, interceptor, shouldAutomaticallyResume,
      fileManager, transfer: core.background?.make())
  }

  /// Makes an upload.
  ///
  /// - Parameters:
  ///   - transfer: The journal of the upload; `nil` if it has none.
  ///   - resumer: The decisions about a resumable upload; `nil` for an ordinary one.
  func upload(
    _ uploadable: any UploadableConvertible, with convertible: any URLRequestConvertible,
    runsUserCode: Bool?, _ interceptor: (any RequestInterceptor)?, _ shouldAutomaticallyResume: Bool?,
    _ fileManager: FileManager, transfer: BackgroundTransfer?, resumer: UploadResumer? = nil
  ) -> UploadRequest {
    var isSpent: (@Sendable () -> Bool)?
    if let form = uploadable as? MultipartUploadable { isSpent = { form.isSpent } }
    let body = UploadBody(
      fileManager: fileManager, transfer: transfer, runsUserCode: !(uploadable is UploadRequest.Uploadable),
      isSpent: isSpent
    ) { try uploadable.createUploadable().content }
    let request = UploadRequest(
      core.parts(
        of: transfer.map { BackgroundUpload(base: convertible, transfer: $0) } ?? convertible,
        runsUserCode: runsUserCode ?? convertible.convertsByUserCode, kind: UploadKind(upload: body),
        core.interceptor(interceptor, of: transfer), shouldAutomaticallyResume), uploadable, body)
    request.core.useIdentifier(of: transfer)
    if let resumer {
      _ = body.resumer(orAdd: resumer)
      request.core.watchResumption()
    }
    setUp(request, transfer)
    return request
  }

  private func setUp(_ request: Request, _ transfer: BackgroundTransfer?) {
    // A restored request that waits for its options counts as running only when it is resumed with them.
    guard transfer?.lacksOptions != true else { return }
    request.core.setUp(request, isEager: requestSetup == .eager)
  }

  func stream(
    _ convertible: any URLRequestConvertible, _ cancelsOnStreamError: Bool,
    _ interceptor: (any RequestInterceptor)?, _ shouldAutomaticallyResume: Bool?
  ) -> DataStreamRequest {
    let flow = StreamFlow(executor: core.executor)
    let request = DataStreamRequest(
      core.parts(
        of: convertible, runsUserCode: convertible.convertsByUserCode, kind: StreamKind(flow: flow),
        interceptor, shouldAutomaticallyResume),
      flow: flow, automaticallyCancelOnStreamError: cancelsOnStreamError)
    request.core.setUp(request, isEager: requestSetup == .eager)
    return request
  }
}

/// The parts from which the factories create a request, again for each attempt. A class, because it is passed on often.
final class RequestDescription: URLRequestConvertible {
  typealias Encoding = @Sendable (inout URLRequest) throws -> Void

  private let url: any URLConvertible
  private let method: HTTPMethod
  private let headers: HTTPHeaders?
  private let modifier: Session.RequestModifier?
  private let encode: Encoding?
  /// Whether the conversion runs the caller's code. Parameters may be of any size and any type, so encoding them counts
  /// as such code.
  let runsUserCode: Bool

  init(
    _ url: any URLConvertible, _ method: HTTPMethod, _ headers: HTTPHeaders?,
    _ modifier: Session.RequestModifier?, encode: Encoding? = nil
  ) {
    // Compares the exact type, because a failing cast would cost more than the rest of this function.
    let type = ObjectIdentifier(type(of: url))
    let isPlain =
      type == ObjectIdentifier(URL.self) || type == ObjectIdentifier(String.self)
      || type == ObjectIdentifier(URLComponents.self)
    runsUserCode = modifier != nil || encode != nil || !isPlain
    self.url = url
    self.method = method
    self.headers = headers
    self.modifier = modifier
    self.encode = encode
  }

  /// Returns what encodes parameters into a request. Without parameters, an encoding of the caller's is called, too.
  static func encoding(_ parameters: Parameters?, by encoding: any ParameterEncoding) -> Encoding? {
    guard parameters != nil || !encoding.isBuiltIn else { return nil }
    return { request in request = try encoding.encode(request, with: parameters) }
  }

  /// Returns what encodes a value into a request; `nil` without one.
  static func encoding(_ parameters: (some Encodable & Sendable)?, by encoder: any ParameterEncoder)
    -> Encoding?
  {
    guard let parameters else { return nil }
    return { request in try encoder.encode(parameters, in: &request) }
  }

  func asURLRequest() throws -> URLRequest {
    // The initializer with a `URLConvertible` would copy it.
    var request = URLRequest(url: try url.asURL())
    request.setHead(method, headers)
    try modifier?(&request)
    try encode?(&request)
    return request
  }
}

extension URLRequestConvertible {
  /// Whether the conversion runs the caller's code.
  var convertsByUserCode: Bool {
    // Compares the exact types first, because a failing cast would cost more.
    if Self.self == URLRequest.self { return false }
    guard Self.self == RequestDescription.self, let description = self as? RequestDescription else {
      return true
    }
    return description.runsUserCode
  }
}

extension ParameterEncoding {
  /// Whether the encoding is one of the library, which leaves a request without parameters unchanged.
  fileprivate var isBuiltIn: Bool { Self.self == URLEncoding.self || Self.self == JSONEncoding.self }
}

extension Session {
  /// Makes a request whose body is an asynchronous sequence of bytes, which is iterated once while it is sent.
  ///
  /// - An element is asked for when the one before is sent, or waits in a buffer of about a mebibyte.
  /// - Without a length the body is sent in chunks (RFC 9112 §7.1), or in frames of HTTP/2.
  /// - If the sequence throws, the request fails with its error.
  /// - If the request ends early, such as by a cancellation, the iteration ends, and its task is cancelled.
  /// - The body cannot be sent again. A retry, a redirect that keeps the body or a challenge ends the request with
  ///   `URLError.requestBodyStreamExhausted`, unless none of the body was sent. An iteration ends with its request.
  ///   `retryRequest(_:withDelay:)` then needs a sequence whose iteration had not begun. It may begin while the request
  ///   connects.
  ///
  /// ```swift
  /// let lines = AsyncStream<Data> { continuation in
  ///   for number in 1...3 { continuation.yield(Data("line \(number)\n".utf8)) }
  ///   continuation.finish()
  /// }
  /// AF.upload(lines, to: "https://example.com/log").response { print($0.result) }
  /// ```
  ///
  /// - Parameters:
  ///   - body: The bytes.
  ///   - convertible: The URL; an invalid one fails the request with `AFError.invalidURL`.
  ///   - length: The number of all bytes, for `Content-Length`. A sequence of another length is an error. Default:
  ///     unknown.
  ///   - method: Default: `POST`.
  ///   - headers: Header fields; they override the session's. Default: none.
  ///   - interceptor: Adapts and retries this request, after the session's. Default: none.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` for the session's setting.
  ///   - requestModifier: Changes the request before it is adapted. Default: none.
  public func upload<Body: AsyncSequence & Sendable>(
    _ body: Body, to convertible: any URLConvertible, length: Int64? = nil, method: HTTPMethod = .post,
    headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, requestModifier: RequestModifier? = nil
  ) -> UploadRequest where Body.Element == Data {
    upload(
      body, with: RequestDescription(convertible, method, headers, requestModifier), length: length,
      interceptor: interceptor, shouldAutomaticallyResume: shouldAutomaticallyResume)
  }

  /// Makes a request whose body is an asynchronous sequence of bytes; see
  /// ``upload(_:to:length:method:headers:interceptor:shouldAutomaticallyResume:requestModifier:)``. A body that
  /// `convertible` has is not sent.
  public func upload<Body: AsyncSequence & Sendable>(
    _ body: Body, with convertible: any URLRequestConvertible, length: Int64? = nil,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil
  ) -> UploadRequest where Body.Element == Data {
    upload(
      UploadRequest.Uploadable.stream(SequenceStream(body)),
      with: SequenceRequest(base: convertible, length: length), interceptor, shouldAutomaticallyResume,
      .default)
  }
}
