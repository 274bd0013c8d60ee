/// The header fields of a message: ordered, each name once, names compared without regard to case.
///
/// The last write for a name wins and also gives the spelling; it keeps the position of the entry that it replaces. A
/// new name goes to the end, and fields are sent in this order.
///
/// ```swift
/// var headers: HTTPHeaders = ["Accept": "application/json"]
/// headers.add(.authorization(bearerToken: "secret"))
/// headers["accept"] = "text/plain"  // replaces the first
/// ```
///
/// Two values are equal when they hold the same fields in the same order and spelling.
public struct HTTPHeaders: Equatable, Hashable, Sendable {
  private var fields: [HTTPHeader] = []
  /// The positions of the names, for lists that are too long for a linear search; `nil` until needed.
  private var positions: FieldIndex?

  /// Makes an empty list.
  public init() {}

  /// Makes a list of the given fields; of a name that comes twice the last one wins.
  public init(_ headers: [HTTPHeader]) {
    fields.reserveCapacity(headers.count)
    for header in headers { update(header) }
  }

  /// Makes a list of a dictionary, in the dictionary's order; names that differ only in case collapse.
  public init(_ dictionary: [String: String]) {
    fields.reserveCapacity(dictionary.count)
    for (name, value) in dictionary { update(name: name, value: value) }
  }

  /// Makes a list of received fields. Values of a repeated name are joined by `, ` (RFC 9110 §5.3), under the spelling
  /// that came first.
  package init(joining headers: [HTTPHeader]) {
    fields.reserveCapacity(headers.count)
    // Joined at the end, because a server may repeat a name thousands of times.
    var repeated: [Int: [String]] = [:]
    for header in headers {
      if let position = position(of: header.name) {
        repeated[position, default: [fields[position].value]].append(header.value)
      } else {
        update(header)
      }
    }
    for (position, values) in repeated {
      fields[position] = HTTPHeader(name: fields[position].name, value: values.joined(separator: ", "))
    }
  }

  /// Sets a field; the same as ``update(name:value:)``.
  public mutating func add(name: String, value: String) {
    update(HTTPHeader(name: name, value: value))
  }

  /// Sets a field; the same as ``update(_:)``.
  public mutating func add(_ header: HTTPHeader) {
    update(header)
  }

  /// Replaces the field of this name without moving it, or appends it.
  public mutating func update(name: String, value: String) {
    update(HTTPHeader(name: name, value: value))
  }

  /// Replaces the field of this name without moving it, or appends it.
  public mutating func update(_ header: HTTPHeader) {
    if positions == nil, fields.count >= FieldIndex.threshold { positions = FieldIndex(fields) }
    if let position = position(of: header.name) {
      fields[position] = header
    } else {
      fields.append(header)
      positions?.note(header.name, at: fields.count - 1)
    }
  }

  /// Removes the field of this name, if there is one.
  public mutating func remove(name: String) {
    guard let position = position(of: name) else { return }
    fields.remove(at: position)
    positions = nil
  }

  /// Sorts the fields by their lower-cased names.
  public mutating func sort() {
    fields.sort { $0.name.lowercased() < $1.name.lowercased() }
    positions = nil
  }

  /// Returns the fields, sorted by their lower-cased names.
  public func sorted() -> HTTPHeaders {
    var copy = self
    copy.sort()
    return copy
  }

  /// Returns the value of the field of this name, or `nil`.
  public func value(for name: String) -> String? {
    position(of: name).map { fields[$0].value }
  }

  /// The value of the field of this name; setting `nil` removes it.
  public subscript(_ name: String) -> String? {
    get { value(for: name) }
    set {
      if let newValue {
        update(name: name, value: newValue)
      } else {
        remove(name: name)
      }
    }
  }

  /// The fields as a dictionary; the order is lost.
  public var dictionary: [String: String] {
    Dictionary(fields.map { ($0.name, $0.value) }, uniquingKeysWith: { _, last in last })
  }

  /// The fields as an array.
  package var all: [HTTPHeader] { fields }

  private func position(of name: String) -> Int? {
    if let positions { return positions.position(of: name) }
    return fields.firstIndex { FieldName.equal($0.name, name) }
  }
}

extension HTTPHeaders {
  /// Returns whether two lists hold the same fields in the same order and spelling.
  public static func == (left: HTTPHeaders, right: HTTPHeaders) -> Bool { left.fields == right.fields }

  /// Feeds the fields in their order into `hasher`.
  public func hash(into hasher: inout Hasher) { hasher.combine(fields) }
}

extension HTTPHeaders: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral {
  /// Makes a list of `"name": "value"` pairs in their order; of a name that comes twice the last wins.
  public init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { update(name: name, value: value) }
  }

  /// Makes a list of fields; of a name that comes twice the last wins.
  public init(arrayLiteral elements: HTTPHeader...) {
    self.init(elements)
  }
}

extension HTTPHeaders: Sequence, Collection {
  /// Iterates over the fields in their order.
  public func makeIterator() -> IndexingIterator<[HTTPHeader]> { fields.makeIterator() }
  /// The position of the first field.
  public var startIndex: Int { fields.startIndex }
  /// The position after the last field.
  public var endIndex: Int { fields.endIndex }
  /// The field at a position between ``startIndex`` and ``endIndex``.
  public subscript(position: Int) -> HTTPHeader { fields[position] }
  /// Returns the position after `index`.
  public func index(after index: Int) -> Int { fields.index(after: index) }
}

extension HTTPHeaders: CustomStringConvertible {
  /// One `Name: value` line a field, in their order.
  public var description: String {
    fields.map(\.description).joined(separator: "\n")
  }
}
