import Foundation

/// The description of a request by httpbin: `/anything`, `/get`, `/post` and similar paths.
struct Echo: Decodable, Sendable {
  let method: String?
  let url: String
  /// The query.
  let args: [String: Values]
  /// The fields of a form in the body.
  let form: [String: Values]?
  /// The body as JSON; `nil` for other bodies.
  let json: JSONValue?
  /// The body, if it is not a form.
  let data: String?
  let headers: [String: String]

  /// Returns the value of a header field. httpbin capitalizes names.
  func header(_ name: String) -> String? {
    headers.first { $0.key.lowercased() == name.lowercased() }?.value
  }
}

/// All values of one name in a query or a form. httpbin writes a single value without a list.
struct Values: Decodable, Sendable, Equatable, ExpressibleByArrayLiteral, ExpressibleByStringLiteral {
  let all: [String]

  init(arrayLiteral elements: String...) { all = elements }
  init(stringLiteral value: String) { all = [value] }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let one = try? container.decode(String.self) {
      all = [one]
    } else {
      all = try container.decode([String].self)
    }
  }
}

/// A JSON value.
enum JSONValue: Codable, Sendable, Equatable {
  case null
  case bool(Bool)
  case number(Double)
  case string(String)
  case array([JSONValue])
  case object([String: JSONValue])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(Double.self) {
      self = .number(value)
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode([JSONValue].self) {
      self = .array(value)
    } else {
      self = .object(try container.decode([String: JSONValue].self))
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let value): try container.encode(value)
    case .number(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .array(let value): try container.encode(value)
    case .object(let value): try container.encode(value)
    }
  }
}
