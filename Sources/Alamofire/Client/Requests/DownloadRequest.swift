public import Foundation
public import FoundationNetworking
import HTTPWire
import Synchronization

/// A request whose response is written to a file, and never held in memory.
///
/// Without a destination the file stays in the temporary folder, under a name that begins with `Alamofire_`, and the
/// caller removes it. A failed transfer leaves no file at the destination. If a validation fails afterwards, the file
/// is already there, so that a retry needs ``Options/removePreviousFile``.
///
/// ```swift
/// AF.download("https://httpbin.org/image/png", to: DownloadRequest.suggestedDownloadDestination())
///   .downloadProgress { print($0.fractionCompleted) }
///   .validate()
///   .responseURL { print($0.result) }
/// ```
public final class DownloadRequest: Request, @unchecked Sendable {
  // Unchecked, as ``Request`` is: its own properties are constants.

  /// The steps before a file is moved to its destination.
  public struct Options: OptionSet, Sendable {
    /// Missing parent folders are created.
    public static let createIntermediateDirectories = Options(rawValue: 1 << 0)
    /// An existing file is replaced. It stays if the new one cannot be moved.
    public static let removePreviousFile = Options(rawValue: 1 << 1)

    /// The bits of the options.
    public let rawValue: Int

    /// Makes options from their bits.
    public init(rawValue: Int) { self.rawValue = rawValue }
  }

  /// A closure that returns the destination of a file. It is called off the engine's thread with the temporary file and
  /// the response, when the body is complete and before validation. Any URL other than a `file:` URL is an error
  /// (``AFError/downloadedFileMoveFailed(error:source:destination:)``). The temporary URL itself is allowed.
  public typealias Destination =
    @Sendable (_ temporaryURL: URL, _ response: HTTPURLResponse) -> (
      destinationURL: URL, options: Options
    )

  /// Checks a complete response and its file.
  public typealias Validation =
    @Sendable (_ request: URLRequest?, _ response: HTTPURLResponse, _ fileURL: URL?) -> ValidationResult

  /// The source of a download.
  public enum Downloadable: Sendable {
    /// The response to a request.
    case request(any URLRequestConvertible)
    /// The rest of an interrupted download.
    case resumeData(Data)
  }

  /// The source of the download.
  public let downloadable: Downloadable

  let plan: DownloadPlan

  init(_ parts: RequestParts, _ downloadable: Downloadable, _ plan: DownloadPlan) {
    self.downloadable = downloadable
    self.plan = plan
    super.init(parts)
  }

  /// The data with which a failed or cancelled download can be resumed. The data exist if the body was not encoded and
  /// the response had a strong entity tag, or a `Last-Modified` before its `Date`. The partial file is in the temporary
  /// folder.
  ///
  /// The data are valid until the download has completed or left newer data, also in another process. A killed process
  /// leaves none, and after a restart of the machine the download begins again. If a download must survive that, save
  /// a ``checkpoint()`` from time to time, or use a background session.
  public var resumeData: Data? { plan.resumeData }

  /// Returns resume data of the running download, without interrupting it. `nil` before the response, after the end, if
  /// the download cannot be resumed, and in a background session, which has a journal.
  ///
  /// It waits until the received bytes are on the disk, so it must not be called on the main thread of an interactive
  /// program. From then on the partial file has a name that no later process removes. If this process is killed,
  /// ``Session/download(resumingWith:interceptor:shouldAutomaticallyResume:to:)`` continues with the last checkpoint.
  /// While this request runs, another download with the data begins again. The file of the last checkpoint stays also
  /// while a retry begins again beside it. A retry of a resumed download continues from it.
  ///
  /// ```swift
  /// let request = session.download("https://example.com/film.mp4", to: destination)
  /// let file = request.serializingDownloadedFileURL()
  /// var next: Int64 = 0
  /// for await progress in request.downloadProgress() where progress.completedUnitCount >= next {
  ///   try request.checkpoint()?.write(to: checkpointFile, options: .atomic)
  ///   next = progress.completedUnitCount + 100_000_000
  /// }
  /// print(await file.result)
  /// ```
  public func checkpoint() -> Data? {
    plan.checkpoint()
  }

  /// The downloaded file; `nil` until it is complete, and if the download was cancelled before its validators ran.
  public var fileURL: URL? { plan.fileURL }

  /// Returns a destination in a system folder, with the file name that the response suggests.
  ///
  /// The name comes from `Content-Disposition` (RFC 6266); otherwise it is the last path component of the URL, or else
  /// the host. It is never a path: if a server sends one, only its last component is used.
  ///
  /// - Parameters:
  ///   - directory: The folder. Default: documents. It is created if it does not exist.
  ///   - domain: The domain of the folder. Default: the user's home.
  ///   - options: The steps before the file is moved.
  public class func suggestedDownloadDestination(
    for directory: FileManager.SearchPathDirectory = .documentDirectory,
    in domain: FileManager.SearchPathDomainMask = .userDomainMask, options: Options = []
  ) -> Destination {
    { temporaryURL, response in
      let files = FileManager.default
      guard let folder = files.urls(for: directory, in: domain).first else { return (temporaryURL, []) }
      try? files.createDirectory(at: folder, withIntermediateDirectories: true)
      // Computed here, because responses that a program makes itself have Foundation's suggestion.
      let name = SuggestedFilename.name(
        contentDisposition: response.value(forHTTPHeaderField: "Content-Disposition"),
        path: response.url?.path(percentEncoded: true) ?? "", host: response.url?.host(percentEncoded: false))
      return (folder.appendingPathComponent(name), options)
    }
  }

  /// Returns `destination` as the plan of a download uses it.
  static func move(to destination: @escaping Destination) -> FileDestination {
    { file, response in
      let (url, options) = destination(file, response)
      return (url, MoveOptions(rawValue: options.rawValue))
    }
  }

  /// Returns a task that continues an interrupted download when it is resumed. The task belongs to `session`, not to
  /// this request, which makes its own tasks.
  ///
  /// With ``Session/session`` of the request's session the engine performs it, as a request without handlers. The
  /// delegate and the monitors are called with the file (`didFinishDownloadingTo`), which the caller has to remove.
  /// Invalid data end it with an error. With another `URLSession` the task is Foundation's, which cannot resume
  /// downloads on Linux.
  ///
  /// - Parameters:
  ///   - data: The ``resumeData`` of an earlier download.
  ///   - session: The session of the task.
  public func task(forResumeData data: Data, using session: URLSession) -> URLSessionTask {
    let own = self.session
    let task = own.facade === session ? own.owner?.downloadTask(resuming: data) : nil
    return task ?? session.downloadTask(withResumeData: data)
  }

  // MARK: Cancelling

  /// Cancels the request; with `true`, ``resumeData`` and the responses contain the resume data.
  @discardableResult
  public func cancel(producingResumeData shouldProduceResumeData: Bool) -> Self {
    if shouldProduceResumeData { plan.requestResumeData() }
    return cancel()
  }

  /// Cancels the request, then calls `completionHandler` with the resume data, `nil` if there are none. The handler is
  /// always called, once, on ``Request/underlyingQueue``, also before the start and after the end.
  @preconcurrency
  @discardableResult
  public func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) -> Self {
    plan.requestResumeData(completionHandler)
    cancel()
    // The end of a run takes the handlers after this state. One of the two finds them.
    guard core.state.withLock({ $0.lifecycle.run == .ended }) else { return self }
    let (handlers, data) = plan.takeResumeDataHandlers()
    underlyingQueue.async { for handler in handlers { handler(data) } }
    return self
  }

  // MARK: Validation

  /// Adds a validator of the response and the file, which is called off the engine's thread.
  @preconcurrency
  @discardableResult
  public func validate(_ validation: @escaping Validation) -> Self {
    // Weak, because the request holds its validators; it exists while they are called.
    add(
      .custom { [weak plan] request, response, _ in validation(request, response, plan?.fileURL) })
  }

  /// Checks that the status code is among `acceptableStatusCodes`.
  @preconcurrency
  @discardableResult
  public func validate<Codes: Sequence & Sendable>(statusCode acceptableStatusCodes: Codes) -> Self
  where Codes.Element == Int {
    validate { _, response, _ in
      ValidationRules.statusCode(response.statusCode, in: acceptableStatusCodes)
        .map { .failure(AFError.responseValidationFailed(reason: $0)) } ?? .success(())
    }
  }

  /// Checks that the content type of a file that is not empty is among `acceptableContentTypes`, which may
  /// hold wildcards.
  @preconcurrency
  @discardableResult
  public func validate<Types: Sequence & Sendable>(
    contentType acceptableContentTypes: @escaping @Sendable @autoclosure () -> Types
  ) -> Self where Types.Element == String {
    validate { _, response, fileURL in
      ValidationRules.contentType(
        response.value(forHTTPHeaderField: "Content-Type"), in: acceptableContentTypes(), ofFileAt: fileURL
      ).map { .failure(AFError.responseValidationFailed(reason: $0)) } ?? .success(())
    }
  }

  /// Checks for a status code of 200 to 299 and a content type that the request's `Accept` allows.
  @discardableResult
  public func validate() -> Self {
    validate(statusCode: 200..<300).validate { request, response, fileURL in
      let acceptable = ValidationRules.acceptableContentTypes(accept: request?.headers["Accept"])
      return ValidationRules.contentType(
        response.value(forHTTPHeaderField: "Content-Type"), in: acceptable, ofFileAt: fileURL
      ).map { .failure(AFError.responseValidationFailed(reason: $0)) } ?? .success(())
    }
  }

  private func add(_ validator: Validator) -> Self {
    core.add(validator)
    return self
  }
}

extension DownloadRequest {
  /// Calls `completionHandler` on `queue` (default: main) with the unprocessed file when the request has finished.
  @preconcurrency
  @discardableResult
  public func response(
    queue: DispatchQueue = .main, completionHandler: @escaping @Sendable (AFDownloadResponse<URL?>) -> Void
  ) -> Self {
    add(Serialization(picking: { $0.fileURL }), queue, completionHandler)
  }

  /// Calls `completionHandler` with the value that `responseSerializer` makes of the file.
  @preconcurrency
  @discardableResult
  public func response<Serializer: DownloadResponseSerializerProtocol>(
    queue: DispatchQueue = .main, responseSerializer: Serializer,
    completionHandler: @escaping @Sendable (AFDownloadResponse<Serializer.SerializedObject>) -> Void
  ) -> Self {
    add(Serialization(download: responseSerializer), queue, completionHandler)
  }

  /// Calls `completionHandler` with the value that `responseSerializer` makes of the file.
  @preconcurrency
  @discardableResult
  public func response<Serializer: ResponseSerializer>(
    queue: DispatchQueue = .main, responseSerializer: Serializer,
    completionHandler: @escaping @Sendable (AFDownloadResponse<Serializer.SerializedObject>) -> Void
  ) -> Self {
    add(Serialization(download: responseSerializer), queue, completionHandler)
  }

  /// Calls `completionHandler` with the URL of the file.
  @preconcurrency
  @discardableResult
  public func responseURL(
    queue: DispatchQueue = .main, completionHandler: @escaping @Sendable (AFDownloadResponse<URL>) -> Void
  ) -> Self {
    response(queue: queue, responseSerializer: URLResponseSerializer(), completionHandler: completionHandler)
  }

  /// Calls `completionHandler` with the bytes of the file; parameters as for
  /// ``DataRequest/responseData(queue:dataPreprocessor:emptyResponseCodes:emptyRequestMethods:completionHandler:)``.
  @preconcurrency
  @discardableResult
  public func responseData(
    queue: DispatchQueue = .main,
    dataPreprocessor: any DataPreprocessor = DataResponseSerializer.defaultDataPreprocessor,
    emptyResponseCodes: Set<Int> = DataResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = DataResponseSerializer.defaultEmptyRequestMethods,
    completionHandler: @escaping @Sendable (AFDownloadResponse<Data>) -> Void
  ) -> Self {
    response(
      queue: queue,
      responseSerializer: DataResponseSerializer(
        dataPreprocessor: dataPreprocessor, emptyResponseCodes: emptyResponseCodes,
        emptyRequestMethods: emptyRequestMethods), completionHandler: completionHandler)
  }

  /// Calls `completionHandler` with the text of the file.
  @preconcurrency
  @discardableResult
  public func responseString(
    queue: DispatchQueue = .main,
    dataPreprocessor: any DataPreprocessor = StringResponseSerializer.defaultDataPreprocessor,
    encoding: String.Encoding? = nil,
    emptyResponseCodes: Set<Int> = StringResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = StringResponseSerializer.defaultEmptyRequestMethods,
    completionHandler: @escaping @Sendable (AFDownloadResponse<String>) -> Void
  ) -> Self {
    response(
      queue: queue,
      responseSerializer: StringResponseSerializer(
        dataPreprocessor: dataPreprocessor, encoding: encoding, emptyResponseCodes: emptyResponseCodes,
        emptyRequestMethods: emptyRequestMethods), completionHandler: completionHandler)
  }

  /// Calls `completionHandler` with the value that the file is decoded as.
  @preconcurrency
  @discardableResult
  public func responseDecodable<Value: Decodable & Sendable>(
    of type: Value.Type = Value.self, queue: DispatchQueue = .main,
    dataPreprocessor: any DataPreprocessor = DecodableResponseSerializer<Value>.defaultDataPreprocessor,
    decoder: any DataDecoder = defaultJSONDecoder,
    emptyResponseCodes: Set<Int> = DecodableResponseSerializer<Value>.defaultEmptyResponseCodes,
    emptyRequestMethods: Set<HTTPMethod> = DecodableResponseSerializer<Value>.defaultEmptyRequestMethods,
    completionHandler: @escaping @Sendable (AFDownloadResponse<Value>) -> Void
  ) -> Self {
    response(
      queue: queue,
      responseSerializer: DecodableResponseSerializer<Value>(
        dataPreprocessor: dataPreprocessor, decoder: decoder, emptyResponseCodes: emptyResponseCodes,
        emptyRequestMethods: emptyRequestMethods), completionHandler: completionHandler)
  }

  func add<Value: Sendable>(
    _ serialization: Serialization<Value>, _ queue: DispatchQueue,
    _ completion: @escaping @Sendable (AFDownloadResponse<Value>) -> Void
  ) -> Self {
    core.add(
      QueueSink<DownloadHandler>(queue: queue, serialization: serialization, completion: completion),
      for: self)
    return self
  }
}
