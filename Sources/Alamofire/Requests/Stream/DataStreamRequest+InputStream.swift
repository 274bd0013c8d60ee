public import Foundation

extension DataStreamRequest {
  /// The body as an `InputStream`, and resumes the request.
  ///
  /// Open it and read it, on a thread that may wait: `read` blocks until bytes come. It returns 0 at the end, and −1
  /// when the request has failed; `streamError` then tells why. The server waits while nobody reads. Closing or
  /// releasing the stream before its end cancels the request. A stream cannot take back what a failed attempt has given,
  /// so a retry after that is an error. It serves no run loop and no delegate.
  ///
  /// - Parameter bufferSize: How many bytes may wait to be read. What counts is the larger of this and the request's
  ///   own limit of about a mebibyte. Default: 1024.
  /// - Returns: The stream, never `nil`; an optional for the sake of upstream's signature.
  public func asInputStream(bufferSize: Int = 1024) -> InputStream? {
    let stream = ResponseInputStream(self, bufferSize: bufferSize)
    resume()
    return stream
  }
}
