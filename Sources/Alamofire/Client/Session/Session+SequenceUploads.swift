public import Foundation
import FoundationNetworking
import HTTPWire

extension Session {
  /// Makes a request whose body is an asynchronous sequence of bytes, which is iterated once while it is sent.
  ///
  /// - An element is asked for when the one before is sent, or waits in a buffer of about a mebibyte.
  /// - Without a length the body is sent in chunks (RFC 9112 §7.1), or in frames of HTTP/2.
  /// - If the sequence throws, the request fails with its error.
  /// - If the request ends early, such as by a cancellation, the iteration ends, and its task is cancelled.
  /// - The body cannot be sent again. A retry, a redirect that keeps the body or a challenge ends the request with
  ///   `URLError.requestBodyStreamExhausted`, unless none of the body was sent. An iteration ends with its request.
  ///   `retryRequest(_:withDelay:)` then needs a sequence whose iteration had not begun. It may begin while the request
  ///   connects.
  ///
  /// ```swift
  /// let lines = AsyncStream<Data> { continuation in
  ///   for number in 1...3 { continuation.yield(Data("line \(number)\n".utf8)) }
  ///   continuation.finish()
  /// }
  /// AF.upload(lines, to: "https://example.com/log").response { print($0.result) }
  /// ```
  ///
  /// - Parameters:
  ///   - body: The bytes.
  ///   - convertible: The URL; an invalid one fails the request with `AFError.invalidURL`.
  ///   - length: The number of all bytes, for `Content-Length`. A sequence of another length is an error. Default:
  ///     unknown.
  ///   - method: Default: `POST`.
  ///   - headers: Header fields; they override the session's. Default: none.
  ///   - interceptor: Adapts and retries this request, after the session's. Default: none.
  ///   - shouldAutomaticallyResume: Whether the first handler resumes it; `nil` for the session's setting.
  ///   - requestModifier: Changes the request before it is adapted. Default: none.
  public func upload<Body: AsyncSequence & Sendable>(
    _ body: Body, to convertible: any URLConvertible, length: Int64? = nil, method: HTTPMethod = .post,
    headers: HTTPHeaders? = nil, interceptor: (any RequestInterceptor)? = nil,
    shouldAutomaticallyResume: Bool? = nil, requestModifier: RequestModifier? = nil
  ) -> UploadRequest where Body.Element == Data {
    let description = RequestDescription(
      url: convertible, method: method, headers: headers, modifier: requestModifier)
    return upload(
      body, with: description, length: length, interceptor: interceptor,
      shouldAutomaticallyResume: shouldAutomaticallyResume)
  }

  /// Makes a request whose body is an asynchronous sequence of bytes; see
  /// ``upload(_:to:length:method:headers:interceptor:shouldAutomaticallyResume:requestModifier:)``. A body that
  /// `convertible` has is not sent.
  public func upload<Body: AsyncSequence & Sendable>(
    _ body: Body, with convertible: any URLRequestConvertible, length: Int64? = nil,
    interceptor: (any RequestInterceptor)? = nil, shouldAutomaticallyResume: Bool? = nil
  ) -> UploadRequest where Body.Element == Data {
    upload(
      UploadRequest.Uploadable.stream(SequenceStream(body)),
      with: SequenceRequest(base: convertible, length: length), interceptor, shouldAutomaticallyResume,
      .default)
  }
}
