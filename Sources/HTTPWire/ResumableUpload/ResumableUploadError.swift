/// A failure of a resumable upload, apart from the failures of any request.
///
/// It is the underlying error of an `AFError`.
public enum ResumableUploadError: Error, Sendable, Equatable {
  /// The server does not speak the protocol that the upload requires.
  case unsupportedByServer
  /// The server named an offset that cannot be right: beyond the length, beyond the sent bytes, or below an offset
  /// that it named before. The offset is `nil` if a response without one had to have one.
  case wrongOffset(Int64?)
  /// The server answered with success, but took no byte.
  case noProgress
  /// The server names another length than the one of the upload.
  case wrongLength(Int64)
  /// The upload is larger, or smaller, than the server accepts.
  case sizeNotAccepted(limit: Int64)
  /// The server no longer has the upload, and may have processed it before. The upload is not sent again, because the
  /// server might process it twice.
  case uploadIsGone
  /// The server has all bytes of the upload, and answered the last ones with this status of a failure.
  case failedAfterUpload(status: Int)
  /// The URL of the upload is missing, invalid, or would leave TLS.
  case unusableUploadURL
  /// The body is an `InputStream`, which cannot be read again from an offset.
  case bodyIsStream
  /// The file has changed since the upload began.
  case fileHasChanged
  /// The data are no checkpoint of this library.
  case invalidCheckpoint
  /// A key of the metadata is empty, not ASCII, or contains a space or a comma.
  case invalidMetadataKey(String)

  /// The failure and its remedy, in one sentence or two.
  package var message: String {
    switch self {
    case .unsupportedByServer:
      "The server does not support this protocol for resumable uploads. Upload without resumable(_:)."
    case .wrongOffset(let offset?):
      "The server named \(offset) as the offset of the upload, which cannot be right."
    case .wrongOffset(nil): "The response of the server has no valid Upload-Offset or Upload-Complete."
    case .noProgress: "The server answered with success, but took no byte of the upload."
    case .wrongLength(let length):
      "The server names \(length) bytes as the length of the upload, which is wrong."
    case .sizeNotAccepted(let limit):
      "The size of the upload is not accepted by the server, whose limit is \(limit) bytes."
    case .uploadIsGone:
      "The server no longer has the upload, and may have processed it. Check that before it is sent again."
    case .failedAfterUpload(let status):
      "The server has the whole upload, but answered its last bytes with status \(status)."
    case .unusableUploadURL: "The URL of the upload is missing, invalid, or would leave TLS."
    case .bodyIsStream: "An InputStream cannot be uploaded resumably; upload a file or data."
    case .fileHasChanged: "The file has changed since the upload began; begin the upload again."
    case .invalidCheckpoint: "This is no checkpoint of an upload; begin the upload again."
    case .invalidMetadataKey(let key): "\"\(key)\" is no valid key of Upload-Metadata."
    }
  }
}
