import Alamofire
import Testing

struct URLEncodingTests {
  private func query(
    _ parameters: Parameters?, url: String = "https://example.com/", _ encoding: URLEncoding = .default
  ) throws -> String? {
    let request = try URLRequest(url: url, method: .get)
    return try encoding.encode(request, with: parameters).url?.query(percentEncoded: true)
  }

  @Test("nil and an empty dictionary do not change the URL", arguments: [nil, [:]] as [Parameters?])
  func nothing(parameters: Parameters?) throws {
    let request = try URLRequest(url: "https://example.com/", method: .get)
    let encoded = try URLEncoding.default.encode(request, with: parameters)
    #expect(encoded.url?.absoluteString == "https://example.com/")
    #expect(encoded.httpBody == nil)
  }

  @Test(
    "Text is percent-encoded",
    arguments: [
      ([" foo ": " bar "], "%20foo%20=%20bar%20"),
      (["+foo+": "+bar+"], "%2Bfoo%2B=%2Bbar%2B"),
      (["percent%25": "%25"], "percent%2525=%2525"),
      (["?foo?": "?bar?"], "?foo?=?bar?"),
      (["foo": "/bar/baz/qux"], "foo=/bar/baz/qux"),
      (["illegal": " \"#%<>[]\\^`{}|"], "illegal=%20%22%23%25%3C%3E%5B%5D%5C%5E%60%7B%7D%7C"),
      (["reserved": ":#[]@!$&'()*+,;="], "reserved=%3A%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D"),
      (["French": "français"], "French=fran%C3%A7ais"),
      (["Emoji": "😃"], "Emoji=%F0%9F%98%83"),
      (["日本語": "x"], "%E6%97%A5%E6%9C%AC%E8%AA%9E=x"),
      (["": ""], "="),
    ] as [([String: String], String)])
  func percentEncoding(parameters: [String: String], expected: String) throws {
    #expect(try query(parameters) == expected)
    // Encoding again would trap if the query were invalid for Foundation.
    #expect(try query(parameters, .queryString) == expected)
  }

  @Test("Twenty thousand Chinese characters are encoded")
  func longText() throws {
    let text = String(repeating: "一二三四五六七八九十", count: 2_000)
    #expect(try query(["t": text])?.removingPercentEncoding == "t=\(text)")
  }

  @Test("Keys are sorted at every level and items are not reordered")
  func order() throws {
    let nested: Parameters = ["y": 1, "x": ["c": 3, "b": 2, "a": 1]]
    let parameters: Parameters = ["z": 1, "a": nested, "m": ["b", "a", "c"]]
    #expect(
      try query(parameters, url: "https://example.com/?kept=1")?.removingPercentEncoding
        == "kept=1&a[x][a]=1&a[x][b]=2&a[x][c]=3&a[y]=1&m[]=b&m[]=a&m[]=c&z=1")
  }

  @Test(
    "An existing query is not changed",
    arguments: [
      ("https://example.com/?hd=%5B1%5D", "hd=%5B1%5D&page=0"), ("https://example.com/?", "page=0"),
      ("https://example.com/?a+b#part", "a+b&page=0"),
    ])
  func existingQuery(url: String, expected: String) throws {
    #expect(try query(["page": 0], url: url) == expected)
  }

  @Test("Empty values add nothing")
  func noPairs() throws {
    #expect(try query(["a": [Int](), "b": [String: Int]()]) == nil)
    #expect(try query(["a": [Int](), "c": 1]) == "c=1")
  }

  @Test("The array encoding decides about the keys of items")
  func arrayEncodings() throws {
    let parameters: Parameters = ["k": [1, 2], "d": [["a": 1]]]
    func text(_ encoding: URLEncoding.ArrayEncoding) throws -> String? {
      try query(parameters, URLEncoding(arrayEncoding: encoding))
    }
    #expect(try text(.brackets) == "d%5B%5D%5Ba%5D=1&k%5B%5D=1&k%5B%5D=2")
    #expect(try text(.noBrackets) == "d%5Ba%5D=1&k=1&k=2")
    #expect(try text(.indexInBrackets) == "d%5B0%5D%5Ba%5D=1&k%5B0%5D=1&k%5B1%5D=2")
    #expect(try text(.custom { "\($0).\($1)" }) == "d.0%5Ba%5D=1&k.0=1&k.1=2")
  }

  @Test("The bool encoding decides about bools, and numbers are not bools")
  func bools() throws {
    let parameters: Parameters = [
      "a": true, "b": false, "c": 1, "d": 0, "e": 1.0, "f": 0.0, "g": Int8(1), "h": UInt8(0),
      "i": NSNumber(value: true), "j": NSNumber(value: 1), "k": NSNumber(value: Int8(1)), "l": Float(1),
    ]
    #expect(try query(parameters, .default) == "a=1&b=0&c=1&d=0&e=1&f=0&g=1&h=0&i=1&j=1&k=1&l=1")
    #expect(
      try query(parameters, URLEncoding(boolEncoding: .literal))
        == "a=true&b=false&c=1&d=0&e=1&f=0&g=1&h=0&i=true&j=1&k=1&l=1")
  }

  @Test(
    "Numbers are written equally on every system",
    arguments: [
      (1.0, "1"), (-0.5, "-0.5"), (0.1, "0.1"), (Float(0.1), "0.1"), (1.10, "1.1"), (1e20, "1e%2B20"),
      (1e-7, "1e-07"), (NSNumber(value: 2.0), "2"), (NSNumber(value: 2.5), "2.5"),
      (Int64.min, "\(Int64.min)"),
      (UInt64.max, "\(UInt64.max)"), (Int128.max, "\(Int128.max)"), (1_234_567, "1234567"),
    ] as [(any Sendable, String)])
  func numbers(value: any Sendable, expected: String) throws {
    #expect(try query(["n": value]) == "n=\(expected)")
  }

  @Test("Decimal numbers preserve their digits")
  func decimals() throws {
    let decimal = try #require(Decimal(string: "12345678901234567890.25"))
    #expect(try query(["n": decimal]) == "n=12345678901234567890.25")
  }

  @Test("Other values are written as their description, and optionals as their value")
  func otherValues() throws {
    struct Point: Sendable, CustomStringConvertible { var description: String { "1 2" } }
    let filled: Int? = 3
    #expect(
      try query(["p": Point(), "f": filled, "n": NSNull()])
        == "f=3&n=%3Cnull%3E&p=1%202")
  }

  @Test(
    "The destination follows the method",
    arguments: [
      (HTTPMethod.get, true), (.head, true), (.delete, true), (.post, false), (.put, false), (.patch, false),
      (.query, false), (.options, false), (HTTPMethod(rawValue: "PURGE"), false),
    ])
  func destinationByMethod(method: HTTPMethod, inQuery: Bool) throws {
    let request = try URLRequest(url: "https://example.com/", method: method)
    let encoded = try URLEncoding.default.encode(request, with: ["a": 1])
    #expect(encoded.url?.query == (inQuery ? "a=1" : nil))
    #expect(encoded.httpBody == (inQuery ? nil : Data("a=1".utf8)))
    #expect(
      encoded.headers["Content-Type"]
        == (inQuery ? nil : "application/x-www-form-urlencoded; charset=utf-8"))
  }

  @Test("The destination can be fixed")
  func fixedDestination() throws {
    let post = try URLRequest(url: "https://example.com/", method: .post)
    let get = try URLRequest(url: "https://example.com/", method: .get)
    #expect(try URLEncoding.queryString.encode(post, with: ["a": 1]).url?.query == "a=1")
    #expect(try URLEncoding.queryString.encode(post, with: ["a": 1]).httpBody == nil)
    #expect(try URLEncoding.httpBody.encode(get, with: ["a": 1]).httpBody == Data("a=1".utf8))
  }

  @Test("A body without pairs is empty, and an existing content type is preserved")
  func emptyBodyAndContentType() throws {
    var request = try URLRequest(url: "https://example.com/", method: .post)
    #expect(try URLEncoding.default.encode(request, with: [:]).httpBody == Data())
    #expect(try URLEncoding.default.encode(request, with: [:]).headers["Content-Type"] != nil)
    request.headers = ["content-type": "text/x-form", "X-Other": "1"]
    let encoded = try URLEncoding.default.encode(request, with: ["a": 1])
    #expect(encoded.headers.sorted() == request.headers.sorted())
  }

  @Test(
    "A request without a URL is refused",
    arguments: [URLEncoding.default, .queryString, .httpBody] as [URLEncoding])
  func missingURL(encoding: URLEncoding) throws {
    var request = try URLRequest(url: "https://example.com/", method: .get)
    request.url = nil
    let error = try #require(throws: AFError.self) { try encoding.encode(request, with: ["a": 1]) }
    guard case .parameterEncodingFailed(.missingURL) = error else {
      Issue.record("not the expected error: \(error)")
      return
    }
  }

  @Test("An error of the request is not wrapped")
  func requestError() {
    struct Broken: URLRequestConvertible {
      func asURLRequest() throws -> URLRequest { throw URLError(.badURL) }
    }
    #expect(throws: URLError.self) { try URLEncoding.default.encode(Broken(), with: nil) }
  }

  @Test("Single pairs and texts can be encoded")
  func publicHelpers() {
    let pairs = URLEncoding().queryComponents(fromKey: "a b", value: ["y": ["1", "2"], "x": "&"])
    #expect(pairs.map(\.0) == ["a%20b%5Bx%5D", "a%20b%5By%5D%5B%5D", "a%20b%5By%5D%5B%5D"])
    #expect(pairs.map(\.1) == ["%26", "1", "2"])
    #expect(URLEncoding().escape("a&b") == "a%26b")
  }

  @Test("The allowed characters are not percent-encoded")
  func allowedCharacters() {
    for byte in UInt8(0)..<128 {
      let scalar = Unicode.Scalar(byte)
      let isAllowed = CharacterSet.afURLQueryAllowed.contains(scalar)
      #expect((URLEncoding().escape(String(scalar)) == String(scalar)) == isAllowed)
    }
    #expect(!CharacterSet.afURLQueryAllowed.contains("é"))
  }
}
