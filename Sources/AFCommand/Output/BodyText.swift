import Alamofire
package import Foundation

/// A body as a terminal shows it.
package enum BodyText {
  /// The way in which text is changed for people.
  package struct Layout: Sendable {
    package var palette: Palette
    /// Whether JSON and XML are laid out.
    package var isLaidOut: Bool
    /// Whether control characters are replaced.
    package var isReadable: Bool
    package var width: Int

    package init(palette: Palette, isLaidOut: Bool = true, isReadable: Bool = true, width: Int) {
      self.palette = palette
      self.isLaidOut = isLaidOut
      self.isReadable = isReadable
      self.width = width
    }
  }

  /// Lays out JSON and XML, leaves other text as it is, and replaces anything else by a note.
  ///
  /// - Parameters:
  ///   - contentType: The value of the `Content-Type` field.
  ///   - charset:     The charset of the bytes, if it is known; otherwise only UTF-8 and what is said to be text are
  ///                  shown.
  package static func format(
    _ data: Data, contentType: String?, layout: Layout, charset: TextCharset? = nil
  ) -> String {
    guard let decoded = Self.text(data, contentType, charset) else {
      return binaryNote(data, contentType, layout)
    }
    // In JSON an escape has the same meaning as the character that it replaces.
    let text = layout.isReadable ? ReadableText.lines(decoded) : decoded
    return laidOut(text, contentType, layout) ?? ended(text)
  }

  /// Leaves text as it is, and replaces anything else by a note.
  static func plain(_ data: Data, contentType: String?, layout: Layout, charset: TextCharset?) -> String {
    // Text that ends inside a character is text.
    let rest = charset == nil && !isText(contentType) ? TextDecoder.incompleteCount(Array(data.suffix(4))) : 0
    guard let decoded = Self.text(data.dropLast(rest), contentType, charset) else {
      return binaryNote(data, contentType, layout)
    }
    return ended(layout.isReadable ? ReadableText.lines(decoded) : decoded)
  }

  private static func binaryNote(_ data: Data, _ contentType: String?, _ layout: Layout) -> String {
    layout.palette.paint(note(Int64(data.count), contentType, width: layout.width), .faint)
  }

  private static func ended(_ text: String) -> String {
    text.hasSuffix("\n") || text.isEmpty ? text : text + "\n"
  }

  /// Lays out JSON and XML for a program. Returns `nil` for what has no layout, for bytes that a text would not keep,
  /// and for text in another charset, which the head or the document would still name.
  static func formatted(_ data: Data, contentType: String?, layout: Layout) -> String? {
    let label = TextCharset.label(ofContentType: contentType)
    for label in [label, TextCharset.label(of: data, contentType: contentType)].compactMap({ $0 })
    where TextCharset(label: label) != .utf8 { return nil }
    guard let text = String(validating: data, as: UTF8.self) else { return nil }
    return laidOut(text, contentType, layout)
  }

  /// Returns the layout of JSON or XML; `nil` for other text, and for text that is not what it claims to be.
  private static func laidOut(_ text: String, _ contentType: String?, _ layout: Layout) -> String? {
    let bytes = Array(text.utf8)
    if isJSON(contentType) {
      return JSONText.format(bytes, palette: layout.palette, isLaidOut: layout.isLaidOut).map { $0 + "\n" }
    }
    guard isXML(contentType),
      let xml = XMLText.format(bytes, palette: layout.palette, isLaidOut: layout.isLaidOut)
    else { return nil }
    return xml.hasSuffix("\n") ? xml : xml + "\n"
  }

  /// Returns the bytes as text; `nil` if they are not text.
  private static func text(_ data: Data, _ contentType: String?, _ charset: TextCharset?) -> String? {
    if charset?.hasWideUnits != true, data.contains(0) { return nil }
    if let charset { return TextDecoder.text(data, charset) }
    return isText(contentType) ? String(decoding: data, as: UTF8.self) : String(data: data, encoding: .utf8)
  }

  /// Returns the media type without its parameters, in lower case; empty without one.
  static func mediaType(_ contentType: String?) -> String {
    (contentType ?? "").prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased()
  }

  static func isJSON(_ contentType: String?) -> Bool {
    let type = mediaType(contentType)
    return type == "application/json" || type == "text/json" || type.hasSuffix("+json")
  }

  /// Whether a media type promises lines or events that are of use before the end of the body.
  static func isStream(_ contentType: String?) -> Bool {
    let type = mediaType(contentType)
    // The word stands alone, unlike in `vnd.upstream+json`.
    return type == "text/event-stream"
      || ["/stream+json", ".stream+json", "-stream+json"].contains(where: type.hasSuffix)
  }

  static func isXML(_ contentType: String?) -> Bool {
    let type = mediaType(contentType)
    return type == "application/xml" || type == "text/xml" || type.hasSuffix("+xml")
  }

  /// Whether a media type is known to be text.
  static func isText(_ contentType: String?) -> Bool {
    let type = mediaType(contentType)
    return type.hasPrefix("text/") || isJSON(contentType) || isXML(contentType)
      || ["application/x-www-form-urlencoded", "application/javascript", "application/yaml"].contains(type)
  }

  /// Whether a media type is known not to be text.
  static func isBinary(_ contentType: String?) -> Bool {
    let type = mediaType(contentType)
    if type.hasSuffix("+json") || type.hasSuffix("+xml") || type.hasSuffix("+yaml") { return false }
    if ["image/", "audio/", "video/", "font/", "application/vnd."].contains(where: type.hasPrefix) {
      return true
    }
    return binaryTypes.contains(type)
  }

  private static let binaryTypes: Set = [
    "application/octet-stream", "application/zip", "application/gzip", "application/x-gzip",
    "application/x-tar",
    "application/x-bzip2", "application/x-xz", "application/zstd", "application/x-7z-compressed",
    "application/pdf", "application/wasm", "application/msword", "application/x-iso9660-image",
    "application/java-archive", "application/x-sqlite3", "application/protobuf", "application/cbor",
  ]

  /// Returns the note instead of a body that is not text.
  ///
  /// - Parameter count: The number of bytes; −1 if it is unknown.
  static func note(_ count: Int64, _ contentType: String?, width: Int) -> String {
    let size = count < 0 ? nil : ByteCount.text(count)
    let type = contentType.map(ReadableText.line)
    let what = "Not text: \([size, type].compactMap { $0 }.joined(separator: " of "))."
      .replacingOccurrences(of: ": .", with: ".")
    let advice = "Write it to a file with --output FILE, or to a program."
    let separator = what.count + 1 + advice.count <= width ? " " : "\n"
    return what + separator + advice + "\n"
  }
}
