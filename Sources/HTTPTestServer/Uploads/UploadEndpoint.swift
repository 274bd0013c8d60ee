public import HTTPWire
import Synchronization

/// A collection of resumable uploads, with scripted faults, for ``Routes/adding(_:at:)``.
///
/// ```swift
/// let uploads = UploadEndpoint(.draft)
/// uploads.enqueue(.cut(afterBytes: 1000), .loseResponse)
/// let server = try HTTPTestServer(routes: Routes.none.adding(uploads, at: "/files"))
/// // …
/// #expect(uploads.uploads.map(\.content) == [bytes])
/// #expect(uploads.processedCount == 1)
/// ```
///
/// It is strict: a request that breaks the rules of its protocol is refused with a status from 400 to 415. An upload is
/// processed when its last byte has arrived.
public final class UploadEndpoint: Sendable {
  /// The protocol of an endpoint.
  public enum Dialect: Sendable, Equatable {
    /// The IETF's draft (draft-ietf-httpbis-resumable-upload-05).
    case draft
    /// tus 1.0 with the extension `creation` and `termination`.
    case tus
  }

  /// A failure of one request. A request with chunks counts as one with content.
  public enum Fault: Sendable, Equatable {
    /// Takes this many bytes of the content of the next request with content, then resets the connection.
    case cut(afterBytes: Int)
    /// Performs the next request other than OPTIONS, and closes the connection without a response.
    case loseResponse
    /// The next request other than OPTIONS is performed well, and the following faults apply to later requests.
    case pass
    /// Answers the next request other than OPTIONS without performing it.
    case status(Int, [HTTPHeader] = [])
    /// Performs the next request with content, and answers with this status.
    case statusAfterContent(Int)
    /// Names this offset to the next HEAD.
    case offset(Int)
    /// Forgets the upload before the next HEAD or PATCH.
    case forget
    /// Changes the length that the next HEAD names.
    case length(Int)
  }

  /// The properties of an endpoint.
  public struct Options: Sendable {
    /// Whether an upload of the draft is announced by a response 104.
    public var sendsInformational = true
    /// The value of `Upload-Draft-Interop-Version`.
    public var interopVersion = 6
    /// The largest upload.
    public var maximumSize: Int?
    /// The largest content of one request.
    public var maximumAppendSize: Int?
    /// Text before the path in `Location`, such as another origin.
    public var locationPrefix = ""
    /// Fields of the response that ends an upload.
    public var finalFields: [HTTPHeader] = []

    /// Makes the default properties.
    public init() {}
  }

  /// An upload.
  public struct Upload: Sendable {
    /// The bytes that have come.
    public internal(set) var content: [UInt8] = []
    /// Whether the last byte has come.
    public internal(set) var isComplete = false
    /// The length that the client announced.
    public internal(set) var length: Int?
    /// The value of `Upload-Metadata`.
    public internal(set) var metadata: String?
    /// Whether the server has lost it, or the client has removed it.
    public internal(set) var isForgotten = false
    /// The number of requests for it. A later request ends the earlier ones, because their clients may be gone.
    var turn = 0
  }

  struct UploadState {
    var uploads: [Upload] = []
    var faults: [Fault] = []
    var processedCount = 0
    var receivedByteCount = 0

    mutating func complete(_ index: Int) {
      guard !uploads[index].isComplete else { return }
      uploads[index].isComplete = true
      processedCount += 1
    }
  }

  /// The protocol of the endpoint.
  public let dialect: Dialect
  let options: Options
  /// The uploads and faults, for the server and tests.
  let state = Mutex(UploadState())

  /// Makes an endpoint without uploads.
  public init(_ dialect: Dialect, _ options: Options = Options()) {
    self.dialect = dialect
    self.options = options
  }

  /// The uploads in the order of their creation, also forgotten ones.
  public var uploads: [Upload] { state.withLock { $0.uploads } }
  /// The number of completely received uploads, plus ordinary requests.
  public var processedCount: Int { state.withLock { $0.processedCount } }
  /// The number of content bytes that were accepted, in total.
  public var receivedByteCount: Int { state.withLock { $0.receivedByteCount } }
  /// The number of faults that have not been applied to a request yet.
  public var pendingFaultCount: Int { state.withLock { $0.faults.count } }

  /// Adds faults, one for each request that it concerns, in their order.
  public func enqueue(_ faults: Fault...) { enqueue(faults) }

  /// Adds faults, one for each request that it concerns, in their order.
  public func enqueue(_ faults: [Fault]) { state.withLock { $0.faults += faults } }
}

/// The part of an endpoint that a request concerns.
struct UploadRoute: Sendable {
  let endpoint: UploadEndpoint
  /// The path that creates uploads.
  let path: String
  /// The number of an upload; `nil` for the path that creates them.
  var index: Int?
}

extension Routes {
  /// Returns a copy with an endpoint for uploads: `path` creates them, and `path/{number}` is one of them.
  public func adding(_ endpoint: UploadEndpoint, at path: String) -> Routes {
    var copy = self
    copy.uploads.append(UploadRoute(endpoint: endpoint, path: path))
    return copy
  }

  /// Returns the endpoint for a path; `nil` if there is none.
  func upload(at path: String) -> UploadRoute? {
    for var route in uploads {
      if path == route.path { return route }
      guard path.hasPrefix(route.path + "/"), let index = Int(path.dropFirst(route.path.count + 1)) else {
        continue
      }
      route.index = index
      return route
    }
    return nil
  }
}
