package import FoundationEssentials

/// The content of a `data:` URL (RFC 2397).
package struct DataURL: Sendable, Equatable {
  /// The media type with its parameters, as in the URL; `text/plain;charset=US-ASCII` by default.
  package let mediaType: String
  package let data: Data

  /// The reason why a URL has no content.
  package enum Flaw: Error, Sendable, Equatable {
    case notADataURL
    case noComma
    case badBase64

    package var message: String {
      switch self {
      case .notADataURL: "This is no data: URL."
      case .noComma: "A data: URL needs a comma between its media type and its content."
      case .badBase64: "The content of the data: URL is no Base64, which \";base64\" announces."
      }
    }
  }

  /// Decodes the content of a URL.
  ///
  /// - Parameter url: The whole URL; its fragment is not content.
  package init(_ url: String) throws(Flaw) {
    let bytes = url.utf8.prefix { $0 != UInt8(ascii: "#") }
    guard bytes.prefix(5).map(FieldName.lowercased).elementsEqual("data:".utf8) else {
      throw .notADataURL
    }
    let rest = bytes.dropFirst(5)
    guard let comma = rest.firstIndex(of: UInt8(ascii: ",")) else { throw .noComma }
    let (type, isBase64) = Self.mediaType(String(decoding: rest[..<comma], as: UTF8.self))
    mediaType = type
    let content = PercentDecoding.bytes(rest[rest.index(after: comma)...])
    guard isBase64 else {
      data = Data(content)
      return
    }
    guard let decoded = Self.base64(content) else { throw .badBase64 }
    data = decoded
  }

  /// Returns the media type before the comma, and whether `;base64` ends it.
  private static func mediaType(_ text: String) -> (String, isBase64: Bool) {
    var parts = text.split(separator: ";", omittingEmptySubsequences: false)
    var isBase64 = false
    if parts.count > 1, let last = parts.last, last.trimmedOfSpaces.lowercased() == "base64" {
      isBase64 = true
      parts.removeLast()
    }
    let type = PercentDecoding.text(parts.joined(separator: ";")).trimmedOfSpaces
    // The type becomes a header field of the response.
    guard !type.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }), !type.isEmpty else {
      return ("text/plain;charset=US-ASCII", isBase64)
    }
    // Parameters alone belong to text/plain.
    return (type.hasPrefix(";") ? "text/plain\(type)" : String(type), isBase64)
  }

  /// Decodes base64. White space is passed over and the padding may be missing, as browsers have it.
  private static func base64(_ bytes: [UInt8]) -> Data? {
    var bytes = bytes.filter { $0 != 0x20 && !(0x09...0x0D).contains($0) }
    guard !bytes.isEmpty else { return Data() }
    while bytes.last == UInt8(ascii: "=") { bytes.removeLast() }
    guard bytes.count % 4 != 1 else { return nil }
    while bytes.count % 4 != 0 { bytes.append(UInt8(ascii: "=")) }
    return Data(base64Encoded: Data(bytes))
  }
}

extension StringProtocol {
  fileprivate var trimmedOfSpaces: String {
    var rest = Substring(self)
    while rest.first == " " { rest.removeFirst() }
    while rest.last == " " { rest.removeLast() }
    return String(rest)
  }
}
