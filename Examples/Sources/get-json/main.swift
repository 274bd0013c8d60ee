// Fetches JSON and prints it:
//
//     swift run get-json https://httpbin.org/json

import Alamofire

/// Any JSON. For the JSON of your own server, declare a type with matching properties instead:
///
///     struct User: Decodable, Sendable { let name: String }
enum JSON: Codable, Sendable {
  case null, bool(Bool), integer(Int), number(Double), string(String), array([JSON]), object([String: JSON])

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(Int.self) {
      self = .integer(value)
    } else if let value = try? container.decode(Double.self) {
      self = .number(value)
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode([JSON].self) {
      self = .array(value)
    } else {
      self = .object(try container.decode([String: JSON].self))
    }
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .number(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .array(let value): try container.encode(value)
    case .object(let value): try container.encode(value)
    }
  }
}

guard let url = CommandLine.arguments.dropFirst().first else {
  try? FileHandle.standardError.write(contentsOf: Data("Usage: get-json URL\n".utf8))
  exit(2)
}

do {
  let json = try await AF.request(url, headers: [.accept("application/json")])
    .validate()  // throws an error for a status such as 404, and for a media type that Accept does not name
    .serializingDecodable(JSON.self)
    .value
  let encoder = JSONEncoder()
  encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
  print(String(decoding: try encoder.encode(json), as: UTF8.self))
} catch {
  try? FileHandle.standardError.write(contentsOf: Data("\(error.localizedDescription)\n".utf8))
  exit(1)
}
