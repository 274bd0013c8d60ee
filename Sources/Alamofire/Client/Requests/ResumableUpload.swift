public import Foundation
import HTTPWire

/// The protocol of a resumable upload, with its delays and limits.
///
/// ```swift
/// var upload = ResumableUpload(.tus)
/// upload.metadata = ["filename": "holiday.mp4"]
/// AF.upload(fileURL, to: "https://example.com/files").resumable(upload)
/// ```
public struct ResumableUpload: Sendable {
  /// The protocol.
  public enum Scheme: Sendable, Equatable {
    /// The server is asked by OPTIONS: tus 1.0 if it creates uploads by tus, otherwise the draft.
    case automatic
    /// The IETF's draft (draft-ietf-httpbis-resumable-upload-05). Servers without it see an ordinary request.
    case draft
    /// tus 1.0. The URL of the request is the one that creates uploads.
    case tus
  }

  /// The protocol. Default: ``Scheme/automatic``.
  public var scheme: Scheme
  /// The number of failures in a row without progress that the request survives. The next one ends it. Default: 5.
  public var maximumFailureCount = 5
  /// The delay after the first failure, in seconds. It doubles with each further failure without progress. It is
  /// shortened at random, by up to a half. Default: 1.
  public var initialDelay: TimeInterval = 1
  /// The longest delay in seconds, also if the server asks for more (`Retry-After`). Default: 60.
  public var maximumDelay: TimeInterval = 60
  /// The most bytes of one request. Smaller limits of the server are respected in any case. The server must support the
  /// protocol, because any other server would mistake the first part for the whole body. Default: `nil`, no limit.
  public var maximumPartSize: Int64?
  /// Whether the request that creates an upload of the draft has the content. Otherwise an empty request is sent first,
  /// which requires a server that supports the draft. Default: `true`.
  public var createsWithContent = true
  /// The value of `Upload-Draft-Interop-Version`. Default: 6.
  public var interopVersion = 6
  /// The metadata of an upload by tus (`Upload-Metadata`). Default: none.
  public var metadata: [String: String] = [:]

  /// Makes the default options of a protocol.
  public init(_ scheme: Scheme = .automatic) { self.scheme = scheme }

  /// The protocol of the server.
  public static var automatic: ResumableUpload { ResumableUpload(.automatic) }
  /// The IETF's draft.
  public static var draft: ResumableUpload { ResumableUpload(.draft) }
  /// tus 1.0.
  public static var tus: ResumableUpload { ResumableUpload(.tus) }

  var policy: Result<UploadResumption.Policy, ResumableUploadError> {
    var policy = UploadResumption.Policy()
    switch scheme {
    case .automatic: break
    case .draft: policy.dialect = .draft
    case .tus: policy.dialect = .tus
    }
    policy.interopVersion = Int64(interopVersion)
    policy.createsWithContent = createsWithContent
    policy.largestPart = maximumPartSize.map { max(1, $0) }
    policy.failureLimit = max(0, maximumFailureCount)
    policy.initialDelay = .retryDelay(initialDelay)
    policy.maximumDelay = .retryDelay(maximumDelay)
    do throws(ResumableUploadError) {
      policy.metadata = try UploadMetadata.field(metadata)
      return .success(policy)
    } catch {
      return .failure(error)
    }
  }
}

extension ResumableUploadError: LocalizedError {
  /// The failure and its remedy.
  public var errorDescription: String? { message }
}

extension ResumableUploadError: NSErrorConvertible {}

extension UploadRequest {
  /// Makes the upload resumable: if it breaks, it continues at the offset that the server names.
  ///
  /// - Each request of the protocol is adapted, and has credentials, cookies and redirects like any other request. Only
  ///   the response to the last one is shown, as the response of the request.
  /// - If the network fails or the server fails temporarily, retriers are asked first. If none of them decides, the
  ///   upload waits and asks the server for the offset.
  /// - A request that creates an upload is not repeated if its response was lost and the server has not named the
  ///   upload. A background session repeats it as long as the server cannot have received all bytes. An upload that the
  ///   server had already created remains there, incomplete.
  /// - Secrets, such as `Authorization` and cookies, are sent only to the origin of the request, as with redirects.
  /// - An `InputStream` cannot be uploaded resumably. The request then fails with
  ///   ``ResumableUploadError/bodyIsStream``.
  /// - ``Request/requests`` and ``Request/allMetrics`` hold only the last request.
  ///
  /// In a background session the upload continues in another process too, with the options of ``ResumableUpload``. The
  /// call has no effect for ``Session/restoredRequests``, which are resumable if they were before.
  ///
  /// Call it before the request is resumed. For an ordinary upload that has begun, a later call concerns the next
  /// attempt. A further call changes the options, unless the upload has begun.
  ///
  /// ```swift
  /// AF.upload(fileURL, to: "https://example.com/files").resumable().validate()
  ///   .response { print($0.result) }
  /// ```
  ///
  /// - Parameter upload: The protocol, delays and limits. Default: the protocol of the server.
  @discardableResult
  public func resumable(_ upload: ResumableUpload = .automatic) -> Self {
    guard body.transfer?.isRestored != true else { return self }
    let added = UploadResumer(upload.policy, transfer: body.transfer)
    let used = body.resumer(orAdd: added)
    // The same object goes on deciding, because a request may be in flight.
    if used === added { core.watchResumption() } else { used.use(upload.policy) }
    return self
  }

  /// The data with which another process can continue the upload: the URL of the upload, and the size and the
  /// modification time of the file. `nil` before the server has named the upload, and for other bodies than files.
  ///
  /// The data contain no credentials, but many servers let anyone who knows the URL continue an upload.
  public var uploadCheckpoint: Data? { body.resumer?.currentCheckpoint }

  /// Calls a closure with ``uploadCheckpoint`` when the server has named the upload. Call it after ``resumable(_:)``.
  ///
  /// - Parameters:
  ///   - queue: The queue of the closure. Default: the main queue.
  ///   - closure: Called once for each upload that the request creates; usually once.
  @preconcurrency
  @discardableResult
  public func onUploadCheckpoint(
    on queue: DispatchQueue = .main, perform closure: @escaping @Sendable (Data) -> Void
  ) -> Self {
    body.resumer?.setCheckpointHandler(queue, closure)
    return self
  }
}

extension Session {
  /// Makes a request that continues the upload of another request, also of another process.
  ///
  /// The request fails with ``ResumableUploadError/fileHasChanged`` if size or modification time of the file differ,
  /// and with ``ResumableUploadError/uploadIsGone`` if the server no longer has the upload.
  ///
  /// - Parameters:
  ///   - checkpoint: The value of ``UploadRequest/uploadCheckpoint``.
  ///   - fileURL: The file.
  ///   - upload: Delays and limits; the protocol comes from the checkpoint.
  ///   - headers: Header fields of the requests, such as credentials; the checkpoint has none. Default: none.
  ///   - interceptor: Adapts and retries this request, after the session's. Default: none.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` for the session's setting.
  public func upload(
    resumingWith checkpoint: Data, file fileURL: URL, as upload: ResumableUpload = .automatic,
    headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil
  ) -> UploadRequest {
    continued(
      checkpoint, .file(fileURL, shouldRemove: false), upload, headers, interceptor, shouldAutomaticallyResume
    )
  }

  /// Makes a request that removes an unfinished upload from the server (DELETE).
  ///
  /// - Parameters:
  ///   - checkpoint: The value of ``UploadRequest/uploadCheckpoint``. The upload should not be under way.
  ///   - headers: Header fields of the request, such as credentials. Default: none.
  ///   - interceptor: Adapts and retries this request, after the session's. Default: none.
  public func removeUpload(
    _ checkpoint: Data, headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil
  ) -> DataRequest {
    continued(checkpoint, .data(Data()), .automatic, headers, interceptor, nil, isRemoved: true)
  }

  private func continued(
    _ checkpoint: Data, _ body: UploadRequest.Uploadable, _ upload: ResumableUpload, _ headers: HTTPHeaders?,
    _ interceptor: (any RequestInterceptor)?, _ shouldAutomaticallyResume: Bool?, isRemoved: Bool = false
  ) -> UploadRequest {
    let transfer = isRemoved ? nil : core.background?.make()
    return self.upload(
      body, with: CheckpointRequest(checkpoint: checkpoint, headers: headers), runsUserCode: true,
      interceptor,
      shouldAutomaticallyResume, .default, transfer: transfer,
      resumer: UploadResumer(upload.policy, checkpoint: checkpoint, isRemoved: isRemoved, transfer: transfer))
  }
}

extension RequestCore {
  /// Prepares for the requests of a resumable upload. Earlier requests are not retained.
  func watchResumption() {
    state.withLock { $0.results.history.value.isForgotten = true }
    add([.interceptors, .adapters, .retriers])
  }
}

/// The last retrier of a resumable upload. It decides if none of the caller's retriers does.
struct UploadRetrier: RequestInterceptor {
  let upload: UploadResumer

  func retry(
    _ request: Request, for session: Session, dueTo error: any Error,
    completion: @escaping @Sendable (RetryResult) -> Void
  ) {
    guard let failure = Self.failure(error, of: request),
      let delay = upload.delay(after: failure, random: .random(in: 0...1))
    else { return completion(.doNotRetry) }
    completion(.retryWithDelay(delay / .seconds(1)))
  }

  private static func failure(_ error: any Error, of request: Request) -> UploadResumption.Failure? {
    guard let error = error.asAFError else { return nil }
    if error.isResponseValidationError { return .response }
    guard let failure = error.underlyingError as? URLError,
      RetryPolicy.defaultRetryableURLErrorCodes.contains(failure.code)
    else { return nil }
    // The error of a `URLProtocol` class may be about another request than the one that creates the upload.
    let isOfEngine = request.session.settings.protocolClasses.isEmpty
    return .network(sentNothing: isOfEngine && unsentCodes.contains(failure.code))
  }

  /// The codes of failures before anything was sent.
  static let unsentCodes: Set<URLError.Code> = [
    .cannotFindHost, .cannotConnectToHost, .dnsLookupFailed, .notConnectedToInternet,
  ]
}
