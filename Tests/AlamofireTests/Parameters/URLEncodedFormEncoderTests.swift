import Alamofire
import Testing

/// The options of the form encoder.
struct URLEncodedFormEncoderTests {
  private struct One<Value: Encodable>: Encodable { var a: Value }

  private static let reference = Date(timeIntervalSinceReferenceDate: 123.456)

  private func form(_ value: some Encodable, _ encoder: URLEncodedFormEncoder = .init()) throws -> String {
    try encoder.encode(value)
  }

  @Test("The defaults match the documentation")
  func defaults() throws {
    let encoder = URLEncodedFormEncoder()
    #expect(encoder.alphabetizeKeyValuePairs)
    #expect(encoder.alphabetizeArrayItems)
    #expect(encoder.allowedCharacters == .afURLQueryAllowed)
    #expect(try form(One(a: true)) == "a=1")
    #expect(try form(One(a: false)) == "a=0")
    #expect(try form(One(a: Data("data".utf8))) == "a=ZGF0YQ%3D%3D")
    #expect(try form(One(a: Self.reference)) == "a=123.456")
    #expect(try form(One(a: ["b": "c d"])) == "a%5Bb%5D=c%20d")
    #expect(try form(One(a: String?.none)) == "")
  }

  @Test("The result is also returned as UTF-8")
  func dataResult() throws {
    let data: Data = try URLEncodedFormEncoder().encode(["a": "é"])
    #expect(data == Data("a=%C3%A9".utf8))
  }

  @Test("The array encoding decides about the keys of items")
  func arrayEncodings() throws {
    func text(_ encoding: URLEncodedFormEncoder.ArrayEncoding) throws -> String {
      try form(["foo": [["bar": 2], ["qux": 3]]], URLEncodedFormEncoder(arrayEncoding: encoding))
    }
    #expect(try text(.brackets) == "foo%5B%5D%5Bbar%5D=2&foo%5B%5D%5Bqux%5D=3")
    #expect(try text(.noBrackets) == "foo%5Bbar%5D=2&foo%5Bqux%5D=3")
    #expect(try text(.indexInBrackets) == "foo%5B0%5D%5Bbar%5D=2&foo%5B1%5D%5Bqux%5D=3")
    #expect(try text(.custom { "\($0).\($1 + 1)" }) == "foo.1%5Bbar%5D=2&foo.2%5Bqux%5D=3")
  }

  @Test("The bool encoding decides about bools")
  func boolEncodings() throws {
    let values = ["a": true, "b": false]
    #expect(try form(values, URLEncodedFormEncoder(boolEncoding: .numeric)) == "a=1&b=0")
    #expect(try form(values, URLEncodedFormEncoder(boolEncoding: .literal)) == "a=true&b=false")
    #expect(try form(["a": [true]], URLEncodedFormEncoder(boolEncoding: .literal)) == "a%5B%5D=true")
  }

  @Test("The data encoding decides about data")
  func dataEncodings() throws {
    let value = One(a: Data("data".utf8))
    func text(_ encoding: URLEncodedFormEncoder.DataEncoding) throws -> String {
      try form(value, URLEncodedFormEncoder(dataEncoding: encoding))
    }
    #expect(try text(.base64) == "a=ZGF0YQ%3D%3D")
    #expect(try text(.deferredToData) == "a%5B%5D=100&a%5B%5D=116&a%5B%5D=97&a%5B%5D=97".sortedPairs)
    #expect(try text(.custom { "\($0.count) bytes" }) == "a=4%20bytes")
    #expect(throws: CancellationError.self) { try text(.custom { _ in throw CancellationError() }) }
  }

  @Test("The date encoding decides about dates")
  func dateEncodings() throws {
    func text(_ encoding: URLEncodedFormEncoder.DateEncoding) throws -> String {
      try form(One(a: Self.reference), URLEncodedFormEncoder(dateEncoding: encoding))
    }
    #expect(try text(.deferredToDate) == "a=123.456")
    #expect(try text(.secondsSince1970) == "a=978307323.456")
    #expect(try text(.millisecondsSince1970) == "a=978307323456.0")
    #expect(try text(.iso8601) == "a=2001-01-01T00%3A02%3A03Z")
    #expect(try text(.custom { "\($0.timeIntervalSinceReferenceDate.rounded())" }) == "a=123.0")
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(secondsFromGMT: 0)
    formatter.dateFormat = "yyyy-MM-dd HH:mm:ss.SSSS"
    #expect(try text(.formatted(formatter)) == "a=2001-01-01%2000%3A02%3A03.4560")
    #expect(throws: CancellationError.self) { try text(.custom { _ in throw CancellationError() }) }
  }

  @Test("The date encoding applies inside optionals, arrays and dictionaries")
  func nestedDates() throws {
    let encoder = URLEncodedFormEncoder(dateEncoding: .secondsSince1970)
    #expect(try form(One(a: Date?.some(Self.reference)), encoder) == "a=978307323.456")
    #expect(try form(One(a: [Self.reference]), encoder) == "a%5B%5D=978307323.456")
    #expect(try form(["a": ["b": Self.reference]], encoder) == "a%5Bb%5D=978307323.456")
  }

  @Test("The key encoding decides about keys")
  func keyEncodings() throws {
    func text(_ key: String, _ encoding: URLEncodedFormEncoder.KeyEncoding) throws -> String {
      try form([key: 1], URLEncodedFormEncoder(keyEncoding: encoding))
    }
    #expect(try text("oneTwoThree", .useDefaultKeys) == "oneTwoThree=1")
    #expect(try text("oneTwoThree", .convertToSnakeCase) == "one_two_three=1")
    #expect(try text("oneTwoThree", .convertToKebabCase) == "one-two-three=1")
    #expect(try text("oneTwoThree", .capitalized) == "OneTwoThree=1")
    #expect(try text("oneTwoThree", .uppercased) == "ONETWOTHREE=1")
    #expect(try text("oneTwoThree", .lowercased) == "onetwothree=1")
    #expect(try text("oneTwoThree", .custom { "A\($0)" }) == "AoneTwoThree=1")
    #expect(try text("", .capitalized) == "=1")
  }

  @Test(
    "Snake case separates words at capitals and at the end of runs of capitals",
    arguments: [
      ("myURLProperty", "my_url_property"), ("URLProperty", "url_property"), ("myURL", "my_url"),
      ("a", "a"), ("A", "a"), ("", ""), ("URL", "url"), ("user1Name", "user1_name"), ("_leading", "_leading"),
      ("__twoWords__", "__two_words__"), ("already_snake", "already_snake"),
      ("already_Snake", "already_snake"),
      ("aB", "a_b"), ("aBC", "a_bc"), ("ÄpfelÜber", "äpfel_über"), ("outer[innerKey]", "outer[inner_key]"),
    ])
  func words(key: String, expected: String) throws {
    let text = try form([key: 1], URLEncodedFormEncoder(keyEncoding: .convertToSnakeCase))
    #expect(text.removingPercentEncoding == "\(expected)=1")
  }

  @Test("The key encoding receives a whole key")
  func keyEncodingSeesTheWholePath() throws {
    let value = ["outer": ["inner": [1]]]
    #expect(
      try form(value, URLEncodedFormEncoder(keyEncoding: .capitalized)).removingPercentEncoding
        == "Outer[inner][]=1")
    let custom = URLEncodedFormEncoder(keyEncoding: .custom { $0 == "outer[inner][]" ? "whole" : "part" })
    #expect(try form(value, custom) == "whole=1")
  }

  @Test("The key path encoding decides about nested keys")
  func keyPathEncodings() throws {
    let value = ["a": ["b": ["c": "d"]]]
    func text(_ encoding: URLEncodedFormEncoder.KeyPathEncoding) throws -> String {
      try form(value, URLEncodedFormEncoder(keyPathEncoding: encoding))
    }
    #expect(try text(.brackets) == "a%5Bb%5D%5Bc%5D=d")
    #expect(try text(.dots) == "a.b.c=d")
    #expect(try text(.init { "-\($0)" }) == "a-b-c=d")
  }

  @Test("The nil encoding decides about nil")
  func nilEncodings() throws {
    struct Two: Encodable {
      var one = "one"
      var two: Int?
    }
    func text(_ encoding: URLEncodedFormEncoder.NilEncoding) throws -> [String] {
      let encoder = URLEncodedFormEncoder(nilEncoding: encoding)
      return [
        try form(Two(), encoder), try form(["a": Int?.none], encoder), try form(["a": [nil, 1]], encoder),
      ]
    }
    #expect(try text(.dropKey) == ["one=one", "", "a%5B%5D=1"])
    #expect(try text(.dropValue) == ["one=one&two=", "a=", "a%5B%5D=&a%5B%5D=1"])
    #expect(try text(.null) == ["one=one&two=null", "a=null", "a%5B%5D=1&a%5B%5D=null"])
    #expect(try text(.init { "nil " }) == ["one=one&two=nil%20", "a=nil%20", "a%5B%5D=1&a%5B%5D=nil%20"])
  }

  @Test("Omitted items are not counted")
  func droppedItemsHaveNoIndex() throws {
    let encoder = URLEncodedFormEncoder(arrayEncoding: .indexInBrackets)
    #expect(try form(["a": [nil, 1, nil, 2]], encoder) == "a%5B0%5D=1&a%5B1%5D=2")
  }

  @Test("The space encoding applies even if spaces are allowed characters")
  func spaceEncodings() throws {
    let value = ["a b": "c d+e"]
    #expect(try form(value, URLEncodedFormEncoder(spaceEncoding: .percentEscaped)) == "a%20b=c%20d%2Be")
    #expect(try form(value, URLEncodedFormEncoder(spaceEncoding: .plusReplaced)) == "a+b=c+d%2Be")
    let everything = CharacterSet(charactersIn: " +").union(.alphanumerics)
    #expect(try form(value, URLEncodedFormEncoder(allowedCharacters: everything)) == "a%20b=c%20d+e")
    #expect(
      try form(value, URLEncodedFormEncoder(spaceEncoding: .plusReplaced, allowedCharacters: everything))
        == "a+b=c+d+e")
  }

  @Test("The allowed characters can be set and changed")
  func allowedCharacters() throws {
    let encoder = URLEncodedFormEncoder(allowedCharacters: CharacterSet(charactersIn: "?/é"))
    #expect(try form(["?/": "aé"], encoder) == "?/=%61%C3%A9")
    encoder.allowedCharacters = .alphanumerics
    #expect(encoder.allowedCharacters == .alphanumerics)
    #expect(try form(["?/": "aé"], encoder) == "%3F%2F=a%C3%A9")
  }

  @Test("Pairs are sorted as text, items included, unless sorting is disabled")
  func sorting() throws {
    struct Value: Encodable {
      var b = ["z", "y"]
      var a = Inner()
      struct Inner: Encodable {
        var d = 1
        var c = 2
      }
    }
    func text(_ encoder: URLEncodedFormEncoder) throws -> String? {
      let text = try form(Value(), encoder)
      return text.removingPercentEncoding
    }
    #expect(try text(URLEncodedFormEncoder()) == "a[c]=2&a[d]=1&b[]=y&b[]=z")
    #expect(try text(URLEncodedFormEncoder(alphabetizeArrayItems: false)) == "a[c]=2&a[d]=1&b[]=z&b[]=y")
    #expect(try text(URLEncodedFormEncoder(alphabetizeKeyValuePairs: false)) == "b[]=z&b[]=y&a[d]=1&a[c]=2")
    #expect(
      try text(URLEncodedFormEncoder(alphabetizeKeyValuePairs: false, alphabetizeArrayItems: true))
        == "b[]=z&b[]=y&a[d]=1&a[c]=2")
  }
}

extension String {
  fileprivate var sortedPairs: String { split(separator: "&").sorted().joined(separator: "&") }
}
