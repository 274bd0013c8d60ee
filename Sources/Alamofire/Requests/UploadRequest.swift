public import Foundation
import FoundationNetworking
import HTTPWire
import Synchronization

/// A request that sends a body from memory, from a file or from a stream; its response is handled as that of a
/// ``DataRequest``.
///
/// The body never becomes part of the `URLRequest`. A file is read while it is sent and never held in memory. A
/// stream is read on a thread of its own, at most a megabyte ahead of the network, and may block.
///
/// ```swift
/// AF.upload(fileURL, to: "https://httpbin.org/put", method: .put)
///   .uploadProgress { print($0.fractionCompleted) }
///   .validate()
///   .responseData { print($0.result) }
/// ```
public final class UploadRequest: DataRequest, @unchecked Sendable {
  // Unchecked, as ``Request`` is: its own properties are constants.

  /// The source of a body.
  ///
  /// Unchecked, because an `InputStream` is not `Sendable`: do not use the stream elsewhere.
  public enum Uploadable: @unchecked Sendable {
    /// Bytes in memory.
    case data(Data)
    /// A file, and whether it is removed when the request has ended.
    case file(URL, shouldRemove: Bool)
    /// A stream, which can be read once. A retry, a redirect that keeps the body or a challenge ends the request with
    /// an error. The exceptions: the ``UploadableConvertible`` makes another stream for the retry, the session's
    /// delegate returns another one (`needNewBodyStream`), or nothing was sent of it.
    case stream(InputStream)
  }

  /// The value that makes the body, anew for each attempt.
  public var upload: any UploadableConvertible {
    core.body?.convertible ?? Uploadable.data(Data())
  }

  /// The file manager that removes files after the request.
  public var fileManager: FileManager { core.body?.fileManager ?? .default }

  /// The body of the last attempt; `nil` before it was made.
  public var uploadable: Uploadable? { core.state.withLock { $0.extras.uploadable } }
}

/// A value that makes the body of an ``UploadRequest``.
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
  /// Makes the body. Called off the engine's thread, once for each attempt.
  ///
  /// - Throws: Any error; one that is no ``AFError`` is wrapped in `.createUploadableFailed`. Retriers are called for
  ///   it.
  func createUploadable() throws -> UploadRequest.Uploadable
}

/// A body together with the request that sends it.
@preconcurrency
public protocol UploadConvertible: UploadableConvertible & URLRequestConvertible {}

extension UploadRequest.Uploadable: UploadableConvertible {
  /// Returns itself.
  public func createUploadable() throws -> UploadRequest.Uploadable { self }
}

/// The body of an upload.
package final class UploadBody: Sendable {
  let convertible: any UploadableConvertible
  let fileManager: FileManager
  /// Whether making the body runs user code, which may block.
  let runsUserCode: Bool
  /// The upload of a background session; `nil` in others.
  let transfer: BackgroundTransfer?
  private let resumption = Mutex<UploadResumer?>(nil)

  /// The decisions about a resumable upload; `nil` for an ordinary one.
  var resumer: UploadResumer? { resumption.withLock { $0 } }

  /// Returns the decisions, which are the given ones if there were none.
  func resumer(orAdd new: UploadResumer) -> UploadResumer {
    resumption.withLock { resumer in
      let used = resumer ?? new
      resumer = used
      return used
    }
  }

  init(
    convertible: any UploadableConvertible, fileManager: FileManager, transfer: BackgroundTransfer? = nil
  ) {
    self.transfer = transfer
    self.convertible = convertible
    self.fileManager = fileManager
    runsUserCode = !(convertible is UploadRequest.Uploadable)
  }
}
