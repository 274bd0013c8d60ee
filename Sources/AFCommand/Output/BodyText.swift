import Alamofire
package import Foundation

/// A body as a terminal shows it.
package enum BodyText {
  /// The way in which text is changed for people.
  package struct Layout: Sendable {
    package var palette: Palette
    /// Whether JSON is laid out.
    package var isLaidOut: Bool
    package var width: Int

    package init(palette: Palette, isLaidOut: Bool = true, width: Int) {
      self.palette = palette
      self.isLaidOut = isLaidOut
      self.width = width
    }
  }

  /// Lays out JSON, leaves other text as it is, and replaces anything else by a note.
  ///
  /// - Parameters:
  ///   - contentType: The value of the `Content-Type` field.
  ///   - text:        Reads the bytes in the charset that the message names; `nil` when it names none.
  package static func format(
    _ data: Data, contentType: String?, layout: Layout, text: (Data) -> String? = { _ in nil }
  ) -> String {
    if isJSON(contentType),
      let json = JSONText.format(Array(data), palette: layout.palette, isLaidOut: layout.isLaidOut)
    {
      return json + "\n"
    }
    if !data.contains(0), let text = text(data) ?? String(data: data, encoding: .utf8) {
      return text.hasSuffix("\n") || text.isEmpty ? text : text + "\n"
    }
    return layout.palette.paint(note(Int64(data.count), contentType, width: layout.width), .faint)
  }

  static func isJSON(_ contentType: String?) -> Bool {
    guard
      let type = contentType?.prefix(while: { $0 != ";" }).trimmingCharacters(in: .whitespaces).lowercased()
    else { return false }
    return type == "application/json" || type == "text/json" || type.hasSuffix("+json")
  }

  /// Whether a media type is known not to be text.
  static func isBinary(_ contentType: String?) -> Bool {
    guard
      let type = contentType?.prefix(while: { $0 != ";" }).trimmingCharacters(in: .whitespaces).lowercased()
    else { return false }
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

  /// Returns the note in place of a body that is not text.
  ///
  /// - Parameter count: The number of bytes; −1 if it is unknown.
  static func note(_ count: Int64, _ contentType: String?, width: Int) -> String {
    let size = count < 0 ? nil : ByteCount.text(count)
    let what = "Not text: \([size, contentType].compactMap { $0 }.joined(separator: " of "))."
      .replacingOccurrences(of: ": .", with: ".")
    let advice = "Write it to a file with --output FILE, or to a program."
    let separator = what.count + 1 + advice.count <= width ? " " : "\n"
    return what + separator + advice + "\n"
  }
}
