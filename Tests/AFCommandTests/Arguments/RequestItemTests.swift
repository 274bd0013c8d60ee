import AFCommand
import Testing

@Suite struct RequestItemTests {
  @Test(
    "the first separator counts",
    arguments: [
      ("a=b", RequestItem.string(name: "a", value: "b")),
      ("a=", .string(name: "a", value: "")),
      ("a=b:c==d", .string(name: "a", value: "b:c==d")),
      ("a==b", .query(name: "a", value: "b")),
      ("a==b=c", .query(name: "a", value: "b=c")),
      ("a:=[1,{}]", .json(name: "a", text: "[1,{}]")),
      ("A:b", .header(name: "A", value: "b")),
      ("A:http://x=y", .header(name: "A", value: "http://x=y")),
      ("A:", .header(name: "A", value: "")),
      (#"a\:b=c"#, .string(name: "a:b", value: "c")),
      (#"a\=b==c"#, .query(name: "a=b", value: "c")),
      (#"a\b=c"#, .string(name: #"a\b"#, value: "c")),
      (#"a\\=c"#, .string(name: #"a\"#, value: "c")),
      ("café=ü", .string(name: "café", value: "ü")),
    ])
  func separators(argument: String, expected: RequestItem) throws {
    #expect(try RequestItem(parsing: argument) == expected)
  }

  @Test(
    "an invalid item is refused",
    arguments: ["", "word", "=x", "==x", ":=1", ":x", "a:=", "a:={", "f@x", "f=@x"])
  func refusals(argument: String) {
    #expect(throws: UsageError.self) { try RequestItem(parsing: argument) }
  }

  @Test("an invalid JSON value is reported with the way to send it as a string")
  func jsonMistake() throws {
    let error = #expect(throws: UsageError.self) { try RequestItem(parsing: "a:=Ada") }
    #expect(error?.message == "'Ada' in 'a:=Ada' is not JSON; for a string write a=Ada instead.")
  }
}
