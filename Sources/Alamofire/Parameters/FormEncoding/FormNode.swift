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

  /// Whether properties can be added.
  var takesProperties: Bool {
    switch content {
    case .empty, .properties: true
    case .dropped, .text, .items: false
    }
  }

  /// Returns the node for a keyed container: this one, or a new item if this is a list. A new item is made if the
  /// superclass of an unkeyed value has keys.
  func openProperties() -> FormNode {
    switch content {
    case .empty: content = .properties(FormProperties())
    case .items: return appendItem()?.openProperties() ?? self
    case .dropped, .text, .properties: break
    }
    return self
  }

  /// Makes the node a list of items, if it is nothing yet.
  func openItems() {
    if case .empty = content { content = .items([]) }
  }

  /// Writes a text, or a `nil` that leaves no trace; false when there is something already.
  func write(_ text: String?) -> Bool {
    switch content {
    case .empty:
      content = text.map(Content.text) ?? .dropped
      return true
    case .items:
      return appendItem()?.write(text) ?? false
    case .dropped, .text, .properties:
      return false
    }
  }

  /// Adds a new item at the end; returns `nil` when the node is not a list of items.
  func appendItem() -> FormNode? {
    guard case .items(var items) = content else { return nil }
    content = .empty  // so that the array is not copied
    let item = FormNode()
    items.append(item)
    content = .items(items)
    return item
  }

  /// Adds a property, which replaces one of the same name; `nil` if the node is not a list of properties.
  func replaceProperty(_ name: String) -> FormNode? {
    guard case .properties(var properties) = content else { return nil }
    content = .empty  // so that the properties are not copied
    let node = FormNode()
    properties.replace(name, with: node)
    content = .properties(properties)
    return node
  }

  /// Returns the property of a name, if there is one.
  func property(_ name: String) -> FormNode? {
    guard case .properties(let properties) = content else { return nil }
    return properties[name]
  }
}

/// Properties in the order in which they were written first.
struct FormProperties {
  private(set) var all: [(name: String, value: FormNode)] = []
  private var positions: [String: Int] = [:]

  subscript(_ name: String) -> FormNode? {
    positions[name].map { all[$0].value }
  }

  mutating func replace(_ name: String, with value: FormNode) {
    if let position = positions[name] {
      all[position].value = value
    } else {
      positions[name] = all.count
      all.append((name, value))
    }
  }
}
