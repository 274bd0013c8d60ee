import Foundation

/// JSON that is made of data items. Values keep the text in which they were written.
indirect enum JSONTree {
  case text(String)
  case object([(name: String, value: JSONTree)])
  case array([JSONTree])

  /// Returns the text, with a space behind commas and colons.
  func text() throws -> String {
    switch self {
    case .text(let text): return text
    case .object(let members):
      let texts = try members.map { "\(try Self.quoted($0.name)): \(try $0.value.text())" }
      return "{\(texts.joined(separator: ", "))}"
    case .array(let elements): return "[\(try elements.map { try $0.text() }.joined(separator: ", "))]"
    }
  }

  /// Returns a JSON string.
  static func quoted(_ text: String) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    return String(decoding: try encoder.encode(text), as: UTF8.self)
  }

  /// Puts a value in its place. If a place is taken, the last value is used, because duplicate names are undefined in
  /// JSON (RFC 8259 §4).
  ///
  /// - Parameter name: The name of the item, for errors.
  static func set(
    _ value: String, at steps: ArraySlice<JSONPath.Step>, in tree: JSONTree?, name: String
  ) throws(UsageError) -> JSONTree {
    guard let step = steps.first else { return .text(value) }
    let rest = steps.dropFirst()
    switch (step, tree) {
    case (.key(let key), .object(let members)):
      return .object(try setting(value, key, rest, in: members, name: name))
    case (.key(let key), nil): return .object(try setting(value, key, rest, in: [], name: name))
    case (.index(let index), .array(let elements)):
      return .array(try setting(value, index, rest, in: elements, name: name))
    case (.index(let index), nil): return .array(try setting(value, index, rest, in: [], name: name))
    case (.append, .array(let elements)):
      return .array(try setting(value, elements.count, rest, in: elements, name: name))
    case (.append, nil): return .array(try setting(value, 0, rest, in: [], name: name))
    case (.key, .array):
      throw UsageError("'\(name)' names a member of an object, and an earlier item made an array there.")
    case (.index, .object), (.append, .object):
      throw UsageError("'\(name)' names an element of an array, and an earlier item made an object there.")
    case (_, .text):
      throw UsageError("'\(name)' is inside a value that an earlier item has set.")
    }
  }

  private static func setting(
    _ value: String, _ key: String, _ rest: ArraySlice<JSONPath.Step>,
    in members: [(name: String, value: JSONTree)], name: String
  ) throws(UsageError) -> [(name: String, value: JSONTree)] {
    var members = members
    let index = members.firstIndex { $0.name == key }
    let tree = try set(value, at: rest, in: rest.isEmpty ? nil : index.map { members[$0].value }, name: name)
    if let index, !rest.isEmpty {
      members[index].value = tree
    } else {
      if let index { members.remove(at: index) }
      members.append((name: key, value: tree))
    }
    return members
  }

  /// Sets the value in an element. Elements between the last one and a new one are `null`.
  private static func setting(
    _ value: String, _ index: Int, _ rest: ArraySlice<JSONPath.Step>, in elements: [JSONTree], name: String
  ) throws(UsageError) -> [JSONTree] {
    var elements = elements
    var present: JSONTree?
    if index < elements.count, !rest.isEmpty { present = elements[index] }
    if case .text("null") = present { present = nil }
    while elements.count <= index { elements.append(.text("null")) }
    elements[index] = try set(value, at: rest, in: present, name: name)
    return elements
  }
}
