import AFCommand
import Foundation
import FoundationNetworking
import Testing

@Suite struct RequestBuilderTests {
  private func request(_ arguments: String..., input: String = "") throws -> URLRequest {
    try request(arguments, input: input)
  }

  private func request(_ arguments: [String], input: String = "") throws -> URLRequest {
    guard case .send(let invocation) = try ArgumentParser.parse(arguments) else {
      throw UsageError("nothing is sent")
    }
    return try RequestBuilder(invocation) { .data(Data(input.utf8)) }.outgoing().request
  }

  private func body(_ request: URLRequest) -> String? {
    request.httpBody.map { String(decoding: $0, as: UTF8.self) }
  }

  @Test("Query items are appended to the typed query, in their order, percent-encoded")
  func query() throws {
    let request = try request("example.com/p?z=1#f", "b==2 3&4", "a==ü", "b==")
    #expect(request.url?.absoluteString == "https://example.com/p?z=1&b=2%203%264&a=%C3%BC&b=#f")
    #expect(try self.request("example.com?", "a==1").url?.absoluteString == "https://example.com?a=1")
  }

  @Test("A GET sends no body and no content type")
  func bareGet() throws {
    let request = try request("example.com")
    #expect(request.httpMethod == "GET")
    #expect(request.httpBody == nil)
    #expect(request.allHTTPHeaderFields?.isEmpty ?? true)
  }

  @Test("JSON members preserve their order and text; the last of equal names counts")
  func json() throws {
    let request = try request("example.com", "z=a\"/\n", "a:=1.50", "l:=[1, 2]", "a:={\"x\":null}")
    #expect(body(request) == #"{"z": "a\"/\n", "l": [1, 2], "a": {"x":null}}"#)
    #expect(request.value(forHTTPHeaderField: "Content-Type") == "application/json")
    #expect(request.value(forHTTPHeaderField: "Accept") == "application/json, */*;q=0.5")
  }

  @Test("Members whose names Unicode calls equal are two members") func equalNames() throws {
    let (one, two) = ("\u{E9}", "e\u{301}")
    for items in [["\(one)=1", "\(two)=2"], ["a[\(one)]=1", "a[\(two)]=2"]] {
      let body = try request(["example.com"] + items).httpBody ?? Data()
      let pair = "{\"\(one)\": \"1\", \"\(two)\": \"2\"}"
      let expected = items[0].hasPrefix("a") ? "{\"a\": \(pair)}" : pair
      #expect(Array(body) == Array(expected.utf8))
    }
  }

  @Test("A form preserves order and repetitions")
  func form() throws {
    let request = try request("-f", "example.com", "b=1 2", "a=&", "b=é")
    #expect(body(request) == "b=1%202&a=%26&b=%C3%A9")
    #expect(
      request.value(forHTTPHeaderField: "Content-Type") == "application/x-www-form-urlencoded; charset=utf-8")
    #expect(request.value(forHTTPHeaderField: "Accept") == nil)
  }

  @Test(
    "Brackets make nested JSON",
    arguments: [
      (["a[b]=1", "a[c]:=2"], #"{"a": {"b": "1", "c": 2}}"#),
      (["a[]=1", "a[]:=2", "a[3]=4"], #"{"a": ["1", 2, null, "4"]}"#),
      (["[]=x", "[]:={}"], #"["x", {}]"#), (["[a]=x"], #"{"a": "x"}"#),
      (["a[0][b][]=x", "a[0][b][]=y", "a[1]:=null"], #"{"a": [{"b": ["x", "y"]}, null]}"#),
      ([#"a\[b\]=1"#], #"{"a[b]": "1"}"#), ([#"a[\0]=1"#], #"{"a": {"0": "1"}}"#),
      (["a[2][x]=1", "a[0][x]=2"], #"{"a": [{"x": "2"}, null, {"x": "1"}]}"#),
      (["a[b]=1", "a=2"], #"{"a": "2"}"#), (["a[b]=1", "a[b]=2", "c="], #"{"a": {"b": "2"}, "c": ""}"#),
    ])
  func nestedJSON(items: [String], expected: String) throws {
    guard case .send(let invocation) = try ArgumentParser.parse(["example.com"] + items) else {
      throw UsageError("nothing is sent")
    }
    #expect(body(try RequestBuilder(invocation) { .data(Data()) }.outgoing().request) == expected)
  }

  @Test(
    "Contradictory nesting is refused",
    arguments: [
      ["a[b]=1", "a[]=2"], ["a[]=1", "a[b]=2"], ["a=1", "a[b]=2"], ["a[b=1"], ["a[b]c=1"], ["a[20000]=1"],
      ["[]=1", "a=2"],
    ])
  func nestingMistakes(items: [String]) throws {
    guard case .send(let invocation) = try ArgumentParser.parse(["example.com"] + items) else {
      throw UsageError("nothing is sent")
    }
    #expect(throws: UsageError.self) { try RequestBuilder(invocation) { .data(Data()) }.outgoing() }
  }

  @Test("A name with more than 100 levels is refused", arguments: ["[]", "[x]"])
  func depth(step: String) throws {
    func name(_ count: Int) -> String { "a" + String(repeating: step, count: count) + ":=1" }
    let text = body(try request("example.com", name(99))) ?? ""
    #expect(
      text.hasPrefix(#"{"a": "#)
        && text.utf8.count { $0 == UInt8(ascii: "}") || $0 == UInt8(ascii: "]") } == 100)
    for count in [100, 60_000] {
      let error = #expect(throws: UsageError.self) { try request("example.com", name(count)) }
      #expect(error.map { $0.message.utf8.count < 200 } == true)
    }
  }

  @Test("A raw body from the arguments or the input is sent unchanged")
  func raw() throws {
    #expect(body(try request("--raw", "{x", "example.com")) == "{x")
    #expect(body(try request("--raw", "-", "example.com", input: "typed")) == "typed")
  }

  @Test("Header items override default fields, and cookies are joined")
  func headers() throws {
    let request = try request(
      "-a", "u:p", "example.com", "a=b", "content-type:text/x", "X:1", "x:2", "Cookie:a=1", "Cookie:b=2")
    let fields = request.allHTTPHeaderFields ?? [:]
    #expect(request.value(forHTTPHeaderField: "Content-Type") == "text/x")
    #expect(request.value(forHTTPHeaderField: "X") == "1")
    #expect(request.value(forHTTPHeaderField: "Cookie") == "a=1; b=2")
    #expect(request.value(forHTTPHeaderField: "Authorization") == "Basic dTpw")
    #expect(fields.count == 5)
  }

  @Test(
    "Quoted words are read back unchanged by a shell",
    arguments: [
      ("plain/word-1.x", "plain/word-1.x"), ("", "''"), ("a b", "'a b'"), ("it's", #"'it'\''s'"#),
      ("$(rm -rf ~)`x`!", "'$(rm -rf ~)`x`!'"), ("a\nb", "'a\nb'"), ("?x=1&y", "'?x=1&y'"), ("ü", "'ü'"),
      ("'\u{301};id;'\u{301}", "''\\''\u{301};id;'\\''\u{301}'"), ("\u{600}'", "'\u{600}'\\'''"),
      ("'\u{200D}x", "''\\''\u{200D}x'"), ("=\u{301}", "'=\u{301}'"),
    ])
  func quoting(word: String, expected: String) {
    // Texts that are equal may have different bytes.
    #expect(Array(CurlCommand.quoted(word).utf8) == Array(expected.utf8))
  }
}
