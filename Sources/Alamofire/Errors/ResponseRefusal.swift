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

extension ResponseRefusal: NSErrorConvertible {}

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

/// The beginning of a body on one line, without its secrets, for descriptions and logs.
struct BodyExcerpt: CustomStringConvertible {
  /// `"<html><body>…"` for text, `bytes 1F 8B 08 00 …` for other bodies.
  let description: String

  /// Makes the excerpt of a body.
  ///
  /// - Parameters:
  ///   - data:        The body, or its beginning.
  ///   - contentType: The value of `Content-Type`, if it is known.
  ///   - limit:       The number of bytes that are shown at most.
  ///   - redaction:   The rules for secrets.
  init(_ data: Data, contentType: String?, limit: Int = 160, redaction: Redaction = .standard) {
    let isCut = data.count > limit
    let bytes = Array(data.prefix(limit))
    if Self.text(bytes, isCut: isCut) != nil {
      let masked = Self.masked(data, contentType, limit, redaction)
      let shown =
        isCut
        ? Self.text(Array(masked.prefix(limit)), isCut: true) ?? "" : String(decoding: masked, as: UTF8.self)
      description = "\"\(Self.onOneLine(shown))\(isCut ? "…" : "")\""
    } else {
      let digits = bytes.prefix(8).map { String(format: "%02X", $0) }
      description = "bytes \(digits.joined(separator: " "))\(data.count > 8 ? " …" : "")"
    }
  }

  /// The number of bytes after the limit in which secrets are recognized.
  private static let lookahead = 1_024

  /// Masks the secrets of the bytes up to the limit, with the bytes that follow, because what ends a secret may come
  /// after the limit.
  private static func masked(
    _ data: Data, _ contentType: String?, _ limit: Int, _ redaction: Redaction
  ) -> [UInt8] {
    let (end, isTooLarge) = limit.addingReportingOverflow(lookahead)
    guard !isTooLarge, data.count > end else {
      return Array(redaction.body(String(decoding: data, as: UTF8.self), contentType: contentType).utf8)
    }
    // Masking shortens the text, so that its end may be within the limit.
    return redaction.beginning(
      ofBody: String(decoding: data.prefix(end), as: UTF8.self), contentType: contentType, longest: lookahead)
  }

  /// Makes a sentence with the beginning of a body that could not be read.
  ///
  /// - Parameter limit: The number of bytes that are shown at most.
  static func sentence(_ body: Data, contentType: String? = nil, limit: Int = 80) -> String {
    " The body of \(body.count.bytes) begins with \(BodyExcerpt(body, contentType: contentType, limit: limit))."
  }

  /// Returns a text without the sentence that shows the beginning of a body, and without what follows it. The end of
  /// the sentence is not known, because the body can contain any text.
  static func removed(from text: String) -> String {
    guard let start = text.firstRange(of: #/ The body of [0-9]+ bytes? begins with /#) else { return text }
    return String(text[..<start.lowerBound])
  }

  /// Returns the bytes as text; `nil` if they are not text. A character that was cut off at the end is left out.
  private static func text(_ bytes: [UInt8], isCut: Bool) -> String? {
    for dropped in 0...(isCut ? min(3, bytes.count) : 0) {
      guard let text = String(validating: bytes.dropLast(dropped), as: UTF8.self) else { continue }
      return text.unicodeScalars.contains { $0.value < 0x20 && !"\t\n\r".unicodeScalars.contains($0) }
        ? nil : text
    }
    return nil
  }

  /// Replaces white space between words by one space, because each entry of a log is one line.
  private static func onOneLine(_ text: String) -> String {
    ReadableText.line(text.split(whereSeparator: \.isWhitespace).joined(separator: " "))
  }
}

extension Int {
  /// `1 byte`, `34 bytes`.
  var bytes: String { self == 1 ? "1 byte" : "\(self) bytes" }
}
