import Foundation
import HTTPWire

/// The delimiter between the parts of a form (RFC 2046 §5.1.1).
enum MultipartBoundary {
  static func random() -> String {
    String(
      format: "alamofire.boundary.%08x%08x", UInt32.random(in: 0...(.max)), UInt32.random(in: 0...(.max)))
  }

  /// Returns whether a boundary has 1 to 70 of the characters that the RFC calls `bchars`, the last of which is no
  /// space.
  static func isValid(_ boundary: String) -> Bool {
    let bytes = boundary.utf8
    return (1...70).contains(bytes.count) && bytes.allSatisfy(isBoundaryByte) && bytes.last != 0x20
  }

  /// Returns the content type of a form; a boundary that is no token is quoted (RFC 2045 §5.1).
  static func contentType(_ boundary: String) -> String {
    let isQuoted = isValid(boundary) && !HeaderFieldRules.isToken(boundary)
    return "multipart/form-data; boundary=" + (isQuoted ? "\"\(boundary)\"" : boundary)
  }

  private static func isBoundaryByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x61...0x7A, 0x41...0x5A, 0x30...0x39: true
    // ( ) + , - . / : and the rest, one by one.
    case 0x28, 0x29, 0x2B...0x2F, 0x3A, 0x20, 0x27, 0x3D, 0x3F, 0x5F: true
    default: false
    }
  }
}
