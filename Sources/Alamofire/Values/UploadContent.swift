import Foundation

/// The body of an upload, as `UploadRequest.Uploadable` shows it.
///
/// Unchecked, because an `InputStream` is not `Sendable`: the attempt that reads the stream is its only user.
enum UploadContent: @unchecked Sendable {
  /// Bytes in memory.
  case data(Data)
  /// A file, and whether it is removed when the request has ended.
  case file(URL, shouldRemove: Bool)
  /// A stream, which can be read once.
  case stream(InputStream)

  var stream: InputStream? {
    if case .stream(let stream) = self { stream } else { nil }
  }
}
