import HTTPWire

/// A node of a form: the values that an `Encodable` has written into one container.
///
/// A class, because several containers and encoders may write to the same node during one call of encode.
final class FormNode {
  enum Content {
    /// The node to which no value was written yet.
    case empty
    /// A `nil` was written that leaves no trace; nothing more may be written.
    case dropped
    case text(String)
    case items([FormNode])
    case properties(FormProperties)
  }

  private(set) var content: Content
  /// The number of encoders that were given this node.
  private var turns = 0
  /// The encoder that wrote last.
  private var writer = 0

  init(_ content: Content = .empty) {
    self.content = content
  }

  /// Whether nothing would be written for this node.
  var isDropped: Bool {
    switch content {
    case .empty, .dropped: true
    case .text, .items, .properties: false
    }
  }

  /// Returns the number of a new encoder. Several encoders get one node if a value writes twice under one key: their
  /// properties and items are merged by name and by index, and anything else replaces what was there.
  func beginTurn() -> Int {
    turns += 1
    return turns
  }

  /// Makes `turn` the writer. Returns whether the content, if there is any, is from another encoder.
  private func takeOver(_ turn: Int) -> Bool {
    defer { writer = turn }
    if case .empty = content { return false }
    return writer != turn
  }

  /// Turns an empty node into a list of properties. Returns a new item if the same encoder has turned it into a list of
  /// items: the superclass of an unkeyed value has keys.
  func openProperties(_ turn: Int) -> FormNode? {
    switch content {
    case .empty:
      content = .properties(FormProperties())
      writer = turn
    case .items where writer == turn:
      guard let item = item(at: nil, turn) else { return nil }
      item.content = .properties(FormProperties())
      return item
    case .items, .dropped, .text, .properties: break
    }
    return nil
  }

  /// Makes an empty node a list of items. Returns whether another encoder wrote to the node before.
  func openItems(_ turn: Int) -> Bool {
    guard case .empty = content else { return writer != turn }
    content = .items([])
    writer = turn
    return false
  }

  /// Writes a text, or a `nil` that leaves no trace; false if the same encoder wrote something before.
  func write(_ text: String?, _ turn: Int) -> Bool {
    if takeOver(turn) { content = .empty }
    switch content {
    case .empty:
      content = text.map(Content.text) ?? .dropped
      return true
    case .items:
      guard let item = item(at: nil, turn) else { return false }
      return item.write(text, item.beginTurn())
    case .dropped, .text, .properties:
      return false
    }
  }

  /// Returns the item at an index, or a new one at the end; `nil` if the same encoder wrote something other than items.
  func item(at index: Int?, _ turn: Int) -> FormNode? {
    let isOfOther = takeOver(turn)
    guard case .items(var items) = content else {
      guard isOfOther else { return nil }
      let item = FormNode()
      content = .items([item])
      return item
    }
    if let index, items.indices.contains(index) { return items[index] }
    content = .empty  // so that the array is not copied
    let item = FormNode()
    items.append(item)
    content = .items(items)
    return item
  }

  /// Returns the property of a name, which is added if there is none; `nil` if the same encoder wrote something other
  /// than properties.
  func property(_ name: String, _ turn: Int) -> FormNode? {
    let isOfOther = takeOver(turn)
    guard case .properties(var properties) = content else {
      guard isOfOther else { return nil }
      var properties = FormProperties()
      let node = properties.add(name)
      content = .properties(properties)
      return node
    }
    if let known = properties[name] { return known }
    content = .empty  // so that the properties are not copied
    let node = properties.add(name)
    content = .properties(properties)
    return node
  }
}

/// Properties in the order in which they were written first.
struct FormProperties {
  private(set) var all: [(name: String, value: FormNode)] = []
  private var positions: [String: Int] = [:]

  subscript(_ name: String) -> FormNode? {
    positions[name].map { all[$0].value }
  }

  mutating func add(_ name: String) -> FormNode {
    let node = FormNode()
    positions[name] = all.count
    all.append((name, node))
    return node
  }
}

/// Writes the tree of nodes as pairs.
struct FormSerializer {
  let encoder: URLEncodedFormEncoder
  let percentEncoding: PercentEncoding

  func serialize(_ properties: [(name: String, value: FormNode)]) -> String {
    join(
      properties.map { serialize($0.value, path: $0.name) }, sorted: encoder.alphabetizeKeyValuePairs)
  }

  /// Returns the pairs of a node, joined; empty when there is nothing to write.
  private func serialize(_ node: FormNode, path: String) -> String {
    switch node.content {
    case .empty, .dropped:
      return ""
    case .text(let text):
      return "\(escape(encoder.keyEncoding.encode(path)))=\(escape(text))"
    case .items(let items):
      let parts = items.lazy.filter { !$0.isDropped }.enumerated().map { index, item in
        serialize(item, path: encoder.arrayEncoding.encode(path, atIndex: index))
      }
      return join(
        Array(parts), sorted: encoder.alphabetizeKeyValuePairs && encoder.alphabetizeArrayItems)
    case .properties(let properties):
      let parts = properties.all.map { name, value in
        serialize(value, path: path + encoder.keyPathEncoding.encode(name))
      }
      return join(parts, sorted: encoder.alphabetizeKeyValuePairs)
    }
  }

  /// Joins pairs. Sorting compares pairs that are already joined, because callers rely on the order that this gives.
  private func join(_ parts: [String], sorted: Bool) -> String {
    let parts = parts.filter { !$0.isEmpty }
    return (sorted ? parts.sorted() : parts).joined(separator: "&")
  }

  private func escape(_ text: String) -> String {
    switch encoder.spaceEncoding {
    case .plusReplaced:
      percentEncoding.encode(text, spacesAsPluses: true)
    case .percentEscaped:
      percentEncoding.encode(text)
    }
  }
}
