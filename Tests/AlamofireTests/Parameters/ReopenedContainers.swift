/// A type that opens a container under one key twice.
struct Reopened: Encodable {
  enum Kind: String, CaseIterable, Sendable {
    case items, shorterItems, properties, propertiesAfterItems, itemsAfterProperties, propertiesAfterText
    case itemsAfterNil, itemsAfterText, textAfterItems, superAfterItems, itemsAfterSuper, superAfterText
    case textAfterSuper, superPropertiesAfterProperties, propertiesInItems, containerUnused

    /// The form as upstream writes it: values are placed by their coding paths.
    var text: String {
      switch self {
      case .items: "k[]=3&k[]=4"
      case .shorterItems, .superAfterItems: "k[]=2&k[]=3"
      case .itemsAfterSuper: "k[]=1&k[]=2"
      case .itemsAfterProperties, .itemsAfterNil, .itemsAfterText: "k[]=3"
      case .properties, .superPropertiesAfterProperties: "k[a]=1&k[b]=2"
      case .propertiesAfterItems, .propertiesAfterText: "k[b]=2"
      case .superAfterText, .textAfterSuper, .textAfterItems: "k=3"
      case .propertiesInItems: "k[][a]=1&k[][b]=2"
      case .containerUnused: "k=text"
      }
    }
  }

  enum Key: CodingKey { case k, a, b }

  let kind: Kind

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    try encodeFirst(in: &container)
    try encodeSecond(in: &container)
  }

  private func encodeFirst(in container: inout KeyedEncodingContainer<Key>) throws {
    switch kind {
    case .items, .shorterItems, .propertiesAfterItems, .superAfterItems, .textAfterItems:
      var items = container.nestedUnkeyedContainer(forKey: .k)
      try items.encode(1)
      try items.encode(2)
    case .properties, .itemsAfterProperties, .superPropertiesAfterProperties:
      var properties = container.nestedContainer(keyedBy: Key.self, forKey: .k)
      try properties.encode(1, forKey: .a)
    case .propertiesAfterText, .superAfterText, .itemsAfterText, .containerUnused:
      try container.encode("text", forKey: .k)
    case .itemsAfterNil: try container.encodeNil(forKey: .k)
    case .textAfterSuper: try "text".encode(to: container.superEncoder(forKey: .k))
    case .itemsAfterSuper: try [3, 2].encode(to: container.superEncoder(forKey: .k))
    case .propertiesInItems:
      var items = container.nestedUnkeyedContainer(forKey: .k)
      var item = items.nestedContainer(keyedBy: Key.self)
      try item.encode(1, forKey: .a)
    }
  }

  private func encodeSecond(in container: inout KeyedEncodingContainer<Key>) throws {
    switch kind {
    case .items, .shorterItems, .itemsAfterProperties, .itemsAfterNil, .itemsAfterText:
      var items = container.nestedUnkeyedContainer(forKey: .k)
      try items.encode(3)
      if kind == .items { try items.encode(4) }
    case .itemsAfterSuper:
      var items = container.nestedUnkeyedContainer(forKey: .k)
      try items.encode(1)
    case .properties, .propertiesAfterItems, .propertiesAfterText:
      var properties = container.nestedContainer(keyedBy: Key.self, forKey: .k)
      try properties.encode(2, forKey: .b)
    case .superPropertiesAfterProperties: try ["b": 2].encode(to: container.superEncoder(forKey: .k))
    case .superAfterItems: try [3].encode(to: container.superEncoder(forKey: .k))
    case .superAfterText, .textAfterSuper: try 3.encode(to: container.superEncoder(forKey: .k))
    case .textAfterItems: try container.encode(3, forKey: .k)
    case .propertiesInItems:
      var items = container.nestedUnkeyedContainer(forKey: .k)
      var item = items.nestedContainer(keyedBy: Key.self)
      try item.encode(2, forKey: .b)
    case .containerUnused:
      _ = container.nestedContainer(keyedBy: Key.self, forKey: .k)
      _ = container.nestedUnkeyedContainer(forKey: .k)
    }
  }
}
