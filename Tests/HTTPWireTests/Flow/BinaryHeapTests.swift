import HTTPWire
import Randomness
import Testing

@Suite("Binary heaps", .seeded, .timeLimit(.minutes(5))) struct BinaryHeapTests {
  private struct Number: HeapElement {
    let value: Int
    func precedes(_ other: Number) -> Bool { value < other.value }
  }

  @Test("An empty heap has no first element") func empty() {
    var heap = BinaryHeap<Number>()
    #expect(heap.first == nil && heap.count == 0)
    let number = heap.insert(Number(value: 1))
    #expect(heap.first?.value == 1 && heap.count == 1)
    heap.withdraw(number)
    #expect(heap.first == nil && heap.count == 0 && heap.entryCount == 0)
  }

  @Test("After random changes, the first element is the first one of a sorted array", arguments: 0..<20)
  func walk(index: Int) {
    var random = Seed.generator(index)
    var heap = BinaryHeap<Number>()
    var sorted: [(value: Int, number: UInt64)] = []
    for change in 0..<2_000 {
      // The heap grows and shrinks by turns.
      let isInsertion = Int.random(in: 0..<5, using: &random) < (change % 500 < 250 ? 3 : 1)
      if isInsertion {
        let value = Int.random(in: 0..<100, using: &random) * 10_000 + change
        let number = heap.insert(Number(value: value))
        sorted.insert((value, number), at: sorted.firstIndex { $0.value > value } ?? sorted.count)
      } else if !sorted.isEmpty {
        let isFirst = Bool.random(using: &random)
        let position = isFirst ? 0 : Int.random(in: 0..<sorted.count, using: &random)
        heap.withdraw(sorted.remove(at: position).number)
      }
      #expect(heap.first?.value == sorted.first?.value, "change \(change)")
      #expect(heap.count == sorted.count, "change \(change)")
      #expect(heap.entryCount <= 2 * sorted.count, "withdrawn elements outnumber the others")
    }
  }

  @Test("The cost of 10,000 elements is logarithmic, also if each one comes before all others")
  func steps() {
    let count = 10_000
    var random = Seed.generator()
    var heap = BinaryHeap<Number>()
    let numbers = (0..<count).map { heap.insert(Number(value: -$0)) }
    #expect(heap.steps <= 14 * count, "\(heap.steps) steps of insertions")
    for number in numbers.shuffled(using: &random) { heap.withdraw(number) }
    #expect(heap.entryCount == 0)
    #expect(heap.steps <= 28 * count, "\(heap.steps) steps")
  }
}
