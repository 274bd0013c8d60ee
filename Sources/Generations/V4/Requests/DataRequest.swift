import Alamofire
public import Foundation
public import FoundationNetworking

/// A request whose response is collected in memory. A ``SessionManager`` creates it.
///
/// ```swift
/// Alamofire.request("https://httpbin.org/get").validate().responseJSON { response in
///   print(response.result.value ?? "nothing")
/// }
/// ```
open class DataRequest: Request, @unchecked Sendable {
  // Unchecked, as ``Request`` is: its own properties are constants.

  /// Evaluates a response: the request, the response, and the body.
  public typealias Validation = (URLRequest?, HTTPURLResponse, Data?) -> ValidationResult

  private let data: Alamofire::DataRequest

  init(_ core: Alamofire::DataRequest, _ bridge: RequestBridge, of manager: SessionManager) {
    data = core
    super.init(core, bridge, of: manager)
  }

  override func observeEnd() {
    let bridge = bridge
    data.response(queue: data.underlyingQueue, responseSerializer: ResultSerializer(bridge: bridge)) {
      bridge.ended(metrics: $0.metrics, resumeData: nil, error: $0.error)
    }
  }

  func check(_ check: @escaping RequestBridge.Check) -> Self {
    if bridge.add(check) { observeEnd() }
    return self
  }

  /// The progress of the body of the response. Its total is −1 if the length is unknown. A retry makes a new object.
  open var progress: Progress { core.downloadProgress }

  /// Calls `closure` with each chunk of the body, in order, on a queue of the manager. The body is not stored: handlers
  /// get no data, and content types are checked as for an empty body. The server waits for a slow closure. Handlers are
  /// called after the last chunk. Several closures each get the chunks from the moment they are added.
  ///
  /// Chunks received before a closure was added are delivered together. A small response other than 2xx is one chunk,
  /// and only if no retrier retries. After a chunk was delivered, no retrier is called: the handlers get the failure.
  @discardableResult
  open func stream(closure: ((Data) -> Void)? = nil) -> Self {
    guard let closure else { return self }
    let boxed = Boxed(closure)
    bridge.outcome.update {
      $0.isStreamed = true
      $0.data = nil
    }
    data.responseChunks(on: core.underlyingQueue) { boxed.value($0) }
    if bridge.waitForChunks() { observeEnd() }
    return self
  }

  /// Calls `closure` on `queue` (default: main) as the body of the response arrives. The last closure given replaces
  /// earlier ones.
  @discardableResult
  open func downloadProgress(
    queue: DispatchQueue = DispatchQueue.main, closure: @escaping ProgressHandler
  ) -> Self {
    let relay = ProgressRelay(.down, queue, closure)
    core.downloadProgress(queue: queue) { relay.report($0) }
    bridge.add(relay, of: self)
    return self
  }
}

/// The last serializer of the core's request. It succeeds if the request has failed, so that the core calls its
/// retriers once for a failure. It throws the failure of a check, for which the core then calls them.
struct ResultSerializer: Alamofire::DataResponseSerializerProtocol,
  Alamofire::DownloadResponseSerializerProtocol
{
  struct Validated: Sendable {}

  let bridge: RequestBridge

  func serialize(
    request: URLRequest?, response: HTTPURLResponse?, data: Data?, error: (any Error)?
  ) throws -> Validated {
    try bridge.validate(
      RequestResult(request: request, response: response, data: data ?? Data(), error: error))
    return Validated()
  }

  func serializeDownload(
    request: URLRequest?, response: HTTPURLResponse?, fileURL: URL?, error: (any Error)?
  ) throws -> Validated {
    let seen = RequestResult(request: request, response: response, error: error, temporaryURL: fileURL)
    bridge.noteMovedFile(seen)
    try bridge.validate(seen)
    return Validated()
  }
}

/// A request that sends a body from memory, from a file or from a stream; its response is handled like a
/// ``DataRequest``'s.
open class UploadRequest: DataRequest, @unchecked Sendable {
  // Unchecked, as ``Request`` is.

  /// The progress of the body that is sent. Its total is −1 if the length is unknown.
  open var uploadProgress: Progress { core.uploadProgress }

  /// Calls `closure` on `queue` (default: main) while the body is sent. The last closure set is used.
  @discardableResult
  open func uploadProgress(
    queue: DispatchQueue = DispatchQueue.main, closure: @escaping ProgressHandler
  ) -> Self {
    let relay = ProgressRelay(.up, queue, closure)
    core.uploadProgress(queue: queue) { relay.report($0) }
    bridge.add(relay, of: self)
    return self
  }
}
