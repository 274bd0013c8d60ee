import Foundation

/// One argument after the URL: a part of the request.
package enum RequestItem: Equatable, Sendable {
  /// `name==value`: a pair of the query.
  case query(name: String, value: String)
  /// `name=text`: a string in a JSON object, or a field of a form.
  case string(name: String, value: String)
  /// `name:=json`: any JSON value, sent as it was written.
  case json(name: String, text: String)
  /// `Name:value`: a header field, and `Name;` one without a value.
  case header(name: String, value: String)
  /// `Name:`: a header field that is left out, although the command would add it.
  case omission(name: String)

  /// `name==@path`: a pair of the query whose value is in a file.
  case queryFile(name: String, path: String)
  /// `name=@path`: a string whose text is in a file.
  case stringFile(name: String, path: String)
  /// `name:=@path`: a JSON value in a file.
  case jsonFile(name: String, path: String)
  /// `Name:@path`: a header field whose value is in a file.
  case headerFile(name: String, path: String)
  /// `name@path`: a file of a form.
  case file(File)
  /// `@path`: the whole body.
  case body(path: String)

  /// A file of a form: `name@path;type=image/png;filename=x.png`.
  package struct File: Equatable, Sendable {
    package var name: String
    package var path: String
    package var type: String?
    package var fileName: String?

    package init(name: String, path: String, type: String? = nil, fileName: String? = nil) {
      self.name = name
      self.path = path
      self.type = type
      self.fileName = fileName
    }
  }

  /// Whether it goes into the body.
  package var isData: Bool {
    switch self {
    case .string, .json, .stringFile, .jsonFile, .file, .body: true
    case .query, .header, .omission, .queryFile, .headerFile: false
    }
  }

  /// Whether it is a file of a form.
  var isFile: Bool {
    if case .file = self { true } else { false }
  }

  /// Separators at the same position are tried in this order, so the longer ones come first.
  private static let separators = [":=@", "==@", "=@", ":@", ":=", "==", "=", ":", "@"]

  /// Reads an item. It is split at its first separator; a backslash escapes the next character. One at the beginning of
  /// a value makes what follows a text that could belong to the separator.
  package init(parsing argument: String) throws(UsageError) {
    guard let (name, separator, value) = Self.parts(of: argument) else {
      if let name = Self.nameOfEmptyField(argument) {
        self = .header(name: name, value: "")
        return
      }
      throw UsageError(
        "'\(argument)' is not part of a request; write name=text, name:=json, name==query, Header:value or @file. For a second URL, run af again."
      )
    }
    if separator.last == "@", value.isEmpty { throw UsageError("'\(argument)' has no path after '@'.") }
    if name.isEmpty, separator == "@" {
      self = .body(path: value)
      return
    }
    guard !name.isEmpty else {
      throw UsageError("'\(argument)' has no name before '\(separator)'.")
    }
    switch separator {
    case "==": self = .query(name: name, value: Self.unescaped(value))
    case "=": self = .string(name: name, value: Self.unescaped(value))
    case ":=": self = try .checkedJSON(name: name, text: value, argument: argument)
    case ":":
      // A space after the colon is a habit, and not part of the value; other kinds of spaces are (RFC 9110 §5.5).
      let bare = Self.unescaped(value).trimmingCharacters(in: CharacterSet(charactersIn: " \t"))
      self = value.isEmpty ? .omission(name: name) : .header(name: name, value: bare)
    case "==@": self = .queryFile(name: name, path: value)
    case "=@": self = .stringFile(name: name, path: value)
    case ":=@": self = .jsonFile(name: name, path: value)
    case ":@": self = .headerFile(name: name, path: value)
    default: self = .file(Self.file(name: name, value))
    }
  }

  /// Returns a value without the backslash at its beginning that keeps a `=` or an `@` apart from the separator. Of
  /// several backslashes before one of them, the first is removed, so that every value can be written.
  private static func unescaped(_ value: String) -> String {
    let scalars = value.unicodeScalars
    guard scalars.first == "\\", let next = scalars.first(where: { $0 != "\\" }),
      "=@".unicodeScalars.contains(next)
    else { return value }
    return String(scalars.dropFirst())
  }

  /// Returns the name in `Name;`; `nil` for any other argument.
  private static func nameOfEmptyField(_ argument: String) -> String? {
    let name = argument.unicodeScalars.dropLast()
    return argument.utf8.last == UInt8(ascii: ";") && !name.isEmpty ? String(name) : nil
  }

  private static func checkedJSON(name: String, text: String, argument: String) throws(UsageError)
    -> RequestItem
  {
    guard JSONTokens.isValid(text) else {
      throw UsageError("'\(argument)' has no JSON behind ':='; for a string write \(name)=\(text) instead.")
    }
    return .json(name: name, text: text)
  }

  /// Reads the path and the parameters after it. A semicolon that does not begin a parameter belongs to the path.
  private static func file(name: String, _ value: String) -> File {
    var file = File(name: name, path: value)
    while let semicolon = file.path.utf8.lastIndex(of: UInt8(ascii: ";")) {
      let parameter = file.path.utf8[semicolon...].dropFirst()
      if parameter.starts(with: "type=".utf8), file.type == nil {
        file.type = String(Substring(parameter.dropFirst("type=".utf8.count)))
      } else if parameter.starts(with: "filename=".utf8), file.fileName == nil {
        file.fileName = String(Substring(parameter.dropFirst("filename=".utf8.count)))
      } else {
        break
      }
      file.path = String(file.path[..<semicolon])
    }
    return file
  }

  /// Splits an argument at its first separator; `nil` without one. A separator before a combining mark is one, too.
  /// Otherwise a value in a script could choose another, and so name a file.
  static func parts(of argument: String) -> (name: String, separator: String, value: String)? {
    var name = String.UnicodeScalarView()
    var rest = argument.unicodeScalars[...]
    while let scalar = rest.first {
      if scalar == "\\", let escaped = rest.dropFirst().first {
        // A backslash before anything else is a backslash: `C:\temp` needs no care.
        if !":=@\\".unicodeScalars.contains(escaped) { name.append(scalar) }
        name.append(escaped)
        rest = rest.dropFirst(2)
      } else if let separator = separators.first(where: { rest.starts(with: $0.unicodeScalars) }) {
        return (String(name), separator, String(rest.dropFirst(separator.unicodeScalars.count)))
      } else {
        name.append(scalar)
        rest = rest.dropFirst()
      }
    }
    return nil
  }
}

/// The position of a value in nested JSON: `a[b][0][]`.
package struct JSONPath: Equatable, Sendable {
  package enum PathStep: Equatable, Sendable {
    /// A member of an object.
    case key(String)
    /// An element of an array.
    case index(Int)
    /// A new element at the end of an array.
    case append
  }

  package let steps: [PathStep]

  /// Reads the name of a data item. Without brackets it is one key.
  package init(_ name: String) throws(UsageError) {
    var reader = Reader(name: name, rest: name.unicodeScalars[...])
    var steps: [PathStep] = []
    if reader.rest.first != "[" { steps.append(.key(reader.literal(until: "[").text)) }
    while reader.rest.first == "[" {
      reader.rest.removeFirst()
      let (text, isEscaped) = reader.literal(until: "]")
      guard reader.rest.popFirst() == "]" else {
        throw UsageError(#"'\#(name)' has a '[' without its ']'; for a bracket in a name write '\['."#)
      }
      guard reader.rest.isEmpty || reader.rest.first == "[" else {
        throw UsageError(
          #"'\#(name)' has '\#(String(reader.rest))' after a ']'; for a bracket in a name write '\['."#)
      }
      steps.append(try Self.step(text, isEscaped: isEscaped, in: name))
      guard steps.count <= Self.largestDepth else {
        throw UsageError("A name has more than \(Self.largestDepth) levels: '\(name.prefix(40))…'.")
      }
    }
    self.steps = steps
  }

  private static let largestIndex = 10_000
  /// The JSON of a name is built level by level, and each level takes room on the stack.
  private static let largestDepth = 100

  private static func step(_ text: String, isEscaped: Bool, in name: String) throws(UsageError) -> PathStep {
    if text.isEmpty { return .append }
    guard !isEscaped, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return .key(text) }
    guard let index = Int(text), index <= largestIndex else {
      throw UsageError("The index in '\(name)' is above \(largestIndex).")
    }
    return .index(index)
  }

  private struct Reader {
    let name: String
    var rest: Substring.UnicodeScalarView

    /// Reads up to a bracket. A backslash escapes a bracket or a digit.
    mutating func literal(until end: Unicode.Scalar) -> (text: String, isEscaped: Bool) {
      var text = String.UnicodeScalarView()
      var isEscaped = false
      while let scalar = rest.first, scalar != end {
        rest.removeFirst()
        if scalar == "\\", let next = rest.first, next == "[" || next == "]" || Character(next).isNumber {
          rest.removeFirst()
          isEscaped = true
          text.append(next)
        } else {
          text.append(scalar)
        }
      }
      return (String(text), isEscaped)
    }
  }
}
