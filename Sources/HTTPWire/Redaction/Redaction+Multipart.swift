extension Redaction {
  /// Returns a body of a `multipart` type without the contents of its secret fields; `nil` if the type has no boundary.
  func multipart(_ text: String, contentType: String) -> String? {
    guard let boundary = MediaType(contentType)?.parameter("boundary"), !boundary.isEmpty else { return nil }
    var masking = MultipartMasking(delimiter: Array("--\(boundary)".utf8), redaction: self)
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let end = rest.firstIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? rest.endIndex
      masking.add(rest[..<end])
      rest = rest[end...]
    }
    return masking.result
  }
}

/// Masks the parts of a multipart body line by line, so that the body need not be complete.
private struct MultipartMasking {
  let delimiter: [UInt8]
  let redaction: Redaction
  private var output = ""
  private var content: [UInt8] = []
  private var isHead = false
  /// The header field that was read last.
  private var field = ""
  private var isSecret = false
  private var contentType: String?

  init(delimiter: [UInt8], redaction: Redaction) {
    self.delimiter = delimiter
    self.redaction = redaction
  }

  mutating func add(_ line: ArraySlice<UInt8>) {
    if isDelimiter(line) {
      output = result + String(decoding: line, as: UTF8.self)
      content = []
      (isHead, isSecret, contentType, field) = (true, false, nil, "")
    } else if isHead {
      let text = String(decoding: line, as: UTF8.self)
      output += maskedField(text)
      if line.allSatisfy(Self.isLineBreak) {
        isHead = false
      } else {
        // A line that begins with white space continues the field before (RFC 5322 §2.2.3).
        let isContinuation = text.first?.isWhitespace == true
        field = isContinuation ? field.filter { !$0.isNewline } + text : text
        readField(field)
      }
    } else {
      content += line
    }
  }

  /// Returns a line of the head of a part without the secrets of its field.
  private func maskedField(_ line: String) -> String {
    let end = line.utf8.reversed().prefix(while: Self.isLineBreak).count
    let text = line.utf8.dropLast(end)
    let (isContinuation, lineEnd) = (text.first.map(SecretMasking.isBlank) == true, line.utf8.suffix(end))
    let colon = text.firstIndex(of: UInt8(ascii: ":"))
    let start = isContinuation ? text.startIndex : colon.map { text.index(after: $0) }
    let name = isContinuation ? field.prefix { $0 != ":" } : colon.map { Substring(text[..<$0]) }
    guard let start, let name else { return redaction.urls(in: line) }
    let value = Substring(text[start...])
    let blank = value.prefix { $0 == " " || $0 == "\t" }
    let masked = redaction.value(String(value[blank.endIndex...]), ofHeaderField: String(name))
    return "\(Substring(text[..<start]))\(blank)\(masked)\(String(Substring(lineEnd)))"
  }

  /// The text so far.
  var result: String {
    guard !content.isEmpty else { return output }
    guard isSecret else {
      return output + redaction.body(String(decoding: content, as: UTF8.self), contentType: contentType)
    }
    let end = content.reversed().prefix(while: Self.isLineBreak).reversed()
    return output + Redaction.mask + String(decoding: end, as: UTF8.self)
  }

  /// Whether a line begins a part or ends the last one (RFC 2046 §5.1.1). A longer word is content.
  private func isDelimiter(_ line: ArraySlice<UInt8>) -> Bool {
    guard line.starts(with: delimiter) else { return false }
    let rest = line.dropFirst(delimiter.count)
    let padding = rest.starts(with: Array("--".utf8)) ? rest.dropFirst(2) : rest
    return padding.allSatisfy { Self.isLineBreak($0) || $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
  }

  private mutating func readField(_ line: String) {
    let parts = line.split(separator: ":", maxSplits: 1)
    guard parts.count == 2 else { return }
    let value = parts[1].drop(while: \.isWhitespace)
    switch parts[0].lowercased() {
    case "content-disposition":
      let name = value.firstIndex(of: ";").flatMap { MediaType.parameter("name", in: value[$0...]) }
      isSecret = name.map { redaction.isSecret(queryItem: $0) } ?? false
    case "content-type":
      // A part is not divided again, because nothing would limit the depth.
      contentType = value.lowercased().hasPrefix("multipart/") ? nil : String(value)
    default: break
    }
  }

  private static func isLineBreak(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "\r") || byte == UInt8(ascii: "\n")
  }
}
