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
  /// The number of failures in a row without progress after which the request fails. Default: 5.
  public var maximumFailureCount = 5
  /// The delay behind the first failure in seconds. It doubles with each further failure without progress. A random
  /// part of up to the half is left out. Default: 1.
  public var initialDelay: TimeInterval = 1
  /// The longest delay in seconds, also if the server asks for more (`Retry-After`). Default: 60.
  public var maximumDelay: TimeInterval = 60
  /// The most bytes of one request. Smaller limits of the server are kept without it. The server must support the
  /// protocol, because another one would take the first part for the whole. Default: `nil`, no limit.
  public var maximumPartSize: Int64?
  /// Whether the request that creates an upload of the draft has the content. Otherwise an empty request comes first,
  /// for which the server must support the draft. Default: `true`.
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
