/// The method of a request (RFC 9110 §9).
///
/// Any token can be made with ``init(rawValue:)``; comparison is case-sensitive, as methods are
/// (RFC 9110 §9.1), so a value made from `"get"` is not ``get``.
///
/// ```swift
/// let purge = HTTPMethod(rawValue: "PURGE")
/// ```
public struct HTTPMethod: RawRepresentable, Equatable, Hashable, Sendable {
  /// `CONNECT` (RFC 9110 §9.3.6).
  public static let connect = HTTPMethod(rawValue: "CONNECT")
  /// `DELETE` (RFC 9110 §9.3.5).
  public static let delete = HTTPMethod(rawValue: "DELETE")
  /// `GET` (RFC 9110 §9.3.1).
  public static let get = HTTPMethod(rawValue: "GET")
  /// `HEAD` (RFC 9110 §9.3.2).
  public static let head = HTTPMethod(rawValue: "HEAD")
  /// `OPTIONS` (RFC 9110 §9.3.7).
  public static let options = HTTPMethod(rawValue: "OPTIONS")
  /// `PATCH` (RFC 5789).
  public static let patch = HTTPMethod(rawValue: "PATCH")
  /// `POST` (RFC 9110 §9.3.3).
  public static let post = HTTPMethod(rawValue: "POST")
  /// `PUT` (RFC 9110 §9.3.4).
  public static let put = HTTPMethod(rawValue: "PUT")
  /// `QUERY`, a safe method with a body (draft-ietf-httpbis-safe-method-w-body).
  public static let query = HTTPMethod(rawValue: "QUERY")
  /// `TRACE` (RFC 9110 §9.3.8).
  public static let trace = HTTPMethod(rawValue: "TRACE")

  /// The method as it is sent.
  public let rawValue: String

  /// Makes a method of any token. The text is not checked here; if it is not a token (RFC 9110 §5.6.2), the request
  /// fails before anything is sent.
  public init(rawValue: String) {
    self.rawValue = rawValue
  }
}

/// The rules for the head of a request, which are checked before anything is sent. So no value can smuggle a second
/// field or a second request onto the connection (RFC 9110 §5.5).
package enum HeaderFieldRules {
  /// A violation of the rules, without the value of a field, which may be a secret.
  package enum Violation: Error, Sendable, Equatable {
    /// The method is not a token.
    case method(String)
    /// The name of a field is not a token.
    case name(String)
    /// The value of the field of this name holds a forbidden character; the character code is attached.
    case value(field: String, character: UInt8)

    /// One sentence that names the field.
    package var message: String {
      switch self {
      case .method(let method):
        "\(HeaderFieldRules.quoted(method)) is not a method: letters, digits and !#$%&'*+-.^_`|~ are allowed (RFC 9110 §9.1)."
      case .name(let name):
        "\(HeaderFieldRules.quoted(name)) is not the name of a header field: letters, digits and !#$%&'*+-.^_`|~ are allowed "
          + "(RFC 9110 §5.1)."
      case .value(let field, let character):
        "The value of the header field \(HeaderFieldRules.quoted(field)) contains \(HeaderFieldRules.name(of: character)), which is not "
          + "allowed (RFC 9110 §5.5)."
      }
    }
  }

  /// Returns the text in quotation marks, without control characters and not longer than a line.
  static func quoted(_ text: String) -> String {
    let shown = String(String.UnicodeScalarView(text.unicodeScalars.prefix(60)))
    return "\"\(ReadableText.line(shown))\(text.unicodeScalars.count > 60 ? "…" : "")\""
  }

  static func name(of character: UInt8) -> String {
    switch character {
    case 0x0A: "a line feed"
    case 0x0D: "a carriage return"
    case 0x00: "a NUL"
    default: "a control character"
    }
  }

  /// Whether a text is a token: the form of methods and field names (RFC 9110 §5.6.2).
  package static func isToken(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { isToken($0) }
  }

  /// Whether bytes are a token.
  static func isToken(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    for byte in bytes where !isTokenByte(byte) { return false }
    return !bytes.isEmpty
  }

  /// Whether a text is a valid field value: it has no control characters except tabs. Text beyond ASCII is sent as
  /// UTF-8.
  package static func isFieldValue(_ text: String) -> Bool {
    forbiddenByte(in: text) == nil
  }

  /// Checks a method and the fields that go with it; the first thing that is wrong is thrown.
  package static func validate(method: String, fields: [HTTPHeader]) throws(Violation) {
    guard isToken(method) else { throw .method(method) }
    for field in fields {
      guard isToken(field.name) else { throw .name(field.name) }
      if let byte = forbiddenByte(in: field.value) { throw .value(field: field.name, character: byte) }
    }
  }

  private static func forbiddenByte(in text: String) -> UInt8? {
    var text = text
    return text.withUTF8 { forbiddenByte(in: UnsafeRawBufferPointer($0)) }
  }

  /// Returns the first byte that is not allowed in a field value.
  static func forbiddenByte(in bytes: UnsafeRawBufferPointer) -> UInt8? {
    var index = 0
    while bytes.count - index >= 8 {
      let word = bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      let end = index + 8
      if mayHoldForbiddenByte(word) {
        for byte in bytes[index..<end] where isForbiddenByte(byte) { return byte }
      }
      index = end
    }
    for byte in bytes[index...] where isForbiddenByte(byte) { return byte }
    return nil
  }

  private static func isForbiddenByte(_ byte: UInt8) -> Bool { (byte < 0x20 && byte != 0x09) || byte == 0x7F }

  /// Whether one of eight bytes is less than 0x20 or is 0x7F; true for some words of which none is.
  private static func mayHoldForbiddenByte(_ word: UInt64) -> Bool {
    let delete = word ^ 0x7F7F_7F7F_7F7F_7F7F
    let controls = (word &- 0x2020_2020_2020_2020) & ~word
    return (controls | (delete &- 0x0101_0101_0101_0101) & ~delete) & 0x8080_8080_8080_8080 != 0
  }

  /// Whether a byte is valid in a token (RFC 9110 §5.6.2).
  static func isTokenByte(_ byte: UInt8) -> Bool {
    // Nearly all bytes of field names are letters.
    if (byte | 0x20) &- 0x61 < 26 { return true }
    return byte < 0x80 && (byte < 0x40 ? lowTokenBytes : highTokenBytes) >> UInt64(byte & 0x3F) & 1 == 1
  }

  /// The digits and `!#$%&'*+-.`, a bit for each byte below 0x40.
  private static let lowTokenBytes: UInt64 = 0x03FF_6CFA_0000_0000
  /// The letters and `^_`, the backquote and `|~`, a bit for each byte from 0x40 to 0x7F.
  private static let highTokenBytes: UInt64 = 0x57FF_FFFF_C7FF_FFFE
}
