import Foundation
import HTTPWire

/// The head of a part: its fields and the delimiters between them (RFC 7578 §4.2, RFC 2046 §5.1).
enum MultipartHead {
  static func headers(name: String, fileName: String?, mimeType: String?) -> HTTPHeaders {
    var disposition = "form-data; name=\"\(escaped(name))\""
    if let fileName { disposition += "; filename=\"\(escaped(fileName))\"" }
    var headers = HTTPHeaders([.contentDisposition(disposition)])
    if let mimeType { headers.add(.contentType(mimeType)) }
    return headers
  }

  /// Returns a name for use between quotation marks: `"` and control characters become `%XX`.
  ///
  /// Browsers escape `"`, CR and LF in this way (WHATWG HTML, "Multipart form data"). The other control characters
  /// are escaped because no field may contain them (RFC 9110 §5.5). So is a backslash at the end, because many
  /// parsers take it and the closing quotation mark for an escape (RFC 9110 §5.6.4).
  static func escaped(_ name: String) -> String {
    guard name.utf8.contains(where: mustEscape) || name.utf8.last == UInt8(ascii: "\\") else { return name }
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for (index, byte) in zip(name.utf8.indices, name.utf8) {
      let endsWithBackslash =
        byte == UInt8(ascii: "\\") && name.utf8.index(after: index) == name.utf8.endIndex
      if mustEscape(byte) || endsWithBackslash {
        bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Returns the bytes of the fields, with the empty line after them.
  ///
  /// - Throws: An error if a field could add another one.
  static func bytes(of headers: HTTPHeaders) throws(AFError.MultipartFormFailure) -> [UInt8] {
    do {
      try HeaderFieldRules.validate(method: "POST", fields: Array(headers))
    } catch {
      throw AFError.MultipartFormFailure(.invalidHeaderField, error.message)
    }
    var bytes: [UInt8] = []
    for header in headers { bytes += "\(header.name): \(header.value)\r\n".utf8 }
    bytes += "\r\n".utf8
    return bytes
  }

  private static func mustEscape(_ byte: UInt8) -> Bool {
    byte < 0x20 || byte == 0x22 || byte == 0x7F
  }
}
