/// One argument behind the URL: a part of the request.
package enum RequestItem: Equatable, Sendable {
  /// `name==value`: a pair of the query.
  case query(name: String, value: String)
  /// `name=text`: a string in a JSON object, or a field of a form.
  case string(name: String, value: String)
  /// `name:=json`: any JSON value, kept as it was written.
  case json(name: String, text: String)
  /// `Name:value`: a header field.
  case header(name: String, value: String)

  /// Whether it goes into the body.
  package var isData: Bool {
    switch self {
    case .string, .json: true
    case .query, .header: false
    }
  }

  /// Separators at the same position are tried in this order, so the longer ones come first.
  private static let separators = [":=@", "=@", ":=", "==", "=", ":", "@"]

  /// Reads an item. The first separator counts; a backslash in front of a character takes its meaning.
  package init(parsing argument: String) throws(UsageError) {
    guard let (name, separator, value) = Self.split(argument) else {
      throw UsageError(
        "'\(argument)' is no part of a request; write name=text, name:=json, name==query or Header:value.")
    }
    guard separator.last != "@" else {
      throw UsageError("'\(argument)' names a file, and files cannot be sent yet.")
    }
    guard !name.isEmpty else {
      throw UsageError("'\(argument)' has no name in front of '\(separator)'.")
    }
    switch separator {
    case "==": self = .query(name: name, value: value)
    case "=": self = .string(name: name, value: value)
    case ":=":
      guard JSONTokens.isValid(value) else {
        throw UsageError(
          "'\(value)' in '\(argument)' is not JSON; for a string write \(name)=\(value) instead.")
      }
      self = .json(name: name, text: value)
    default: self = .header(name: name, value: value)
    }
  }

  private static func split(_ argument: String) -> (name: String, separator: String, value: String)? {
    var name = ""
    var rest = argument[...]
    while let character = rest.first {
      if character == "\\", let escaped = rest.dropFirst().first {
        // A backslash in front of anything else is a backslash: `C:\temp` needs no care.
        if !":=@\\".contains(escaped) { name.append(character) }
        name.append(escaped)
        rest = rest.dropFirst(2)
      } else if let separator = separators.first(where: { rest.hasPrefix($0) }) {
        return (name, separator, String(rest.dropFirst(separator.count)))
      } else {
        name.append(character)
        rest = rest.dropFirst()
      }
    }
    return nil
  }
}
