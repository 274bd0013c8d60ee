import HTTPWire

/// The value of a `Content-Type` field, taken apart (RFC 9110 §8.3.1), or another value of that form.
struct MediaType: Equatable, Sendable {
  private struct Parameter: Equatable, Sendable {
    let name: String
    let value: String
  }

  /// The type and subtype in lowercase, without parameters.
  let essence: String
  private let parameters: [Parameter]

  init(_ value: String) {
    var pieces = Self.split(value, at: ";")[...]
    essence = trimmed(pieces.popFirst() ?? "").lowercased()
    parameters = pieces.compactMap { piece in
      guard let sign = piece.firstIndex(of: "=") else { return nil }
      let value = trimmed(piece[piece.index(after: sign)...])
      return Parameter(name: trimmed(piece[..<sign]), value: Self.unquoted(value))
    }
  }

  /// Returns the value of a parameter, without quotes; names are compared without regard to case.
  func parameter(_ name: String) -> String? {
    parameters.first { FieldName.equal($0.name, name) }?.value
  }

  /// Splits at separators outside of quotes.
  static func split(_ value: String, at separator: Character) -> [String] {
    var pieces = [""]
    var isQuoted = false
    var isEscaped = false
    for character in value {
      if character == separator, !isQuoted {
        pieces.append("")
        continue
      }
      pieces[pieces.count - 1].append(character)
      if isEscaped {
        isEscaped = false
      } else if character == "\\", isQuoted {
        isEscaped = true
      } else if character == "\"" {
        isQuoted.toggle()
      }
    }
    return pieces
  }

  /// Returns a quoted string without its quotes (RFC 9110 §5.6.4), or any other text as it is.
  static func unquoted(_ value: String) -> String {
    guard value.count >= 2, value.hasPrefix("\""), value.hasSuffix("\"") else { return value }
    var result = ""
    var isEscaped = false
    for character in value.dropFirst().dropLast() {
      if character == "\\", !isEscaped {
        isEscaped = true
      } else {
        result.append(character)
        isEscaped = false
      }
    }
    return result
  }
}
