public import Foundation
import HTTPWire

/// The error of a response that was refused before a handler received a part of its body. The response belongs to an
/// event source but is not an event stream, or to a WebSocket handshake that a validator rejects. The error holds the
/// beginning of the body, in which many services say why.
///
/// It is the error inside `.customValidationFailed`. ``AFError/responseCode``, ``AFError/responseContentType`` and
/// ``AFError/acceptableContentTypes`` answer as if its ``reason`` was there:
///
/// ```swift
/// let request = AF.eventSourceRequest("https://example.com/answers")
/// do {
///   for try await event in request.events() { print(event.data) }
/// } catch {
///   let refusal = error.underlyingError as? ResponseRefusal
///   print(error.responseCode ?? 0, refusal.map { String(decoding: $0.body, as: UTF8.self) } ?? "")
/// }
/// ```
///
/// The text of the error, which logs also show, has the first 512 bytes of the body on one line. The values of fields
/// with the name of a secret are masked. If your server writes other secrets into its error responses, do not log the
/// text, but ``reason``.
public struct ResponseRefusal: LocalizedError, Sendable, CustomStringConvertible {
  /// The reason why the response was refused.
  public let reason: AFError.ResponseValidationFailureReason
  /// The body, at most its first 64 KiB; empty if none was received.
  public internal(set) var body: Data
  private let contentType: String?

  /// The number of bytes of the body in the text.
  private static let longestExcerpt = 512

  init(_ reason: AFError.ResponseValidationFailureReason, body: Data, contentType: String?) {
    self.reason = reason
    self.body = body
    self.contentType = contentType
  }

  /// The reason, and the beginning of the body.
  public var errorDescription: String? {
    guard !body.isEmpty else { return reason.message }
    return reason.message
      + BodyExcerpt.sentence(body, contentType: contentType, limit: Self.longestExcerpt)
  }

  /// The reason, without the body.
  public var description: String { "ResponseRefusal(\(CaseText(reason)))" }
}

extension ResponseRefusal {
  var ofValidation: AFError { .responseValidationFailed(reason: .customValidationFailed(error: self)) }

  /// The failure of a response that is not read to its end, because its body exceeds the limit for stored bodies.
  var failure: TransportFailure {
    TransportFailure(.cancelled, "The response was refused, and its body is long.", cause: ofValidation)
  }
}

extension AFError {
  /// Returns the error of a validator of the library with the beginning of the body of the response that it rejects.
  func keepingBody(of response: WireResponse?) -> AFError {
    guard case .responseValidationFailed(let reason) = self, let response, let body = response.body,
      !body.isEmpty
    else { return self }
    if case .customValidationFailed = reason { return self }
    return ResponseRefusal(
      reason, body: Data(body.prefix(65_536)), contentType: response.head.block.value(of: "Content-Type")
    ).ofValidation
  }
}

extension AFError.ResponseValidationFailureReason {
  /// The reason of a refused response, or this one.
  var ofResponse: AFError.ResponseValidationFailureReason {
    guard case .customValidationFailed(let error) = self, let refusal = error as? ResponseRefusal else {
      return self
    }
    return refusal.reason
  }
}
