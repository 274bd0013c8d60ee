import HTTPWire
import Testing

struct HTTPHeadersTests {
  @Test("The last value of a name replaces earlier ones and its spelling")
  func lastWriteWins() {
    var headers: HTTPHeaders = ["c": "a"]
    headers["C"] = "c"
    #expect(headers.description == "C: c")
  }

  @Test("An updated field preserves its position and a new one is appended")
  func updateKeepsItsPlace() {
    var headers: HTTPHeaders = ["One": "1", "Two": "2", "Three": "3"]
    headers.update(name: "TWO", value: "zwei")
    headers.add(HTTPHeader(name: "Four", value: "4"))
    headers.add(name: "one", value: "eins")
    headers.update(HTTPHeader(name: "three", value: "drei"))
    #expect(headers.map(\.name) == ["one", "TWO", "three", "Four"])
    #expect(headers.map(\.value) == ["eins", "zwei", "drei", "4"])
  }

  @Test("Literals with the same name in other cases are merged")
  func literalsCollapse() {
    let dictionary: HTTPHeaders = ["key": "1", "Key": "2", "KEY": "3"]
    let array: HTTPHeaders = [
      HTTPHeader(name: "key", value: "1"), HTTPHeader(name: "other", value: "x"),
      HTTPHeader(name: "Key", value: "2"),
    ]
    #expect(dictionary.description == "KEY: 3")
    #expect(array.description == "Key: 2\nother: x")
    #expect(HTTPHeaders(["a": "1", "A": "1"]).count == 1)
  }

  @Test("Values are found by case-insensitive names")
  func lookupIgnoresCase() {
    let headers: HTTPHeaders = ["Content-Type": "text/plain"]
    #expect(headers["content-type"] == "text/plain")
    #expect(headers.value(for: "CONTENT-TYPE") == "text/plain")
    #expect(headers["Content_Type"] == nil)
  }

  @Test("Fields are removed by method and by nil, and unknown names are ignored")
  func removal() {
    var headers: HTTPHeaders = ["A": "1", "B": "2", "C": "3"]
    headers.remove(name: "b")
    headers["c"] = nil
    headers.remove(name: "unknown")
    headers["unknown"] = nil
    #expect(headers == ["A": "1"])
  }

  @Test("Sorting compares the lower-cased names")
  func sorting() {
    let headers: HTTPHeaders = ["b": "1", "C": "2", "a": "3", "Accept": "4"]
    var copy = headers
    copy.sort()
    #expect(copy.map(\.name) == ["a", "Accept", "b", "C"])
    #expect(headers.sorted() == copy)
    #expect(headers.first?.name == "b")
  }

  @Test("Equality includes order and spelling")
  func equality() {
    let headers: HTTPHeaders = ["a": "1", "b": "2"]
    #expect(headers != ["b": "2", "a": "1"])
    #expect(headers != ["A": "1", "b": "2"])
    #expect(headers == ["a": "1", "b": "2"])
    #expect(headers.hashValue == HTTPHeaders(Array(headers)).hashValue)
  }

  @Test("The dictionary contains every field")
  func dictionary() {
    let headers: HTTPHeaders = ["A": "1", "B": "2"]
    #expect(headers.dictionary == ["A": "1", "B": "2"])
    #expect(HTTPHeaders(headers.dictionary).sorted() == headers)
  }

  @Test("Fields are a collection in the order of insertion")
  func collection() {
    let headers: HTTPHeaders = ["b": "1", "a": "2"]
    #expect(headers.count == 2)
    #expect(headers[0] == HTTPHeader(name: "b", value: "1"))
    #expect(headers[1].description == "a: 2")
    #expect(HTTPHeaders().isEmpty)
  }

  @Test("Names that only look alike are different")
  func onlyASCIICaseIsIgnored() {
    // U+212A KELVIN SIGN becomes "k" under Unicode's rules, but is not a letter of a field name.
    let headers: HTTPHeaders = ["key": "1", "\u{212A}ey": "2", "@": "3", "`": "4"]
    #expect(headers.count == 4)
  }
}
