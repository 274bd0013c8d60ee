import FoundationEssentials
import HTTPWire

/// Text for people, and its secrets.
enum TextForPeople {
  /// Holds readable text against its promises.
  static func check(_ bytes: UnsafeRawBufferPointer) {
    let text = String(decoding: bytes, as: UTF8.self)
    for (shown, keepsLines) in [(ReadableText.line(text), false), (ReadableText.lines(text), true)] {
      let isClean = shown.unicodeScalars.allSatisfy { scalar in
        !isHidden(scalar) || keepsLines && (scalar == "\n" || scalar == "\t")
      }
      if !isClean { fatalError("\(shown.debugDescription) is not readable") }
      if shown.utf8.count > 6 * text.utf8.count { fatalError("\(shown) is too long") }
      let again = keepsLines ? ReadableText.lines(shown) : ReadableText.line(shown)
      if again != shown { fatalError("\(shown.debugDescription) changes when it is shown again") }
      if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }), shown != text {
        fatalError("\(text) is changed to \(shown)")
      }
    }
    // Wherever a body is cut, its pieces give the text of the whole.
    let cut = bytes.first.map { Int($0) % (bytes.count + 1) } ?? 0
    var stream = ReadableStream()
    var pieces = stream.add(Data(bytes[..<cut]))
    pieces += stream.add(Data(bytes[cut...]))
    pieces += stream.finish()
    if pieces != Data(ReadableText.lines(text).utf8) {
      fatalError("the pieces of \(text.debugDescription) give another text")
    }
  }

  private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: true
    default: scalar.properties.isBidiControl
    }
  }

  /// Plants a secret before, after and inside a text.
  static func checkRedaction(_ bytes: UnsafeRawBufferPointer) {
    let text = String(decoding: bytes, as: UTF8.self)
    let redaction = Redaction.standard
    _ = redaction.url(text)
    _ = redaction.body(text)
    _ = redaction.body(text, contentType: "multipart/form-data; boundary=b")
    for name in ["Cookie", "Set-Cookie", "Authorization", "Location", "Refresh"] {
      _ = redaction.value(text, ofHeaderField: name)
    }
    let planted = "qzsecretzq"
    if text.contains(planted) { return }
    let shown = [
      redaction.url("https://u:\(planted)@h/\(text)"), redaction.url("https://h/?token=\(planted)&\(text)"),
      redaction.body("password=\(planted)&\(text)", contentType: "application/x-www-form-urlencoded"),
      redaction.body("{\"token\": \"\(planted)\", \"a\": \"\(text)\"}", contentType: "application/json"),
      redaction.value("a=\(planted); \(text)", ofHeaderField: "Cookie"),
      redaction.value("\(text)\(planted)", ofHeaderField: "Authorization"),
      // The attributes of a cookie are not secret.
      text.contains(";") ? "" : redaction.value("\(text)=\(planted)", ofHeaderField: "Set-Cookie"),
    ]
    for shown in shown where shown.contains(planted) { fatalError("\(shown) shows a secret") }
  }
}
