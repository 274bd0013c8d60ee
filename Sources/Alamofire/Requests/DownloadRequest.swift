public import Foundation
public import FoundationNetworking
import HTTPWire
import Synchronization

/// A request whose response is written to a file as it comes, and never held in memory.
///
/// Without a destination the file stays in the temporary folder, under a name that begins with `Alamofire_`;
/// removing it is up to you. A transfer that fails leaves no file at the destination. One that comes to its end
/// does, also when a validation fails afterwards: a retry then needs ``Options/removePreviousFile``.
///
/// ```swift
/// AF.download("https://httpbin.org/image/png", to: DownloadRequest.suggestedDownloadDestination())
///   .downloadProgress { print($0.fractionCompleted) }
///   .validate()
///   .responseURL { print($0.result) }
/// ```
public final class DownloadRequest: Request, @unchecked Sendable {
  // Unchecked, as ``Request`` is: what it adds is constant.

  /// What happens on the way to the destination.
  public struct Options: OptionSet, Sendable {
    /// The folders above the destination are made.
    public static let createIntermediateDirectories = Options(rawValue: 1 << 0)
    /// A file that is there is removed before.
    public static let removePreviousFile = Options(rawValue: 1 << 1)

    /// The bits of the options.
    public let rawValue: Int

    /// Options from their bits.
    public init(rawValue: Int) { self.rawValue = rawValue }
  }

  /// Where a file goes: called off the network thread with the temporary file and the response, when all of
  /// it has come and before it is validated. A URL that is no `file:` URL is an error
  /// (``AFError/downloadedFileMoveFailed(error:source:destination:)``); the temporary file itself may stay where it is.
  public typealias Destination =
    @Sendable (_ temporaryURL: URL, _ response: HTTPURLResponse) -> (
      destinationURL: URL, options: Options
    )

  /// A check of a complete response and its file.
  public typealias Validation =
    @Sendable (_ request: URLRequest?, _ response: HTTPURLResponse, _ fileURL: URL?) -> ValidationResult

  /// What is downloaded.
  public enum Downloadable: Sendable {
    /// The response to a request.
    case request(any URLRequestConvertible)
    /// The rest of a download that was broken off.
    case resumeData(Data)
  }

  /// What is downloaded.
  public var downloadable: Downloadable { core.download?.downloadable ?? .request(core.convertible) }

  /// What a broken or cancelled download can go on from: there is some if the server gives a strong entity
  /// tag, or a date of last modification before that of its answer, and the body was not encoded. Its file
  /// lies in the temporary folder.
  ///
  /// It stays good until the download has ended or left other data, also in another process. A process that
  /// is killed leaves none: save what ``cancel(byProducingResumeData:)`` gives from time to time, and go on
  /// with that, where a download has to survive it.
  public var resumeData: Data? { core.state.withLock { $0.extras.resumeData } }

  /// Where the file lies; `nil` until all of it has come, and when the download was cancelled before its validators had
  /// run.
  public var fileURL: URL? { core.state.withLock { $0.extras.fileURL } }

  /// A destination in a system folder, under the name that the response suggests.
  ///
  /// The name is that of `Content-Disposition` (RFC 6266), else the last part of the URL's path, else its host. It is
  /// never a path: of one that a server sends, the last part counts.
  ///
  /// - Parameters:
  ///   - directory: The kind of folder. Default: documents. It is made when it does not exist.
  ///   - domain: Where to look for it. Default: the user's home.
  ///   - options: What happens on the way.
  public class func suggestedDownloadDestination(
    for directory: FileManager.SearchPathDirectory = .documentDirectory,
    in domain: FileManager.SearchPathDomainMask = .userDomainMask, options: Options = []
  ) -> Destination {
    { temporaryURL, response in
      let files = FileManager.default
      guard let folder = files.urls(for: directory, in: domain).first else { return (temporaryURL, []) }
      try? files.createDirectory(at: folder, withIntermediateDirectories: true)
      // Responses that a program makes itself suggest what Foundation finds.
      let name = SuggestedFilename.name(
        contentDisposition: response.value(forHTTPHeaderField: "Content-Disposition"),
        path: response.url?.path(percentEncoded: true) ?? "", host: response.url?.host(percentEncoded: false))
      return (folder.appendingPathComponent(name), options)
    }
  }

  /// A task that goes on with a download that was broken off, once it is resumed. It belongs to `session` and not to
  /// this request, which makes its own tasks.
  ///
  /// With ``Session/session`` of the request's own session the engine does the work, as a request without handlers:
  /// the delegate and the monitors are told where the file is (`didFinishDownloadingTo`), and removing it is up to
  /// you. Data that name no download end it with an error. With another `URLSession` the task is Foundation's, which
  /// cannot do it on Linux.
  ///
  /// - Parameters:
  ///   - data: What an earlier download left as ``resumeData``.
  ///   - session: The session of the task.
  public func task(forResumeData data: Data, using session: URLSession) -> URLSessionTask {
    let own = core.session
    let task = own.facade === session ? own.owner?.downloadTask(resuming: data) : nil
    return task ?? session.downloadTask(withResumeData: data)
  }

  // MARK: Cancelling

  /// Cancels; with `true`, what it can go on from appears in ``resumeData`` and in the responses.
  @discardableResult
  public func cancel(producingResumeData shouldProduceResumeData: Bool) -> Self {
    if shouldProduceResumeData { core.state.withLock { $0.extras.wantsResumeData = true } }
    return cancel()
  }

  /// Cancels, then calls `completionHandler` with what the download can go on from, `nil` if there is
  /// nothing. It is always called, once, on ``Request/underlyingQueue``: also before the start and after the
  /// end.
  @preconcurrency
  @discardableResult
  public func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) -> Self {
    let queue = underlyingQueue
    let (isOver, data) = core.state.withLock { state in
      state.extras.wantsResumeData = true
      let isOver = state.lifecycle.run == .ended
      if !isOver { state.extras.resumeDataHandlers.append(completionHandler) }
      return (isOver, state.extras.resumeData)
    }
    guard isOver else { return cancel() }
    queue.async { completionHandler(data) }
    return self
  }

  // MARK: Validation

  /// Checks the response by a closure of yours, off the network thread.
  @preconcurrency
  @discardableResult
  public func validate(_ validation: @escaping Validation) -> Self {
    // Weak, since the core holds its validators; it lives as long as they are asked.
    add(
      .custom { [weak core] request, response, _ in
        validation(request, response, core?.state.withLock { $0.extras.fileURL })
      })
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
    core.state.withLock { $0.validators.append(validator) }
    return self
  }
}
