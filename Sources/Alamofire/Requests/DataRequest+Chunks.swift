public import Foundation

extension DataRequest {
  /// Delivers the body of the response in chunks instead of keeping it in memory. Like a response handler it resumes
  /// the request, so add validators before.
  ///
  /// ```swift
  /// AF.request("https://example.com/log")
  ///   .validate()
  ///   .responseChunks(on: queue) { chunk in print("\(chunk.count) more bytes") }
  ///   .response { response in print(response.error ?? "all of it is there") }
  /// ```
  ///
  /// Chunks are delivered in order, one at a time; their boundaries are arbitrary. If the handler is slow, about a
  /// mebibyte is buffered, then the server has to wait. Response handlers are called after the last chunk. These
  /// handlers, validators, ``data`` and monitors see no data; content types are validated by whether there was a chunk.
  /// An error or ``Request/cancel()`` ends the chunks; earlier ones have been delivered, validated or not.
  ///
  /// - Several handlers each get all chunks from the moment they are added; the slowest one determines the speed.
  /// - If a handler is added before the request is resumed, it gets the whole body in chunks. Added later, it may get
  ///   the bytes so far, or the whole body, as one large chunk; added after the end, a kept body. With
  ///   ``TransportOptions/makesRequestsAtOnce``, or an observer of transfers, further bytes still come in chunks.
  /// - Followed redirects and answered challenges have no chunks.
  /// - The cache is neither read nor written.
  /// - While a retrier may retry, a body of a status other than 200 to 299 is kept, up to a mebibyte. It is one chunk
  ///   at the end.
  ///
  /// If the request is retried after chunks were delivered, `onRestart` is called before the first chunk of the new
  /// response. Without `onRestart`, no retrier is called and the request fails, because the chunks of two bodies must
  /// not be mixed.
  ///
  /// - Parameters:
  ///   - queue: The queue of the closures. Default: the main queue.
  ///   - onRestart: Called if the chunks so far are void because the body begins again. Default: none.
  ///   - handler: Called with each chunk.
  @preconcurrency
  @discardableResult
  public func responseChunks(
    on queue: DispatchQueue = .main, onRestart: (@Sendable () -> Void)? = nil,
    perform handler: @escaping @Sendable (_ chunk: Data) -> Void
  ) -> Self {
    core.handOutBody(of: self, on: queue, onRestart: onRestart, handler)
    return self
  }
}
