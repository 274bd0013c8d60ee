/// A list that mostly has one element, for which it needs no memory of its own.
package struct ShortList<Element: Sendable>: RandomAccessCollection, ExpressibleByArrayLiteral, Sendable {
  private var head: Element?
  /// Empty as long as there is no head.
  private var rest: [Element] = []

  package init() {}

  package init(_ elements: some Sequence<Element>) {
    for element in elements { append(element) }
  }

  package init(arrayLiteral elements: Element...) { self.init(elements) }

  package var startIndex: Int { 0 }
  package var endIndex: Int { head == nil ? 0 : 1 + rest.count }

  package subscript(position: Int) -> Element {
    if position == 0, let head { return head }
    return rest[position - 1]
  }

  package mutating func append(_ element: Element) {
    if head == nil { head = element } else { rest.append(element) }
  }
}
