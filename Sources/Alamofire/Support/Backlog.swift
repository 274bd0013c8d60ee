/// Elements in order, each with a weight, between a writer that stops at a high mark and a consumer. Pure: the owner
/// holds its lock, and wakes the consumer or the writer.
///
/// An element counts until the consumer has processed it. So a slow consumer that has taken everything still holds the
/// writer back.
package struct Backlog<Element: Sendable>: Sendable {
  /// The weight at which the writer stops.
  package let highMark: Int
  /// The weight to which the consumer has to reduce its elements before the writer continues.
  package let lowMark: Int
  /// The weight of the elements that are not processed.
  package private(set) var weight = 0
  /// The weight of the elements that are not taken.
  package private(set) var unreadWeight = 0

  private var items: [(element: Element?, weight: Int)] = []
  /// The index of the first element that is not taken.
  private var head = 0

  package init(highMark: Int = 1 << 20, lowMark: Int = 1 << 18) {
    self.highMark = max(1, highMark)
    self.lowMark = min(max(0, lowMark), self.highMark)
  }

  /// Whether there is nothing to take.
  package var isEmpty: Bool { head == items.count }

  /// Whether the writer has to stop.
  package var isFull: Bool { weight >= highMark }

  /// Whether a writer that has stopped may continue.
  package var hasRoom: Bool { weight <= lowMark }

  /// The weight after which the writer has to stop.
  package var room: Int { max(0, highMark - weight) }

  package mutating func append(_ element: Element, weight: Int) {
    items.append((element, weight))
    unreadWeight += weight
    self.weight += weight
  }

  /// Adds to the weight of the last element, which is not taken.
  package mutating func growLast(by weight: Int) {
    guard head < items.count else { return }
    items[items.count - 1].weight += weight
    unreadWeight += weight
    self.weight += weight
  }

  /// Takes the first element, which counts until ``finishTaken()``.
  package mutating func takeFirst() -> Element? {
    guard head < items.count else { return nil }
    let element = items[head].element.take()
    unreadWeight -= items[head].weight
    head += 1
    if head == items.count {
      items.removeAll(keepingCapacity: head <= 64)
      head = 0
    } else if head > 64, head > items.count / 2 {
      items.removeFirst(head)
      head = 0
    }
    return element
  }

  /// Notes that the consumer has processed what it took.
  package mutating func finishTaken() { weight = unreadWeight }

  /// Takes elements for a consumer that has processed the earlier ones.
  package mutating func take(atMost limit: Int) -> [Element] {
    finishTaken()
    let count = min(limit, items.count - head)
    var taken: [Element] = []
    taken.reserveCapacity(count)
    while taken.count < count, let element = takeFirst() { taken.append(element) }
    return taken
  }
}
