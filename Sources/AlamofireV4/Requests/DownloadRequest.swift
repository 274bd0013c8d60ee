import Alamofire
import AlamofireGenerations
public import Foundation
public import FoundationNetworking

/// A request whose response is written to a file as it comes. A ``SessionManager`` makes it.
///
/// Without a destination the file stays where it was written, in the temporary folder; removing it is up to you.
open class DownloadRequest: Request, @unchecked Sendable {
  // Unchecked, as ``Request`` is: its own properties are constants.

  /// Options of the move to the destination.
  public struct DownloadOptions: OptionSet, Sendable {
    /// The folders above the destination are made.
    public static let createIntermediateDirectories = DownloadOptions(rawValue: 1 << 0)
    /// A file that is there is removed before.
    public static let removePreviousFile = DownloadOptions(rawValue: 1 << 1)

    /// The bits of the options.
    public let rawValue: UInt

    /// Options from their bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }
  }

  /// Where a file goes: called with the temporary file and the response, when all of it has come and before it is
  /// validated, on any thread.
  public typealias DownloadFileDestination =
    (_ temporaryURL: URL, _ response: HTTPURLResponse) -> (destinationURL: URL, options: DownloadOptions)

  /// Judges a response: the request, the response, where the file lay first and where it was moved.
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

  /// With what the download can go on, once it was ended early; `nil` when the server does not allow it.
  open var resumeData: Data? { download.resumeData }

  /// The progress of the file. Its total is −1 if the length is unknown. A retry makes a new object.
  open var progress: Progress { core.downloadProgress }

  /// Ends the request with `URLError.cancelled`, unless it is over; what it can go on from appears in
  /// ``resumeData`` and in the responses.
  open override func cancel() { cancel(createResumeData: true) }

  /// Ends the request with `URLError.cancelled`, unless it is over.
  ///
  /// - Parameter createResumeData: Whether what it can go on from is kept.
  open func cancel(createResumeData: Bool) {
    download.cancel(producingResumeData: createResumeData)
    post(Notification.Name.Task.DidCancel)
  }

  /// Calls `closure` on `queue` (default: main) as the file comes. The last closure given takes the place of earlier
  /// ones.
  @discardableResult
  open func downloadProgress(
    queue: DispatchQueue = DispatchQueue.main, closure: @escaping ProgressHandler
  ) -> Self {
    let relay = ProgressRelay(.down, queue, closure)
    core.downloadProgress(queue: queue) { relay.report($0) }
    bridge.add(relay, of: self)
    return self
  }

  /// A destination in a system folder, under the name that the response suggests. The folder is made when it does not
  /// exist; a file that is there is an error.
  ///
  /// - Parameters:
  ///   - directory: The kind of folder. Default: documents.
  ///   - domain:    Where to look for it. Default: the user's home.
  open class func suggestedDownloadDestination(
    for directory: FileManager.SearchPathDirectory = .documentDirectory,
    in domain: FileManager.SearchPathDomainMask = .userDomainMask
  ) -> DownloadFileDestination {
    let suggested = Alamofire::DownloadRequest.suggestedDownloadDestination(for: directory, in: domain)
    return { temporaryURL, response in (suggested(temporaryURL, response).destinationURL, []) }
  }
}

extension RequestBridge {
  /// The destination as the core calls it; what it says is noted for the responses.
  func notedDestination(
    _ destination: DownloadRequest.DownloadFileDestination?
  ) -> Alamofire::DownloadRequest.Destination? {
    guard let destination else { return nil }
    let (boxed, outcome) = (Boxed(destination), outcome)
    return { temporaryURL, response in
      let (destinationURL, options) = boxed.value(temporaryURL, response)
      outcome.update {
        $0.temporaryURL = temporaryURL
        $0.destinationURL = destinationURL
      }
      return (destinationURL, Alamofire::DownloadRequest.Options(rawValue: Int(options.rawValue)))
    }
  }
}
