/// The place of a value in nested JSON: `a[b][0][]`.
package struct JSONPath: Equatable, Sendable {
  package enum Step: Equatable, Sendable {
    /// A member of an object.
    case key(String)
    /// An element of an array.
    case index(Int)
    /// A new element at the end of an array.
    case append
  }

  package let steps: [Step]

  /// Reads the name of a data item. Without brackets it is one key.
  package init(_ name: String) throws(UsageError) {
    var reader = Reader(name: name, rest: name[...])
    var steps: [Step] = []
    if reader.rest.first != "[" { steps.append(.key(reader.literal(until: "[").text)) }
    while reader.rest.first == "[" {
      reader.rest.removeFirst()
      let (text, isEscaped) = reader.literal(until: "]")
      guard reader.rest.popFirst() == "]" else {
        throw UsageError(#"'\#(name)' has a '[' without its ']'; for a bracket in a name write '\['."#)
      }
      guard reader.rest.isEmpty || reader.rest.first == "[" else {
        throw UsageError(
          #"'\#(name)' has '\#(reader.rest)' after a ']'; for a bracket in a name write '\['."#)
      }
      steps.append(try Self.step(text, isEscaped: isEscaped, in: name))
    }
    self.steps = steps
  }

  private static let largestIndex = 10_000

  private static func step(_ text: String, isEscaped: Bool, in name: String) throws(UsageError) -> Step {
    if text.isEmpty { return .append }
    guard !isEscaped, text.allSatisfy({ ("0"..."9").contains($0) }) else { return .key(text) }
    guard let index = Int(text), index <= largestIndex else {
      throw UsageError("The index in '\(name)' is above \(largestIndex).")
    }
    return .index(index)
  }

  private struct Reader {
    let name: String
    var rest: Substring

    /// Reads up to a bracket. A backslash escapes a bracket or a digit.
    mutating func literal(until end: Character) -> (text: String, isEscaped: Bool) {
      var text = ""
      var isEscaped = false
      while let character = rest.first, character != end {
        rest.removeFirst()
        if character == "\\", let next = rest.first, "[]".contains(next) || next.isNumber {
          rest.removeFirst()
          isEscaped = true
          text.append(next)
        } else {
          text.append(character)
        }
      }
      return (text, isEscaped)
    }
  }
}
