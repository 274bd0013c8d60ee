import Alamofire
import Scenarios
import Testing

/// Encoded values of different shapes, independent of the options.
struct FormEncodingTests {
  private func form(_ value: some Encodable) throws -> String? {
    let text: String = try URLEncodedFormEncoder().encode(value)
    return text.removingPercentEncoding
  }

  @Test("A value of all shapes is encoded as documented")
  func golden() throws {
    struct Everything: Encodable {
      var one = "one"
      var two = 2
      var three = true
      var four = [1, 2, 3]
      var five = ["a": "a"]
      var six = ["a": ["b": "b"]]
      var seven = Nested()
      struct Nested: Encodable { var a = "a" }
    }
    let text: String = try URLEncodedFormEncoder().encode(Everything())
    #expect(
      text
        == "five%5Ba%5D=a&four%5B%5D=1&four%5B%5D=2&four%5B%5D=3&one=one&seven%5Ba%5D=a"
        + "&six%5Ba%5D%5Bb%5D=b&three=1&two=2")
  }

  @Test("Every type of number is written as Swift prints it")
  func numbers() throws {
    struct Numbers: Encodable {
      var a = Int8.min
      var b = Int16.min
      var c = Int32.min
      var d = Int64.min
      var e = Int.min
      var f = UInt8.max
      var g = UInt16.max
      var h = UInt32.max
      var i = UInt64.max
      var j = UInt.max
      var k = Int128.min
      var l = UInt128.max
      var m = 1.0
      var n = Float(1.5)
      var o = Decimal(string: "1.25")
    }
    let expected =
      "a=-128&b=-32768&c=-2147483648&d=\(Int64.min)&e=\(Int.min)&f=255&g=65535&h=4294967295"
      + "&i=\(UInt64.max)&j=\(UInt.max)&k=\(Int128.min)&l=\(UInt128.max)&m=1.0&n=1.5&o=1.25"
    #expect(try form(Numbers()) == expected)
    #expect(try form(["a": [Int128.max]]) == "a[]=\(Int128.max)")
    #expect(try form(["a": [UInt128.max]]) == "a[]=\(UInt128.max)")
  }

  @Test("Optionals of every type honour the nil encoding")
  func optionals() throws {
    struct Optionals: Encodable {
      var a: Bool?
      var b: String?
      var c: Double?
      var d: Float?
      var e: Int?
      var f: Int8?
      var g: Int16?
      var h: Int32?
      var i: Int64?
      var j: Int128?
      var k: UInt?
      var l: UInt8?
      var m: UInt16?
      var n: UInt32?
      var o: UInt64?
      var p: UInt128?
      var q: Date?
      var r: [Int]?
    }
    let text: String = try URLEncodedFormEncoder(nilEncoding: .null).encode(Optionals())
    #expect(text == "abcdefghijklmnopqr".map { "\($0)=null" }.joined(separator: "&"))
    #expect(try form(Optionals()) == "")
    #expect(try form(Optionals(a: true, c: 1, j: 5, p: 6, r: [7])) == "a=1&c=1.0&j=5&p=6&r[]=7")
  }

  @Test("Raw values, enums and wrappers are written as their wrapped value")
  func wrappers() throws {
    enum Direction: String, Encodable { case north }
    struct Wrapper: Encodable {
      var value: Int
      func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(value)
      }
    }
    #expect(try form(["d": Direction.north]) == "d=north")
    #expect(try form(["w": Wrapper(value: 3)]) == "w=3")
    #expect(try form([1: "one", 2: "two"]) == "1=one&2=two")
  }

  @Test("Empty containers are not written")
  func emptyContainers() throws {
    struct Empty: Encodable {}
    struct Value: Encodable {
      var a = [Int]()
      var b = [String: Int]()
      var c = Empty()
      var d = [[Int]]([[], [1]])
      var e = ""
    }
    #expect(try form(Empty()) == "")
    #expect(try form(Value()) == "d[][]=1&e=")
  }

  @Test("A root without keys is refused")
  func invalidRoots() throws {
    for (value, expected) in [([1], "an array"), (1, "a single value"), ("text", "a single value")]
      as [(any Encodable, String)]
    {
      let error = try #require(throws: URLEncodedFormEncoder.Error.self) {
        let _: String = try URLEncodedFormEncoder().encode(value)
      }
      guard case .invalidRootObject(let root) = error else { continue }
      #expect(root == expected)
    }
  }

  @Test("A root can be an optional")
  func optionalRoot() throws {
    #expect(try form(["a": 1] as [String: Int]?) == "a=1")
    #expect(try form([String: Int]?.none) == "")
  }

  @Test("A class and its superclass write to one form")
  func inheritance() throws {
    #expect(try form(Derived()) == "base=1&derived=2")
    #expect(try form(DerivedThroughSuperEncoder()) == "base=1&derived=2")
    #expect(try form(DerivedUnderKey()) == "derived=2&parent[base]=1")
    #expect(try form(["k": DerivedUnkeyed()]) == "k[][base]=1&k[]=2")
  }

  @Test("Nested containers can be opened repeatedly")
  func manualContainers() throws {
    #expect(
      try form(Manual())
        == "root[flag]=1&root[items][][]=2&root[items][][deep]=x&root[items][]=1&root[text]=a")
  }

  @Test("The last value of a key is written")
  func lastValueCounts() throws {
    struct Twice: Encodable {
      enum CodingKeys: CodingKey { case a, b }
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(1, forKey: .b)
        try container.encode([1, 2], forKey: .a)
        try container.encode("last", forKey: .a)
      }
    }
    #expect(try form(Twice()) == "a=last&b=1")
  }

  @Test(
    "Containers under one key are merged, and replace another kind of value",
    arguments: Reopened.Kind.allCases)
  func reopened(kind: Reopened.Kind) throws {
    #expect(try form(Reopened(kind: kind)) == kind.text)
  }

  @Test("Values under one key are merged by name and by index, as containers are") func mergedValues() throws
  {
    struct Merged: Encodable {
      enum CodingKeys: CodingKey { case a, b }
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(["x": 1, "y": 2], forKey: .a)
        try container.encode(["y": 3, "z": 4], forKey: .a)
        try container.encode([["x": 1], ["x": 2]], forKey: .b)
        try container.encode([["y": 3]], forKey: .b)
      }
    }
    #expect(try form(Merged()) == "a[x]=1&a[y]=3&a[z]=4&b[][x]=1&b[][y]=3&b[][x]=2")
  }

  @Test("Containers of one key can be used in turns") func interleaved() throws {
    struct Interleaved: Encodable {
      enum CodingKeys: CodingKey { case k, a, b, c }
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        var first = container.nestedContainer(keyedBy: CodingKeys.self, forKey: .k)
        try first.encode(1, forKey: .a)
        var second = container.nestedContainer(keyedBy: CodingKeys.self, forKey: .k)
        try second.encode(2, forKey: .b)
        try first.encode(3, forKey: .c)
        try second.encode(4, forKey: .a)
      }
    }
    #expect(try form(Interleaved()) == "k[a]=4&k[b]=2&k[c]=3")
  }

  @Test("A property without a value and an encoded nil can differ", .steps) func absentValues() throws {
    struct Patch: Encodable {
      enum CodingKeys: CodingKey { case absent, encoded, explicit, items }
      var absent: String?
      var encoded: String?
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(absent, forKey: .absent)
        try container.encode(encoded, forKey: .encoded)
        try container.encodeNil(forKey: .explicit)
        try container.encode([1, nil], forKey: .items)
      }
    }
    struct Synthesized: Encodable {
      var name: String?
      var count: Int?
    }
    let null = "encoded=null&explicit=null&items[]=1&items[]=null"
    let rows: [(URLEncodedFormEncoder, String, String)] = [
      (URLEncodedFormEncoder(nilEncoding: .null), "absent=null&\(null)", "count=null&name=null"),
      (URLEncodedFormEncoder(nilEncoding: .null, absentEncoding: .dropKey), null, ""),
      (
        URLEncodedFormEncoder(nilEncoding: .null, absentEncoding: .dropValue), "absent=&\(null)",
        "count=&name="
      ),
      (URLEncodedFormEncoder(absentEncoding: .null), "absent=null&items[]=1", "count=null&name=null"),
      (URLEncodedFormEncoder(), "items[]=1", ""),
    ]
    for (encoder, patch, synthesized) in rows {
      step("encoder for \(patch.debugDescription)")
      let texts: [String] = [try encoder.encode(Patch()), try encoder.encode(Synthesized())]
      #expect(texts.map { $0.removingPercentEncoding } == [patch, synthesized])
    }
  }

  @Test("Two values under one key are refused with the coding path", arguments: Conflict.Kind.allCases)
  func conflicts(kind: Conflict.Kind) throws {
    let error = try #require(throws: EncodingError.self) { try form(["outer": Conflict(kind: kind)]) }
    guard case .invalidValue(_, let context) = error else {
      Issue.record("not the expected error: \(error)")
      return
    }
    #expect(context.codingPath.first?.stringValue == "outer")
  }

  @Test("Encoders of values have the coding path and no user info")
  func userInfo() throws {
    struct Curious: Encodable {
      func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode("\(encoder.userInfo.count) \(encoder.codingPath.map(\.stringValue))")
      }
    }
    #expect(try form(["a": Curious()]) == #"a=0 ["a"]"#)
  }

  @Test("Errors have the coding path of an item")
  func codingPaths() throws {
    struct Deep: Encodable {
      func encode(to encoder: any Encoder) throws {
        throw EncodingError.invalidValue(
          0, EncodingError.Context(codingPath: encoder.codingPath, debugDescription: ""))
      }
    }
    struct Two: Encodable { var a: [[String: Deep]] = [[:], ["k": Deep()]] }
    let error = try #require(throws: EncodingError.self) { try form(Two()) }
    guard case .invalidValue(_, let context) = error else { return }
    #expect(context.codingPath.map(\.stringValue) == ["a", "1", "k"])
    #expect(context.codingPath[1].intValue == 1)
  }

  @Test("Ten thousand keys are written without delay")
  func manyNames() throws {
    let pairs = (0..<10_000).map { (String($0), $0) }
    let text: String = try URLEncodedFormEncoder().encode(Dictionary(uniqueKeysWithValues: pairs))
    #expect(text.split(separator: "&").count == 10_000)
  }
}

private class Base: Encodable {
  var base = 1
}

private final class Derived: Base {
  enum Key: CodingKey { case derived }
  override func encode(to encoder: any Encoder) throws {
    try super.encode(to: encoder)
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(2, forKey: .derived)
  }
}

private final class DerivedThroughSuperEncoder: Base {
  enum Key: CodingKey { case derived }
  override func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(2, forKey: .derived)
    try super.encode(to: container.superEncoder())
  }
}

private final class DerivedUnderKey: Base {
  enum Key: CodingKey { case derived, parent }
  override func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    try container.encode(2, forKey: .derived)
    try super.encode(to: container.superEncoder(forKey: .parent))
  }
}

private final class DerivedUnkeyed: Base {
  override func encode(to encoder: any Encoder) throws {
    var container = encoder.unkeyedContainer()
    try container.encode(2)
    try super.encode(to: container.superEncoder())
    guard container.count == 2 else { throw CancellationError() }
  }
}

private struct Manual: Encodable {
  enum Key: CodingKey { case root, text, flag, items, deep }
  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: Key.self)
    var first = container.nestedContainer(keyedBy: Key.self, forKey: .root)
    try first.encode("a", forKey: .text)
    var second = container.nestedContainer(keyedBy: Key.self, forKey: .root)
    try second.encode(true, forKey: .flag)
    var items = second.nestedUnkeyedContainer(forKey: .items)
    try items.encode(1)
    var deep = items.nestedContainer(keyedBy: Key.self)
    try deep.encode("x", forKey: .deep)
    var inner = items.nestedUnkeyedContainer()
    try inner.encode(2)
  }
}

struct Conflict: Encodable {
  enum Kind: CaseIterable, Sendable {
    case twoTexts, twoContainers, twoValues, nilAndText, textAndKey, keyAndText, keyAndItem, textAndNested
  }
  enum Key: CodingKey { case a }

  let kind: Kind

  func encode(to encoder: any Encoder) throws {
    var single = encoder.singleValueContainer()
    switch kind {
    case .twoTexts:
      try single.encode("a")
      try single.encode("b")
    case .twoContainers:
      try single.encode("a")
      var other = encoder.singleValueContainer()
      try other.encode("b")
    case .twoValues:
      try single.encode(["a": 1])
      try single.encode(["b": 1])
    case .nilAndText:
      try single.encodeNil()
      try single.encode("b")
    case .textAndKey:
      try single.encode("a")
      var keyed = encoder.container(keyedBy: Key.self)
      try keyed.encode(1, forKey: .a)
    case .keyAndText:
      var keyed = encoder.container(keyedBy: Key.self)
      try keyed.encode(1, forKey: .a)
      try single.encode("a")
    case .keyAndItem:
      var keyed = encoder.container(keyedBy: Key.self)
      try keyed.encode(1, forKey: .a)
      var unkeyed = encoder.unkeyedContainer()
      try unkeyed.encode(1)
    case .textAndNested:
      try single.encode("a")
      var keyed = encoder.container(keyedBy: Key.self)
      var nested = keyed.nestedContainer(keyedBy: Key.self, forKey: .a)
      try nested.encode(1, forKey: .a)
    }
  }
}
