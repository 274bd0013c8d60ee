/// A JSON document that keeps the order of its members.
enum JSONValue: Sendable, Equatable {
  case null
  case bool(Bool)
  case int(Int)
  case string(String)
  case array([JSONValue])
  case members([Member])
  /// Text that is JSON already.
  case verbatim(String)

  struct Member: Sendable, Equatable {
    let name: String
    let value: JSONValue
  }

  static func object(_ members: [(String, JSONValue)]) -> JSONValue {
    .members(members.map { Member(name: $0.0, value: $0.1) })
  }

  /// Returns pairs as httpbin shows them: a single value is a text, several values of a name are an array.
  static func multimap(_ pairs: [(name: String, value: String)]) -> JSONValue {
    var names: [String] = []
    var values: [String: [String]] = [:]
    for (name, value) in pairs {
      if values[name] == nil { names.append(name) }
      values[name, default: []].append(value)
    }
    return .members(
      names.map { name in
        let all = (values[name] ?? []).map { JSONValue.string($0) }
        return Member(name: name, value: all.count == 1 ? all[0] : .array(all))
      })
  }

  /// The text of the document (RFC 8259), without line breaks.
  var text: String {
    switch self {
    case .null: "null"
    case .bool(let value): value ? "true" : "false"
    case .int(let value): "\(value)"
    case .string(let value): Self.quoted(value)
    case .array(let values): "[\(values.map(\.text).joined(separator: ", "))]"
    case .members(let members):
      "{\(members.map { "\(Self.quoted($0.name)): \($0.value.text)" }.joined(separator: ", "))}"
    case .verbatim(let text): text
    }
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case "\u{0}"..."\u{1F}":
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}

extension Reply {
  static func json(_ document: JSONValue, status: Int = 200) -> Reply {
    var reply = Reply.json(document.text)
    reply.status = status
    return reply
  }
}
