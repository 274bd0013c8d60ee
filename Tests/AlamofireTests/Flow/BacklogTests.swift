import Alamofire
import Randomness
import Testing

@Suite("A backlog", .seeded) struct BacklogTests {
  @Test("Elements are taken in their order") func order() {
    var backlog = Backlog<Int>()
    for number in 0..<100 { backlog.append(number, weight: 1) }
    let first = backlog.take(atMost: 3)
    #expect(first == [0, 1, 2])
    let rest = backlog.take(atMost: 1000)
    #expect(rest == Array(3..<100) && backlog.isEmpty)
    let nothing = backlog.take(atMost: 1)
    #expect(nothing.isEmpty && backlog.weight == 0)
  }

  @Test("An element counts until the next one is taken") func processing() {
    var backlog = Backlog<Int>(highMark: 10, lowMark: 2)
    for number in 0..<10 { backlog.append(number, weight: 1) }
    #expect(backlog.isFull && backlog.room == 0)
    _ = backlog.take(atMost: 9)
    #expect(backlog.isFull && backlog.unreadWeight == 1, "no element is processed yet")
    backlog.finishTaken()
    #expect(backlog.hasRoom && backlog.weight == 1 && backlog.room == 9)
  }

  @Test("Single elements are taken in their order, and nothing at the end") func singles() {
    var backlog = Backlog<Int>()
    for number in 0..<200 { backlog.append(number, weight: 1) }
    var taken: [Int] = []
    while let number = backlog.takeFirst() { taken.append(number) }
    #expect(taken == Array(0..<200))
    #expect(backlog.weight == 200 && backlog.unreadWeight == 0, "the consumer is not finished")
  }

  @Test("The last element can grow") func growth() {
    var backlog = Backlog<Int>()
    backlog.growLast(by: 5)
    #expect(backlog.weight == 0, "there is none")
    backlog.append(1, weight: 2)
    backlog.growLast(by: 5)
    #expect(backlog.weight == 7)
    _ = backlog.take(atMost: 1)
    backlog.growLast(by: 5)
    #expect(backlog.weight == 7, "it was taken")
  }

  @Test("Elements are released when they are taken") func release() {
    final class Token: Sendable {}
    weak var token: Token?
    var backlog = Backlog<Token>()
    do {
      let made = Token()
      token = made
      backlog.append(made, weight: 1)
      backlog.append(Token(), weight: 1)
    }
    #expect(token != nil)
    _ = backlog.take(atMost: 1)
    #expect(token == nil)
  }

  @Test("Marks that make no sense are limited") func marks() {
    let backlog = Backlog<Int>(highMark: -1, lowMark: 5)
    #expect(backlog.highMark == 1 && backlog.lowMark == 1)
  }

  @Test("For random operations, no element is lost, doubled or counted wrongly", arguments: 0..<50)
  func walk(index: Int) {
    var random = Seed.generator(index)
    var backlog = Backlog<Int>(highMark: 50, lowMark: 10)
    var model: [(number: Int, weight: Int)] = []
    var taken: [(number: Int, weight: Int)] = []
    for number in 0..<1000 {
      switch Int.random(in: 0..<5, using: &random) {
      case 0, 1:
        let weight = Int.random(in: 0..<10, using: &random)
        backlog.append(number, weight: weight)
        model.append((number, weight))
      case 2:
        backlog.growLast(by: 3)
        if !model.isEmpty { model[model.count - 1].weight += 3 }
      default:
        let limit = Int.random(in: 0..<80, using: &random)
        let elements = backlog.take(atMost: limit)
        taken = Array(model.prefix(limit))
        model.removeFirst(taken.count)
        #expect(elements == taken.map(\.number))
      }
      let unread = model.reduce(0) { $0 + $1.weight }
      #expect(backlog.unreadWeight == unread && backlog.isEmpty == model.isEmpty)
      let weight = unread + taken.reduce(0) { $0 + $1.weight }
      #expect(
        backlog.weight == weight && backlog.isFull == (weight >= 50) && backlog.hasRoom == (weight <= 10))
    }
  }
}
