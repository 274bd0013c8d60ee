public import Foundation

extension AFError {
  /// The error inside ``multipartEncodingFailed(reason:)`` when the form itself, or one of its streams, is at
  /// fault, and not the system.
  ///
  /// A boundary or a header field arrives in `.outputStreamWriteFailed`, a stream in `.inputStreamReadFailed`.
  public struct MultipartFormFailure: Error, Sendable, Equatable, LocalizedError {
    /// The kind of a failure. More kinds may be added.
    public struct Kind: Sendable, Hashable {
      private let name: String

      /// The boundary contains characters that are not allowed (RFC 2046 §5.1.1).
      public static let invalidBoundary = Kind(name: "invalidBoundary")
      /// A MIME type or a header field contains control characters, which could add another field.
      public static let invalidHeaderField = Kind(name: "invalidHeaderField")
      /// A stream was read by an earlier encoding, or closed by other code.
      public static let streamAlreadyRead = Kind(name: "streamAlreadyRead")
      /// A stream could not be read and reports no error.
      public static let streamUnreadable = Kind(name: "streamUnreadable")
    }

    /// The kind of the failure.
    public let kind: Kind
    private let message: String

    init(_ kind: Kind, _ message: String) {
      self.kind = kind
      self.message = message
    }

    /// The error message: the failure and its remedy.
    public var errorDescription: String? { message }
  }
}

extension AFError.MultipartFormFailure {
  static func boundary(_ boundary: String) -> Self {
    let shown = ReadableText.line(String(boundary.prefix(80)))
    return Self(
      .invalidBoundary,
      "\"\(shown)\" cannot be a boundary: it takes 1 to 70 letters, digits, spaces and '()+_,-./:=? and does not "
        + "end with a space (RFC 2046 §5.1.1).")
  }

  static let alreadyRead = Self(
    .streamAlreadyRead,
    "The stream of a part was read by an earlier encoding, and a stream can be read only once. Use a file or Data, "
      + "or make the form anew.")

  static let closed = Self(
    .streamAlreadyRead, "The stream of a part was closed before the form was encoded.")

  static let unreadable = Self(.streamUnreadable, "The stream of a part could not be opened, or broke off.")
}
