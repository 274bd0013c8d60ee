import HTTPWire

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
