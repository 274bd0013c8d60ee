/// An element of a ``BinaryHeap``.
package protocol HeapElement {
  /// Whether the element comes before another one.
  func precedes(_ other: Self) -> Bool
}

/// A binary heap, whose first element precedes all others. The cost of a change is logarithmic in their number.
///
/// A withdrawn element keeps its place until it is first, or until such elements outnumber the others, because finding
/// it would take longer for each element.
package struct BinaryHeap<Element: HeapElement> {
  private var entries: [(element: Element, number: UInt64)] = []
  /// The numbers of the withdrawn elements that have a place. The first entry is not one of them.
  private var withdrawn: Set<UInt64> = []
  private var lastNumber: UInt64 = 0
  /// The number of entries that were looked at. Tests count them.
  package private(set) var steps = 0
  /// The number of entries, with the withdrawn ones. Tests count them.
  package var entryCount: Int { entries.count }

  package init() {}

  package var count: Int { entries.count - withdrawn.count }
  package var first: Element? { entries.first?.element }

  /// Adds an element. Returns its number, by which it can be withdrawn.
  package mutating func insert(_ element: Element) -> UInt64 {
    lastNumber += 1
    entries.append((element, lastNumber))
    moveUp(entries.count - 1)
    return lastNumber
  }

  /// Removes the element with a number. It must not have been removed before.
  package mutating func withdraw(_ number: UInt64) {
    if entries.first?.number == number {
      removeFirst()
      while !withdrawn.isEmpty, let first = entries.first, withdrawn.remove(first.number) != nil {
        removeFirst()
      }
    } else {
      withdrawn.insert(number)
    }
    if withdrawn.count > count { removeWithdrawn() }
  }

  private mutating func removeFirst() {
    entries.swapAt(0, entries.count - 1)
    entries.removeLast()
    moveDown(0)
  }

  private mutating func removeWithdrawn() {
    steps += entries.count
    entries = entries.filter { !withdrawn.contains($0.number) }
    withdrawn.removeAll()
    for position in (0..<entries.count / 2).reversed() { moveDown(position) }
  }

  /// Exchanges an entry with those above it that it precedes.
  private mutating func moveUp(_ position: Int) {
    var child = position
    while child > 0 {
      let parent = (child - 1) / 2
      steps += 1
      guard entries[child].element.precedes(entries[parent].element) else { return }
      entries.swapAt(child, parent)
      child = parent
    }
  }

  /// Exchanges an entry with those below that precede it.
  private mutating func moveDown(_ position: Int) {
    var parent = position
    while 2 * parent + 1 < entries.count {
      var child = 2 * parent + 1
      steps += 1
      if child + 1 < entries.count, entries[child + 1].element.precedes(entries[child].element) { child += 1 }
      guard entries[child].element.precedes(entries[parent].element) else { return }
      entries.swapAt(child, parent)
      parent = child
    }
  }
}
