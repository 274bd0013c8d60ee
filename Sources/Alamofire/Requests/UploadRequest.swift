public import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// A request that sends a body from memory, from a file or from a stream; its response is handled as that
/// of a ``DataRequest``.
///
/// The body never becomes part of the `URLRequest`. A file is read as it is sent and never held in memory;
/// a stream is read on a thread of its own, at most a megabyte ahead of the network, and may block.
///
/// ```swift
/// AF.upload(fileURL, to: "https://httpbin.org/put", method: .put)
///   .uploadProgress { print($0.fractionCompleted) }
///   .validate()
///   .responseData { print($0.result) }
/// ```
public final class UploadRequest: DataRequest, @unchecked Sendable {
  // Unchecked, as ``Request`` is: what it adds is constant.

  /// What is uploaded.
  ///
  /// Unchecked, since an `InputStream` is not `Sendable`: hand over one that nobody else uses.
  public enum Uploadable: @unchecked Sendable {
    /// Bytes in memory.
    case data(Data)
    /// A file, and whether it is removed when the request is over.
    case file(URL, shouldRemove: Bool)
    /// A stream. It can be read once: a retry, a redirect that keeps the body or a challenge end the
    /// request with an error that says so, unless the ``UploadableConvertible`` makes another for the retry, or the
    /// session's delegate brings another (`needNewBodyStream`). One of which nothing was sent is sent again.
    case stream(InputStream)
  }

  /// What makes the body, anew for each attempt.
  public var upload: any UploadableConvertible {
    core.body?.convertible ?? Uploadable.data(Data())
  }

  /// The file manager that the request was made with; it removes files that are to be removed.
  public var fileManager: FileManager { core.body?.fileManager ?? .default }

  /// The body of the last attempt; `nil` before it was made.
  public var uploadable: Uploadable? { core.state.withLock { $0.extras.uploadable } }
}

/// Something of which the body of an ``UploadRequest`` can be made.
///
/// ```swift
/// struct Snapshot: UploadableConvertible {
///   var measurements: [Double]
///   func createUploadable() throws -> UploadRequest.Uploadable {
///     .data(try JSONEncoder().encode(measurements))
///   }
/// }
/// ```
@preconcurrency
public protocol UploadableConvertible: Sendable {
  /// The body. Called off the network thread, once for each attempt.
  ///
  /// - Throws: Any error; one that is no ``AFError`` is wrapped in `.createUploadableFailed`. The retriers
  ///   are asked about it.
  func createUploadable() throws -> UploadRequest.Uploadable
}

/// A body together with the request that sends it.
@preconcurrency
public protocol UploadConvertible: UploadableConvertible & URLRequestConvertible {}

extension UploadRequest.Uploadable: UploadableConvertible {
  /// Itself.
  public func createUploadable() throws -> UploadRequest.Uploadable { self }
}

/// What a request core knows of the body that is uploaded.
package final class UploadBody: Sendable {
  let convertible: any UploadableConvertible
  let fileManager: FileManager
  /// Whether making the body runs code of a user, or may take long.
  let runsUserCode: Bool

  init(convertible: any UploadableConvertible, fileManager: FileManager) {
    self.convertible = convertible
    self.fileManager = fileManager
    runsUserCode = !(convertible is UploadRequest.Uploadable)
  }
}
