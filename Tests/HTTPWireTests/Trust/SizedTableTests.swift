import HTTPWire
import Testing

@Suite("Tables of values that were made of data") struct SizedTableTests {
  @Test("All values are forgotten when their data is too large or there are too many") func limits() {
    var table = SizedTable<String, Int>(countLimit: 3, sizeLimit: 100)
    table.keep(1, for: "a", bytes: 40)
    table.keep(2, for: "b", bytes: 60)
    #expect(table["a"] == 1 && table["b"] == 2)
    table.keep(3, for: "c", bytes: 1)
    #expect(table["a"] == nil && table["b"] == nil && table["c"] == 3)
    for key in ["d", "e"] { table.keep(4, for: key, bytes: 1) }
    #expect(table["c"] == 3 && table["e"] == 4)
    table.keep(5, for: "f", bytes: 1)
    #expect(table["c"] == nil && table["f"] == 5)
  }

  @Test("A value of large data stays until another one comes") func largeData() {
    var table = SizedTable<String, Int>(countLimit: 3, sizeLimit: 100)
    table.keep(1, for: "a", bytes: 1000)
    #expect(table["a"] == 1)
    table.keep(9, for: "a", bytes: 1000)
    #expect(table["a"] == 1, "the value of a key does not change")
    table.keep(2, for: "b", bytes: 1)
    #expect(table["a"] == nil && table["b"] == 2)
  }
}
