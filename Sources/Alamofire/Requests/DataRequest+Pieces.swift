public import Foundation

extension DataRequest {
  /// Hands the body of the response out piece by piece, as it comes, in place of keeping it: for bodies that are larger
  /// than the memory. Like a response handler it resumes the request, so add validators before.
  ///
  /// ```swift
  /// AF.request("https://example.com/log")
  ///   .validate()
  ///   .responsePieces(on: queue) { piece in print("\(piece.count) more bytes") }
  ///   .response { response in print(response.error ?? "all of it is there") }
  /// ```
  ///
  /// Pieces come in their order, one at a time, cut wherever the network cut them. The handler may be slow: about a
  /// mebibyte waits for it, then the server has to wait. Response handlers are served when it has had the last piece,
  /// and find no data, nor do validators, ``data`` and monitors; content types are judged by whether a piece has come.
  /// An error or ``Request/cancel()`` ends the pieces; what came before has been handed out, validated or not.
  ///
  /// - Several handlers each get all pieces from the moment on at which they are there; the slowest one counts.
  /// - Added before the request is resumed, a handler gets all of the body as it comes. Added later it may get what has
  ///   come until then, or all of it, as one large piece; added after the end, a body that was kept. With
  ///   ``TransportOptions/makesRequestsAtOnce``, or somebody who sees transfers, the rest still comes in pieces.
  /// - Redirects that are followed and challenges that are answered have no pieces.
  /// - Responses are neither answered from the cache nor stored in it.
  /// - The body of a response other than 200 to 299 is kept, up to a mebibyte, as long as a retrier may want to send the
  ///   request again, and is one piece at the end.
  ///
  /// When the request is to be sent again after pieces were handed out, `onRestart` is called before the first piece of
  /// the new response. Without one, retriers are not asked any more and the request ends with its failure: one body never
  /// follows a part of another one unnoticed.
  ///
  /// - Parameters:
  ///   - queue: Where the handlers are called. Default: the main queue.
  ///   - onRestart: Called when the pieces so far count for nothing, since the body begins again. Default: none.
  ///   - handler: Called with each piece.
  @preconcurrency
  @discardableResult
  public func responsePieces(
    on queue: DispatchQueue = .main, onRestart: (@Sendable () -> Void)? = nil,
    perform handler: @escaping @Sendable (_ piece: Data) -> Void
  ) -> Self {
    core.handOutBody(of: self, on: queue, onRestart: onRestart, handler)
    return self
  }
}
