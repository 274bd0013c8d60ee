import Alamofire
package import Foundation

/// A body as a terminal shows it.
package enum BodyText {
  /// JSON is laid out, other text is left as it is, and anything else is replaced by a note.
  ///
  /// - Parameters:
  ///   - contentType: The value of the `Content-Type` field.
  ///   - text:        Reads the bytes in the charset that the message names; `nil` when it names none.
  package static func format(
    _ data: Data, contentType: String?, palette: Palette, width: Int,
    text: (Data) -> String? = { _ in nil }
  ) -> String {
    if isJSON(contentType), let json = JSONText.format(Array(data), palette: palette) { return json + "\n" }
    if !data.contains(0), let text = text(data) ?? String(data: data, encoding: .utf8) {
      return text.hasSuffix("\n") || text.isEmpty ? text : text + "\n"
    }
    return palette.paint(note(data.count, contentType, width: width), .faint)
  }

  private static func isJSON(_ contentType: String?) -> Bool {
    guard
      let type = contentType?.prefix(while: { $0 != ";" }).trimmingCharacters(in: .whitespaces).lowercased()
    else { return false }
    return type == "application/json" || type == "text/json" || type.hasSuffix("+json")
  }

  private static func note(_ count: Int, _ contentType: String?, width: Int) -> String {
    let what = "Not text: \(ByteCount.text(Int64(count)))" + (contentType.map { " of \($0)" } ?? "") + "."
    let advice = "Send the output to a file or a program to have it."
    let separator = what.count + 1 + advice.count <= width ? " " : "\n"
    return what + separator + advice + "\n"
  }
}
