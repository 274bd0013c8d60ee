public import Foundation
public import FoundationNetworking
import HTTPSystem
import HTTPWire

/// A download that transfers ranges with several requests at a time, into one file.
///
/// It is for servers that limit the rate of each connection, and for long downloads that have to survive the end of the
/// process. The bytes are written to a file next to the destination, with a record of the ranges received so far. A
/// later download with the same URL and destination continues from them.
///
/// ```swift
/// let download = AF.segmentedDownload("https://example.com/image.iso", to: fileURL)
/// for await progress in download.progress() {
///   print(progress.completedBytes, progress.bytesPerSecond ?? 0)
/// }
/// let file = try await download.value
/// ```
public final class SegmentedDownload: Sendable {
  /// The state of the transfer.
  public struct Progress: Sendable, Equatable {
    /// The number of bytes in the file. It only decreases if ``restartCount`` increases.
    public internal(set) var completedBytes: Int64 = 0
    /// The length of the file; `nil` if it is not known.
    public internal(set) var totalBytes: Int64?
    /// The rate of the last eight seconds; `nil` if it is not known yet.
    public internal(set) var bytesPerSecond: Double?
    /// The number of connections that transfer bytes.
    public internal(set) var connectionCount = 0
    /// The number of times that the download began again with the first byte. The reason is that the file on the server
    /// changed, or that one stream without ranges ended early.
    public internal(set) var restartCount = 0

    /// The time until the end at the current rate; `nil` if it is not known.
    public var remainingTime: Duration? {
      guard let totalBytes, let bytesPerSecond, bytesPerSecond > 0 else { return nil }
      return Self.time(of: totalBytes - completedBytes, at: bytesPerSecond)
    }

    /// Returns the time in which bytes are transferred. A duration has a longest value, and a server may announce any
    /// length.
    package static func time(of bytes: Int64, at bytesPerSecond: Double) -> Duration {
      .seconds(min(Double(bytes) / bytesPerSecond, 1e15))
    }

    /// The completed part, from 0 to 1; 0 if the length is not known.
    public var fractionCompleted: Double {
      guard let totalBytes, totalBytes > 0 else { return 0 }
      return Double(completedBytes) / Double(totalBytes)
    }
  }

  /// A mirror that was no longer used, with the reason.
  public struct DroppedMirror: Sendable, Equatable {
    /// The reasons why a mirror is dropped.
    public enum Reason: Sendable, Equatable {
      /// The file of the mirror has another length or another validator, and no checksum was given.
      case differs
      /// The mirror sends no ranges, or other ranges than requested.
      case hasNoRanges
      /// The mirror refused a request with this status.
      case status(Int)
      /// The requests to the mirror failed several times, or in a way that does not pass.
      case failed
    }

    /// The position in the list of mirrors, from 0.
    public let index: Int
    /// The reason.
    public let reason: Reason

    /// Makes a dropped mirror.
    public init(index: Int, reason: Reason) {
      self.index = index
      self.reason = reason
    }
  }

  /// The errors that only downloads in segments have, as underlying errors of `AFError.sessionTaskFailed`.
  public enum Failure: Error, Sendable, Equatable {
    /// The file does not have the expected checksum. It was removed.
    case checksumMismatch(expected: FileChecksum, actual: String)
    /// The file on the server changed again after the download had begun again.
    case resourceChanged
    /// Another download, perhaps of another process, writes to the same file.
    case fileInUse(URL)
    /// The request is not a `GET` without a body and without a `Range` field.
    case unsuitableRequest
    /// The destination is not a file URL.
    case unsuitableDestination(URL)
  }

  /// The outcome of a download.
  public struct Response: Sendable {
    /// The URL of the file, or the error.
    public let result: Result<URL, AFError>
    /// The last response that a segment received.
    public let response: HTTPURLResponse?
    /// The state at the end.
    public let progress: Progress
    /// The mirrors that were dropped.
    public let droppedMirrors: [DroppedMirror]

    /// The URL of the file; `nil` after a failure.
    public var fileURL: URL? { try? result.get() }
    /// The error; `nil` after a success.
    public var error: AFError? {
      if case .failure(let error) = result { error } else { nil }
    }
  }

  let core: SegmentedDownloadCore

  init(_ core: SegmentedDownloadCore) {
    self.core = core
  }

  /// The URL of the complete file.
  public var destination: URL { core.destination }
  /// The partial file, which exists until the download is complete.
  public var partialFileURL: URL { core.partialFileURL }
  /// The current state.
  public var currentProgress: Progress { core.currentProgress }

  // MARK: Control

  /// Starts or continues the download. Has no effect after its end.
  @discardableResult
  public func resume() -> Self {
    core.resume()
    return self
  }

  /// Suspends all segments until ``resume()``. Has no effect after the end.
  ///
  /// The session retains a download that was started, also while it is suspended. Cancel it if it is not to be resumed.
  @discardableResult
  public func suspend() -> Self {
    core.suspend()
    return self
  }

  /// Ends the download with `AFError.explicitlyCancelled`. The partial file stays, so that a later download can
  /// continue it, unless the server sends no ranges. Has no effect after the end.
  @discardableResult
  public func cancel() -> Self {
    core.cancel()
    return self
  }

  // MARK: Credentials

  /// Answers challenges with a user name and a password, as ``Request/authenticate(username:password:persistence:)``
  /// does for each segment. Mirrors of another origin do not get them. Has to be called before the start.
  ///
  /// ```swift
  /// AF.segmentedDownload("https://example.com/private.iso", to: fileURL)
  ///   .authenticate(username: "ann", password: secret)
  ///   .response { print($0.result) }
  /// ```
  @discardableResult
  public func authenticate(
    username: String, password: String, persistence: URLCredential.Persistence = .forSession
  ) -> Self {
    authenticate(with: URLCredential(user: username, password: password, persistence: persistence))
  }

  /// Answers challenges with `credential`, as ``Request/authenticate(with:)`` does for each segment. Mirrors of another
  /// origin do not get it. Has to be called before the start.
  @discardableResult
  public func authenticate(with credential: URLCredential) -> Self {
    _ = core.state.withLock { replace(&$0.credential, with: credential) }
    return self
  }

  // MARK: Progress

  /// Calls `closure` on `queue` (default: main) with the progress, about ten times a second, and at the end.
  @preconcurrency
  @discardableResult
  public func downloadProgress(
    queue: DispatchQueue = .main, closure: @escaping @Sendable (Progress) -> Void
  ) -> Self {
    core.addProgressHandler { progress in queue.async { closure(progress) } }
    return self
  }

  // MARK: Response

  /// Calls `completionHandler` on `queue` (default: main) with the outcome, once. Starts the download if the session
  /// starts requests immediately.
  @preconcurrency
  @discardableResult
  public func response(
    queue: DispatchQueue = .main, completionHandler: @escaping @Sendable (Response) -> Void
  ) -> Self {
    core.addHandler { response in queue.async { completionHandler(response) } }
    return self
  }
}

/// The expected hash of a downloaded file.
public enum FileChecksum: Sendable, Equatable {
  /// The SHA-256, as 64 hexadecimal digits.
  case sha256(String)
  /// The SHA-512, as 128 hexadecimal digits.
  case sha512(String)

  var digest: FileDigest? {
    switch self {
    case .sha256(let text): FileDigest(.sha256, hex: text)
    case .sha512(let text): FileDigest(.sha512, hex: text)
    }
  }

  /// The hexadecimal digits.
  var text: String {
    switch self {
    case .sha256(let text), .sha512(let text): text
    }
  }

  /// The name of the algorithm.
  var name: String {
    switch self {
    case .sha256: "SHA-256"
    case .sha512: "SHA-512"
    }
  }

  /// The number of digits that the algorithm has.
  var digitCount: Int {
    switch self {
    case .sha256: 64
    case .sha512: 128
    }
  }

  init(_ digest: FileDigest) {
    self = digest.algorithm == .sha512 ? .sha512(digest.hex) : .sha256(digest.hex)
  }
}

extension SegmentedDownload.Failure: NSErrorConvertible {}

extension SegmentedDownload.Failure: LocalizedError {
  /// The message of the error.
  public var errorDescription: String? {
    switch self {
    case .checksumMismatch(let expected, _) where expected.digest == nil:
      "The checksum \"\(expected.text)\" is not a \(expected.name): \(expected.digitCount) hexadecimal digits are needed."
    case .checksumMismatch(let expected, let actual):
      "The downloaded file has the \(expected.name) \(actual), not \(expected.text). It was removed; download it again."
    case .resourceChanged:
      "The file on the server changed twice during the download. Download it again when it has settled."
    case .fileInUse(let url):
      "Another download writes to \(url.path). Wait for its end, or choose another destination."
    case .unsuitableRequest:
      "Only a GET request without a body and a Range field can be divided into segments. Use download(_:to:) for other "
        + "requests."
    case .unsuitableDestination(let url):
      "The destination \(url.shownText) is not a file URL."
    }
  }
}

extension Session {
  /// Makes a download in segments from a URL. See ``SegmentedDownload``.
  ///
  /// ```swift
  /// let download = AF.segmentedDownload(
  ///   "https://example.com/image.iso", mirrors: ["https://mirror.example.com/image.iso"],
  ///   checksum: .sha256("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"), to: fileURL)
  /// ```
  ///
  /// - Parameters:
  ///   - convertible: The URL of the file.
  ///   - headers: Header fields of the requests. Mirrors of another origin do not get them.
  ///   - segments: The number of requests at a time. `httpMaximumConnectionsPerHost` limits the connections of a host.
  ///   - minimumSegmentSize: The smallest number of bytes that justifies another request.
  ///   - mirrors: Other URLs of the same file.
  ///   - checksum: The expected hash of the file. Default: the hash in the response, if it has one.
  ///   - interceptor: Adapts the request of each segment, after the session's. Default: none.
  ///   - destination: The file URL of the complete file.
  ///   - options: The steps before the file is moved to the destination.
  public func segmentedDownload(
    _ convertible: any URLConvertible, headers: HTTPHeaders? = nil, segments: Int = 4,
    minimumSegmentSize: Int = 1 << 20, mirrors: [any URLConvertible] = [], checksum: FileChecksum? = nil,
    interceptor: (any RequestInterceptor)? = nil, to destination: URL, options: DownloadRequest.Options = []
  ) -> SegmentedDownload {
    segmentedDownload(
      RequestDescription(convertible, .get, headers, nil), segments: segments,
      minimumSegmentSize: minimumSegmentSize, mirrors: mirrors, checksum: checksum, interceptor: interceptor,
      to: destination, options: options)
  }

  /// Makes a download in segments of a `URLRequest` or a value that becomes one. See ``SegmentedDownload``.
  ///
  /// - Parameters:
  ///   - convertible: Makes the `URLRequest`, again for each segment. It has to be a `GET` without a body.
  ///   - segments: The number of requests at a time. `httpMaximumConnectionsPerHost` limits the connections of a host.
  ///   - minimumSegmentSize: The smallest number of bytes that justifies another request.
  ///   - mirrors: Other URLs of the same file.
  ///   - checksum: The expected hash of the file. Default: the hash in the response, if it has one.
  ///   - interceptor: Adapts the request of each segment, after the session's. Default: none.
  ///   - destination: The file URL of the complete file.
  ///   - options: The steps before the file is moved to the destination.
  public func segmentedDownload(
    _ convertible: any URLRequestConvertible, segments: Int = 4, minimumSegmentSize: Int = 1 << 20,
    mirrors: [any URLConvertible] = [], checksum: FileChecksum? = nil,
    interceptor: (any RequestInterceptor)? = nil, to destination: URL, options: DownloadRequest.Options = []
  ) -> SegmentedDownload {
    let transfer = SegmentedTransfer(
      sources: 1 + mirrors.count, connections: segments, minimum: minimumSegmentSize,
      hasChecksum: checksum != nil, lengthLimit: core.settings.profile.options.bodySizeLimit)
    return SegmentedDownload(
      SegmentedDownloadCore(
        session: core,
        source: SegmentedDownloadSource(convertible: convertible, mirrors: mirrors, interceptor: interceptor),
        target: SegmentedDownloadTarget(destination: destination, options: options, checksum: checksum),
        transfer: transfer))
  }
}

/// The servers of a download in segments.
struct SegmentedDownloadSource: Sendable {
  let convertible: any URLRequestConvertible
  let mirrors: [any URLConvertible]
  let interceptor: (any RequestInterceptor)?
}

/// The file of a download in segments.
struct SegmentedDownloadTarget: Sendable {
  let destination: URL
  let options: DownloadRequest.Options
  let checksum: FileChecksum?

  var partialFileURL: URL {
    URL(
      fileURLWithPath: CompanionName.path(
        beside: destination.path, suffix: CompanionName.Ending.partial.rawValue))
  }
  var recordPath: String {
    CompanionName.path(
      beside: destination.path, suffix: CompanionName.Ending.ranges.rawValue,
      reserving: PartialFile.recordSuffixLength)
  }
}

/// The request of a segment, created again for each attempt, so that a retry asks only for the bytes that are missing.
struct SegmentConvertible: URLRequestConvertible {
  let core: SegmentedDownloadCore
  let request: SegmentedTransfer.SegmentRequest

  func asURLRequest() throws -> URLRequest {
    var made = try core.source.request(of: request.source)
    guard made.isChangeable else { return made }
    let question = core.question(of: request.id)
    if let range = question.range {
      // The failed attempt has already received all bytes, or the request is not needed any more.
      guard !range.isEmpty else { throw CancellationError() }
      made.headers.update(name: "Range", value: "bytes=\(range.lowerBound)-\(range.upperBound - 1)")
      if let condition = question.condition { made.headers.update(name: "If-Range", value: condition) }
    }
    // Ranges of an encoded representation do not count the bytes of the file.
    if made.headers["Accept-Encoding"] == nil {
      made.headers.update(name: "Accept-Encoding", value: "identity")
    }
    return made
  }
}

extension SegmentedDownloadSource {
  /// Returns the request of a source, without the fields of a segment.
  func request(of index: Int) throws -> URLRequest {
    let first = try convertible.asURLRequest()
    guard first.httpMethod ?? "GET" == "GET", first.httpBody == nil, first.httpBodyStream == nil,
      first.headers["Range"] == nil
    else {
      throw AFError.sessionTaskFailed(error: SegmentedDownload.Failure.unsuitableRequest)
    }
    guard index > 0 else { return first }
    let url = try mirrors[index - 1].asURL()
    var request = URLRequest(url: url, cachePolicy: first.cachePolicy, timeoutInterval: first.timeoutInterval)
    request.httpShouldHandleCookies = first.httpShouldHandleCookies
    request.mainDocumentURL = first.mainDocumentURL
    // The fields may have credentials of the first server.
    if Self.origin(of: first.url) == Self.origin(of: url) { request.headers = first.headers }
    return request
  }

  /// Whether a source has the origin of the first one, and so may get its credentials.
  func hasFirstOrigin(_ index: Int) -> Bool {
    guard index > 0 else { return true }
    guard let first = try? convertible.asURLRequest(), let url = try? mirrors[index - 1].asURL() else {
      return false
    }
    return Self.origin(of: first.url) == Self.origin(of: url)
  }

  private static func origin(of url: URL?) -> Origin? {
    url.flatMap { WireTarget($0.absoluteString) }?.origin
  }
}

extension DownloadRequest.Options {
  /// A file that a download in segments replaces leaves its permissions to the new one. The command `af` needs that,
  /// because it writes to files of the user.
  package static let keepsPermissions = Self(rawValue: 1 << 16)
}
