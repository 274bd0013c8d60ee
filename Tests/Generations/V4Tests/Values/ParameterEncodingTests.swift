import AlamofireV4
import Testing

@Suite("Parameter encodings") struct ParameterEncodingTests {
  private func request(_ method: HTTPMethod = .get, _ url: String = "http://a.test/x") throws -> URLRequest {
    try URLRequest(url: url, method: method)
  }

  private func body(_ request: URLRequest) -> String {
    String(decoding: request.httpBody ?? Data(), as: UTF8.self)
  }

  @Test("The method decides about the destination of pairs") func destinationOfMethod() throws {
    for method in [HTTPMethod.get, .head, .delete] {
      let request = try URLEncoding.default.encode(
        request(method, "http://a.test/x?a=b"), with: ["foo": "bar"])
      #expect(request.url?.absoluteString == "http://a.test/x?a=b&foo=bar")
      #expect(request.httpBody == nil)
    }
    for method in [HTTPMethod.post, .put, .patch] {
      let request = try URLEncoding.methodDependent.encode(request(method), with: ["foo": "bar"])
      #expect(request.url?.query == nil)
      #expect(body(request) == "foo=bar")
      #expect(
        request.value(forHTTPHeaderField: "Content-Type")
          == "application/x-www-form-urlencoded; charset=utf-8")
    }
  }

  @Test("The destination can be fixed") func fixedDestination() throws {
    #expect(try URLEncoding.queryString.encode(request(.post), with: ["a": 1]).url?.query == "a=1")
    let withBody = try URLEncoding.httpBody.encode(request(.get), with: ["a": 1])
    #expect(body(withBody) == "a=1" && withBody.url?.query == nil, "a GET may get a body")
    #expect(
      try URLEncoding(destination: .queryString).encode(request(.put), with: ["a": 1]).url?.query == "a=1")
  }

  @Test("The sample of the documents is sorted and escaped") func sampleOfDocuments() throws {
    let parameters: Parameters = ["foo": "bar", "baz": ["a", 1], "qux": ["x": 1, "y": 2, "z": 3]]
    let request = try URLEncoding.default.encode(request(.post), with: parameters)
    #expect(body(request) == "baz%5B%5D=a&baz%5B%5D=1&foo=bar&qux%5Bx%5D=1&qux%5By%5D=2&qux%5Bz%5D=3")
    #expect(body(request).removingPercentEncoding == "baz[]=a&baz[]=1&foo=bar&qux[x]=1&qux[y]=2&qux[z]=3")
  }

  @Test("Arrays and bools are encoded as chosen") func arraysAndBools() throws {
    let parameters: Parameters = ["a": [true, false], "b": NSNumber(value: true), "n": 1]
    let plain = try URLEncoding.default.encode(request(), with: parameters)
    #expect(plain.url?.query == "a%5B%5D=1&a%5B%5D=0&b=1&n=1")
    let other = URLEncoding(arrayEncoding: .noBrackets, boolEncoding: .literal)
    #expect(try other.encode(request(), with: parameters).url?.query == "a=true&a=false&b=true&n=1")
  }

  /// Encodes variables of several declared types. These have no influence, because this generation has one type of
  /// parameters.
  @Test("Items are ordered for every type of dictionary") func orderOfItems() throws {
    let homogeneous: [String: [String]] = ["b": ["y", "a"]]
    let mixed: [String: Any] = ["b": ["y", "a"]]
    for parameters in [homogeneous, mixed, ["b": ["y", "a"]]] as [Parameters] {
      #expect(try URLEncoding.default.encode(request(), with: parameters).url?.query == "b%5B%5D=y&b%5B%5D=a")
    }
    #expect(try URLEncoding.default.encode(request(), with: homogeneous).url?.query == "b%5B%5D=y&b%5B%5D=a")
  }

  @Test("Values of the user are printed on the caller's thread") func callersThread() throws {
    final class Counter: CustomStringConvertible {
      var count = 0
      var description: String {
        count += 1
        return "c\(count)"
      }
    }
    let counter = Counter()
    #expect(try URLEncoding.default.encode(request(), with: ["c": counter]).url?.query == "c=c1")
    #expect(counter.count == 1)
  }

  @Test("Components and escaping can be used alone") func components() {
    let pairs = URLEncoding.default.queryComponents(fromKey: "a", value: ["x": [1, 2]])
    #expect(pairs.map { "\($0)=\($1)" } == ["a%5Bx%5D%5B%5D=1", "a%5Bx%5D%5B%5D=2"])
    #expect(URLEncoding.default.escape("a b&c/?") == "a%20b%26c/?")
  }

  @Test("Without parameters the request is not changed") func noParameters() throws {
    let plain = try request(.post)
    let encodings: [any ParameterEncoding] = [
      URLEncoding.default, JSONEncoding.default, PropertyListEncoding.default,
    ]
    for encoding in encodings { #expect(try encoding.encode(plain, with: nil) == plain) }
    #expect(try URLEncoding.default.encode(request(), with: [:]).url?.absoluteString == "http://a.test/x")
  }

  @Test("A request without a URL is an error of this module") func missingURL() throws {
    var homeless = try request()
    homeless.url = nil
    let error = #expect(throws: AFError.self) { try URLEncoding.default.encode(homeless, with: ["a": 1]) }
    guard case .parameterEncodingFailed(.missingURL) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
  }

  @Test("A request without a URL cannot have a property list") func missingURLOfPropertyList() async {
    // In a separate process, because Foundation ends the process that changes a copy of such a request.
    await #expect(processExitsWith: .success) {
      var bare = try URLRequest(url: "http://a.test/", method: .post)
      bare.url = nil
      let nowhere = bare
      let error = #expect(throws: AFError.self) {
        try PropertyListEncoding.default.encode(nowhere, with: ["a": 1])
      }
      guard case .parameterEncodingFailed(.missingURL) = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(try PropertyListEncoding.default.encode(nowhere, with: nil).url == nil)
    }
  }

  @Test("JSON is encoded in the body for every method") func json() throws {
    let parameters: Parameters = ["foo": [1, 2, 3], "bar": ["baz": "qux"]]
    for method in [HTTPMethod.get, .post] {
      let request = try JSONEncoding.default.encode(request(method), with: parameters)
      #expect(request.value(forHTTPHeaderField: "Content-Type") == "application/json")
      let object = try JSONSerialization.jsonObject(with: #require(request.httpBody)) as? NSDictionary
      #expect(object == ["foo": [1, 2, 3], "bar": ["baz": "qux"]] as NSDictionary)
    }
    #expect(
      try body(JSONEncoding.default.encode(request(.post), withJSONObject: ["a", "b"])) == #"["a","b"]"#)
    #expect(try body(JSONEncoding.prettyPrinted.encode(request(.post), with: ["a": 1])).contains("\n"))
    #expect(JSONEncoding(options: .sortedKeys).options == .sortedKeys)
  }

  @Test("A value that JSON cannot represent is an error and no trap") func invalidJSON() throws {
    let error = #expect(throws: AFError.self) {
      try JSONEncoding.default.encode(request(), with: ["a": Date()])
    }
    guard case .parameterEncodingFailed(.jsonEncodingFailed) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(error?.underlyingError != nil)
  }

  @Test(
    "Property lists are encoded in the body",
    arguments: [
      PropertyListEncoding.xml, .binary, .default, PropertyListEncoding(format: .xml, options: 0),
    ])
  func propertyLists(encoding: PropertyListEncoding) throws {
    let parameters: Parameters = ["foo": [1, 2], "at": Date(timeIntervalSince1970: 0), "d": Data([1])]
    let request = try encoding.encode(request(), with: parameters)
    #expect(request.value(forHTTPHeaderField: "Content-Type") == "application/x-plist")
    let body = try #require(request.httpBody)
    var format = PropertyListSerialization.PropertyListFormat.openStep
    let list = try PropertyListSerialization.propertyList(from: body, options: [], format: &format)
    #expect(list as? NSDictionary == parameters as NSDictionary)
    #expect(format == encoding.format)
  }

  @Test("A content type of the user is not changed") func contentType() throws {
    var typed = try request(.post)
    typed.setValue("application/x-own", forHTTPHeaderField: "Content-Type")
    let encodings: [any ParameterEncoding] = [
      URLEncoding.default, JSONEncoding.default, PropertyListEncoding.default,
    ]
    for encoding in encodings {
      let request = try encoding.encode(typed, with: ["a": "b"])
      #expect(request.value(forHTTPHeaderField: "Content-Type") == "application/x-own")
      #expect(request.httpBody?.isEmpty == false)
    }
  }

  @Test("A value that a property list cannot represent is an error and no trap") func invalidPropertyList()
    throws
  {
    for value in [NSNull(), Mishap.now, Optional<Int>.none as Any] {
      let error = #expect(throws: AFError.self) {
        try PropertyListEncoding.xml.encode(request(), with: ["a": value])
      }
      guard case .parameterEncodingFailed(.propertyListEncodingFailed) = error else {
        Issue.record("\(String(describing: error)) for \(value)")
        continue
      }
      #expect(error?.underlyingError != nil)
    }
  }

  @Test("An error of a router is not wrapped") func routerError() {
    struct Broken: URLRequestConvertible { func asURLRequest() throws -> URLRequest { throw Mishap.now } }
    #expect(throws: Mishap.now) { try URLEncoding.default.encode(Broken(), with: ["a": 1]) }
    #expect(throws: Mishap.now) { try JSONEncoding.default.encode(Broken(), with: ["a": 1]) }
    #expect(throws: Mishap.now) { try PropertyListEncoding.default.encode(Broken(), with: ["a": 1]) }
  }

  private enum Mishap: Error { case now }
}
