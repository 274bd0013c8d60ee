import Foundation

extension DecodingError {
  /// The mismatch and its coding path; Foundation's own description is only "the data is missing".
  var sentence: String {
    switch self {
    case .keyNotFound(let key, let context):
      "There is no value for the key \"\(key.stringValue)\" \(Self.place(context.codingPath))."
    case .valueNotFound(let type, let context):
      "There is null instead of a \(type) \(Self.place(context.codingPath))."
    case .typeMismatch(let type, let context):
      "There is something else than a \(type) \(Self.place(context.codingPath))."
    case .dataCorrupted(let context):
      Self.ended(context.debugDescription.isEmpty ? "It is not valid" : context.debugDescription)
        + (context.codingPath.isEmpty ? "" : " That is \(Self.place(context.codingPath)).")
    @unknown default: localizedDescription
    }
  }

  /// `at slides[2].title`, `at the top`.
  static func place(_ path: [any CodingKey]) -> String {
    guard !path.isEmpty else { return "at the top" }
    var text = ""
    for key in path {
      if let index = key.intValue {
        text += "[\(index)]"
      } else {
        text += text.isEmpty ? key.stringValue : ".\(key.stringValue)"
      }
    }
    return "at \(text)"
  }

  private static func ended(_ text: String) -> String {
    text.hasSuffix(".") ? text : text + "."
  }
}

extension EncodingError {
  /// Which value could not be encoded, and why: Foundation's own description says no more than "the data
  /// isn't in the correct format".
  var sentence: String {
    guard case .invalidValue(_, let context) = self, !context.debugDescription.isEmpty else {
      return localizedDescription
    }
    let path = DecodingError.place(context.codingPath)
    let reason = context.debugDescription
    return (reason.hasSuffix(".") ? reason : reason + ".") + " That is \(path)."
  }
}
