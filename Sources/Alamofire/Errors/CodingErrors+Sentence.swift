import Foundation

extension DecodingError {
  /// The mismatch and its coding path; Foundation's own description is only "the data is missing".
  var sentence: String {
    switch self {
    case .keyNotFound(let key, let context):
      "There is no value for the key \"\(key.stringValue)\" \(Self.place(context.codingPath))."
    case .valueNotFound(let type, let context):
      "Expected \(Self.noun(of: type)) \(Self.place(context.codingPath)), found null."
    case .typeMismatch(let type, let context):
      "Expected \(Self.noun(of: type)) \(Self.place(context.codingPath)), found \(Self.found(in: context.debugDescription))."
    case .dataCorrupted(let context):
      (context.debugDescription.isEmpty ? "It is not valid" : context.debugDescription).asSentence
        + (context.codingPath.isEmpty ? "" : " That is \(Self.place(context.codingPath)).")
    @unknown default: localizedDescription
    }
  }

  /// Describes a coding path: `at slides[2].title`, `at the top`.
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

  /// Describes a type: `an Int`, `an object`.
  private static func noun(of type: Any.Type) -> String {
    let name = "\(type)"
    if name.hasPrefix("Dictionary<") { return "an object" }
    if name.hasPrefix("Array<") { return "an array" }
    return (name.first.map { "AEIOU".contains($0) } == true ? "an " : "a ") + name
  }

  /// Returns the kind of value that a decoder of Foundation has found: "Expected to decode Int but found a string
  /// instead."
  private static func found(in text: String) -> String {
    guard let start = text.range(of: "but found "), let end = text.range(of: " instead") else {
      return "a value of another type"
    }
    guard start.upperBound < end.lowerBound else { return "a value of another type" }
    let kind = text[start.upperBound..<end.lowerBound]
    if kind == "a dictionary" { return "an object" }
    return kind.hasPrefix("a ") || kind.hasPrefix("an ") ? String(kind) : "a \(kind)"
  }
}

extension DecodingError {
  /// Returns the error with the beginning of the body, if the body is not in the format of the decoder. An example is
  /// an HTML page instead of JSON. Other errors are returned unchanged.
  func showing(_ body: Data) -> DecodingError {
    guard case .dataCorrupted(let context) = self, context.codingPath.isEmpty else { return self }
    return .dataCorrupted(
      Context(
        codingPath: [],
        debugDescription: context.debugDescription.asSentence + BodyExcerpt.sentence(body),
        underlyingError: context.underlyingError))
  }
}

extension NSError {
  /// Returns the error of `JSONSerialization` with the beginning of the body.
  func showing(_ body: Data) -> NSError {
    let reason = userInfo[NSDebugDescriptionErrorKey] as? String ?? localizedDescription
    let text = reason.asSentence + BodyExcerpt.sentence(body)
    return NSError(
      domain: domain, code: code,
      userInfo: userInfo.merging([NSLocalizedDescriptionKey: text]) { _, new in new })
  }
}

extension EncodingError {
  /// Which value could not be encoded, and why: Foundation's own description says no more than "the data
  /// isn't in the correct format".
  var sentence: String {
    guard case .invalidValue(_, let context) = self, !context.debugDescription.isEmpty else {
      return localizedDescription
    }
    return "\(context.debugDescription.asSentence) That is \(DecodingError.place(context.codingPath))."
  }
}

extension String {
  /// The text with a full stop at its end, if it has none.
  var asSentence: String { hasSuffix(".") || hasSuffix("?") || hasSuffix("!") ? self : self + "." }
}

extension Error {
  /// The message of an error inside another one.
  ///
  /// An error without its own message is printed with its values, because Foundation's text for it names only the type
  /// and a number.
  var message: String {
    switch self {
    case let error as DecodingError: error.sentence
    case let error as EncodingError: error.sentence
    case let error as any LocalizedError where error.errorDescription != nil: localizedDescription
    case is any CustomNSError: localizedDescription.withoutPreamble
    default:
      type(of: self) is NSError.Type
        ? localizedDescription.withoutPreamble
        : Redaction.standard.urls(in: String(reflecting: self)).asSentence
    }
  }
}

extension String {
  /// The text without the sentence that Foundation puts before its reasons.
  fileprivate var withoutPreamble: String {
    let preamble = "The operation could not be completed. "
    return hasPrefix(preamble) && !hasPrefix(preamble + "(") ? String(dropFirst(preamble.count)) : self
  }
}
