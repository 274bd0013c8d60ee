import Foundation
import HTTPWire

/// The head of a part: fields, and what keeps them apart (RFC 7578 §4.2, RFC 2046 §5.1).
enum MultipartHead {
  static func headers(name: String, fileName: String?, mimeType: String?) -> HTTPHeaders {
    var disposition = "form-data; name=\"\(escaped(name))\""
    if let fileName { disposition += "; filename=\"\(escaped(fileName))\"" }
    var headers = HTTPHeaders([.contentDisposition(disposition)])
    if let mimeType { headers.add(.contentType(mimeType)) }
    return headers
  }

  /// A name as it stands between quotation marks: `"` and control characters as `%XX`.
  ///
  /// Browsers escape `"`, CR and LF so (WHATWG HTML, "Multipart form data"). The other control characters are
  /// escaped alike, because no field may hold them (RFC 9110 §5.5), and a backslash at the end, because many
  /// readers take it and the closing quotation mark for an escape (RFC 9110 §5.6.4) and read on into what follows.
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

  /// The fields as they are written, with the empty line that ends them.
  ///
  /// - Throws: When a field could bring in another one.
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
