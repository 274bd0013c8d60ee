extension URIReference {
  /// Returns the URI that a reference means where `base` is the current one (RFC 3986 §5.2), read leniently
  /// (``init(lenient:)``). `base` should be absolute.
  package static func resolve(_ reference: String, against base: String) -> String {
    URIReference(lenient: reference).resolved(against: URIReference(lenient: base)).text
  }

  /// Returns the target of this reference, strictly: a reference with the scheme of its base is absolute all the same
  /// (RFC 3986 §5.2.2).
  package func resolved(against base: URIReference) -> URIReference {
    var target = self
    if scheme != nil {
      target.path = Self.removingDotSegments(path)
      return target
    }
    target.scheme = base.scheme
    if authority != nil {
      target.path = Self.removingDotSegments(path)
      return target
    }
    target.authority = base.authority
    if path.isEmpty {
      target.path = base.path
      target.query = query ?? base.query
    } else if path.utf8.first == UInt8(ascii: "/") {
      target.path = Self.removingDotSegments(path)
    } else {
      target.path = Self.removingDotSegments(base.merged(with: path))
    }
    return target
  }

  /// Returns the path of a relative reference behind the last slash of this path (RFC 3986 §5.2.3).
  private func merged(with relative: String) -> String {
    if authority != nil, path.isEmpty { return "/" + relative }
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return relative }
    return String(path[...slash]) + relative
  }

  /// Removes dot segments by RFC 3986 §5.2.4, with the same five cases in the same order.
  static func removingDotSegments(_ path: String) -> String {
    guard path.utf8.contains(UInt8(ascii: ".")) else { return path }
    let slash = UInt8(ascii: "/")
    let bytes = Array(path.utf8)
    var input = bytes[...]
    var output: [UInt8] = []
    output.reserveCapacity(input.count)
    while let first = input.first {
      if input.starts(with: "../".utf8) {
        input = input.dropFirst(3)
      } else if input.starts(with: "./".utf8) {
        input = input.dropFirst(2)
      } else if input.starts(with: "/./".utf8) {
        input = input.dropFirst(2)
      } else if input.elementsEqual("/.".utf8) {
        input = bytes[input.startIndex..<input.startIndex + 1]
      } else if input.starts(with: "/../".utf8) {
        input = input.dropFirst(3)
        output.removeSubrange((output.lastIndex(of: slash) ?? 0)...)
      } else if input.elementsEqual("/..".utf8) {
        input = bytes[input.startIndex..<input.startIndex + 1]
        output.removeSubrange((output.lastIndex(of: slash) ?? 0)...)
      } else if input.elementsEqual(".".utf8) || input.elementsEqual("..".utf8) {
        break
      } else {
        let rest = input.dropFirst(first == slash ? 1 : 0)
        let end = rest.firstIndex(of: slash) ?? rest.endIndex
        output += input[..<end]
        input = input[end...]
      }
    }
    return String(decoding: output, as: UTF8.self)
  }
}
