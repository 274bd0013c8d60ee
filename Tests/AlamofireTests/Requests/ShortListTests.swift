import Testing

@testable import Alamofire

@Suite struct ShortListTests {
  @Test("Elements are in the order of their addition", arguments: 0..<4) func order(count: Int) {
    var list = ShortList<Int>()
    for number in 0..<count { list.append(number) }
    #expect(Array(list) == Array(0..<count))
    #expect(list.count == count)
    #expect(list.isEmpty == (count == 0))
    #expect(list.last == (count == 0 ? nil : count - 1))
    #expect(list.dropLast().count == max(0, count - 1))
    list = []
    #expect(list.isEmpty)
    list.append(7)
    #expect(Array(list) == [7])
  }

  @Test("A list is created from a sequence or a literal") func initializers() {
    #expect(Array(ShortList([1, 2, 3])) == [1, 2, 3])
    let list: ShortList<Int> = [4, 5]
    #expect(Array(list) == [4, 5])
  }
}
