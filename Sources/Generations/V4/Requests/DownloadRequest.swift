import Alamofire
public import Foundation
public import FoundationNetworking

/// A request whose response is written to a file as it arrives. A ``SessionManager`` creates it.
///
/// Without a destination the file stays where it was written, in the temporary folder; removing it is up to you.
open class DownloadRequest: Request, @unchecked Sendable {
  // Unchecked, as ``Request`` is: its own properties are constants.

  /// Options of the move to the destination.
  public struct DownloadOptions: OptionSet, Sendable {
    /// The folders above the destination are created.
    public static let createIntermediateDirectories = DownloadOptions(rawValue: 1 << 0)
    /// A file that is there is removed before.
    public static let removePreviousFile = DownloadOptions(rawValue: 1 << 1)

    /// The bits of the options.
    public let rawValue: UInt

    /// Makes options from their bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }
  }

  /// Returns the destination of a file: called with the temporary file and the response, when the body is complete
  /// and before validation, on any thread.
  public typealias DownloadFileDestination =
    (_ temporaryURL: URL, _ response: HTTPURLResponse) -> (destinationURL: URL, options: DownloadOptions)

  /// Evaluates a response: the request, the response, where the file lay first and where it was moved.
  public typealias Validation = (URLRequest?, HTTPURLResponse, URL?, URL?) -> ValidationResult

  private let download: Alamofire::DownloadRequest

  init(_ core: Alamofire::DownloadRequest, _ bridge: RequestBridge, of manager: SessionManager) {
    download = core
    super.init(core, bridge, of: manager)
  }

  override func observeEnd() {
    let bridge = bridge
    download.response(queue: download.underlyingQueue, responseSerializer: ResultSerializer(bridge: bridge)) {
      bridge.ended(metrics: $0.metrics, resumeData: $0.resumeData, error: $0.error)
    }
  }

  func check(_ check: @escaping RequestBridge.Check) -> Self {
    if bridge.add(check) { observeEnd() }
    return self
  }

  /// The data with which an interrupted download can be resumed; `nil` if the server does not support it.
  open var resumeData: Data? { download.resumeData }

  /// The progress of the file. Its total is −1 if the length is unknown. A retry makes a new object.
  open var progress: Progress { core.downloadProgress }

  /// Ends the request with `URLError.cancelled`, unless it has ended; ``resumeData`` and the responses contain the
  /// resume data.
  open override func cancel() { cancel(createResumeData: true) }

  /// Ends the request with `URLError.cancelled`, unless it has ended.
  ///
  /// - Parameter createResumeData: Whether the resume data are stored.
  open func cancel(createResumeData: Bool) {
    download.cancel(producingResumeData: createResumeData)
    post(Notification.Name.Task.DidCancel)
  }

  /// Calls `closure` on `queue` (default: main) while the file is received. The last closure set is used.
  @discardableResult
  open func downloadProgress(
    queue: DispatchQueue = DispatchQueue.main, closure: @escaping ProgressHandler
  ) -> Self {
    let relay = ProgressRelay(.down, queue, closure)
    core.downloadProgress(queue: queue) { relay.report($0) }
    bridge.add(relay, of: self)
    return self
  }

  /// Makes a destination in a system folder, under the name that the response suggests. A missing folder is created. If
  /// the file exists already, the download fails.
  ///
  /// - Parameters:
  ///   - directory: The kind of folder. Default: documents.
  ///   - domain:    The domain of the folder. Default: the home folder of the user.
  open class func suggestedDownloadDestination(
    for directory: FileManager.SearchPathDirectory = .documentDirectory,
    in domain: FileManager.SearchPathDomainMask = .userDomainMask
  ) -> DownloadFileDestination {
    let suggested = Alamofire::DownloadRequest.suggestedDownloadDestination(for: directory, in: domain)
    return { temporaryURL, response in (suggested(temporaryURL, response).destinationURL, []) }
  }
}

extension RequestBridge {
  /// Notes the file of a response that asks for credentials. If they are added later, the file of the next response
  /// replaces it.
  func noteMovedFile(_ seen: RequestResult) {
    guard let status = seen.response?.statusCode, CredentialRetry.asksForCredentials(status),
      seen.error == nil, let url = seen.temporaryURL
    else {
      return
    }
    let known = outcome.value
    // Noted once, because the user may replace the file after the first end.
    guard known.destinationURL != nil, known.movedFile == nil, let file = MovedFile(url) else { return }
    outcome.update { $0.movedFile = file }
  }

  /// Returns the destination for the core, and records its result for the responses.
  func notedDestination(
    _ destination: DownloadRequest.DownloadFileDestination?
  ) -> Alamofire::DownloadRequest.Destination? {
    guard let destination else { return nil }
    let (boxed, outcome) = (Boxed(destination), outcome)
    return { temporaryURL, response in
      let (destinationURL, options) = boxed.value(temporaryURL, response)
      // The core would refuse to replace it.
      outcome.value.replacedFile?.remove(at: destinationURL)
      outcome.update {
        $0.temporaryURL = temporaryURL
        $0.destinationURL = destinationURL
      }
      return (
        destinationURL,
        Alamofire::DownloadRequest.Options(rawValue: Int(truncatingIfNeeded: options.rawValue))
      )
    }
  }
}

/// A file that a download has moved to its destination. It is recognized by its number, size and date, because another
/// file of the user's may be at the same path by now.
struct MovedFile: Equatable, Sendable {
  private let device: UInt64
  private let number: UInt64
  private let size: UInt64
  private let modified: Date

  /// Reads the attributes of a file; `nil` if there is none. A link is not followed.
  init?(_ url: URL) {
    guard url.isFileURL, let attributes = try? FileManager.default.attributesOfItem(atPath: url.path),
      attributes[.type] as? FileAttributeType == .typeRegular,
      let device = attributes[.systemNumber] as? NSNumber,
      let number = attributes[.systemFileNumber] as? NSNumber,
      let size = attributes[.size] as? NSNumber, let modified = attributes[.modificationDate] as? Date
    else {
      return nil
    }
    (self.device, self.number) = (device.uint64Value, number.uint64Value)
    (self.size, self.modified) = (size.uint64Value, modified)
  }

  /// Removes the file at a URL if it is this one.
  func remove(at url: URL) {
    if MovedFile(url) == self { try? FileManager.default.removeItem(at: url) }
  }
}
