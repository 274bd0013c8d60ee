import AFCommand
import Testing

@Suite struct RequestItemTests {
  @Test(
    "The first separator counts",
    arguments: [
      ("a=b", RequestItem.string(name: "a", value: "b")),
      ("a=", .string(name: "a", value: "")),
      ("a=b:c==d", .string(name: "a", value: "b:c==d")),
      ("a==b", .query(name: "a", value: "b")),
      ("a==b=c", .query(name: "a", value: "b=c")),
      ("a:=[1,{}]", .json(name: "a", text: "[1,{}]")),
      ("A:b", .header(name: "A", value: "b")),
      ("A:http://x=y", .header(name: "A", value: "http://x=y")),
      ("A:", .omission(name: "A")), ("A;", .header(name: "A", value: "")),
      ("A: b ", .header(name: "A", value: "b")), ("A: ", .header(name: "A", value: "")),
      ("A: \tb\t ", .header(name: "A", value: "b")),
      ("A:\u{3000}b\u{A0}", .header(name: "A", value: "\u{3000}b\u{A0}")),
      ("a;=b", .string(name: "a;", value: "b")),
      (#"a\:b=c"#, .string(name: "a:b", value: "c")),
      (#"a\=b==c"#, .query(name: "a=b", value: "c")),
      (#"a\b=c"#, .string(name: #"a\b"#, value: "c")),
      (#"a\\=c"#, .string(name: #"a\"#, value: "c")),
      ("café=ü", .string(name: "café", value: "ü")),
      ("a=@p", .stringFile(name: "a", path: "p")), ("a:=@p", .jsonFile(name: "a", path: "p")),
      ("a==@p", .queryFile(name: "a", path: "p")), ("A:@p", .headerFile(name: "A", path: "p")),
      ("@p", .body(path: "p")),
      ("f@p", .file(.init(name: "f", path: "p"))), ("f@a;b", .file(.init(name: "f", path: "a;b"))),
      ("f@p;type=a/b", .file(.init(name: "f", path: "p", type: "a/b"))),
      ("f@p;filename=x;type=a/b", .file(.init(name: "f", path: "p", type: "a/b", fileName: "x"))),
    ])
  func separators(argument: String, expected: RequestItem) throws {
    #expect(try RequestItem(parsing: argument) == expected)
  }

  private static let escapes: [(String, RequestItem)] = [
    (#"a=\@p"#, .string(name: "a", value: "@p")),
    (#"a==\@p"#, .query(name: "a", value: "@p")),
    (#"A:\@p"#, .header(name: "A", value: "@p")),
    (#"a=\=p"#, .string(name: "a", value: "=p")),
    (#"A:\=p"#, .header(name: "A", value: "=p")),
    (#"a=\\@p"#, .string(name: "a", value: #"\@p"#)),
    (#"a=\\\=p"#, .string(name: "a", value: #"\\=p"#)),
    (#"a=\p"#, .string(name: "a", value: #"\p"#)),
    (#"a=C:\=\@"#, .string(name: "a", value: #"C:\=\@"#)),
    (#"a=\"#, .string(name: "a", value: #"\"#)),
    (#"a=\\"#, .string(name: "a", value: #"\\"#)),
    (#"f@\@p"#, .file(.init(name: "f", path: #"\@p"#))),
    ("a=\\=\u{301}", .string(name: "a", value: "=\u{301}")),
  ]

  @Test("A backslash before an @ or a = keeps it in the value, and others are sent", arguments: escapes)
  func escapedValues(argument: String, expected: RequestItem) throws {
    #expect(try RequestItem(parsing: argument) == expected)
  }

  @Test("A separator counts also before a combining mark, with which it is one Character")
  func marks() throws {
    for (argument, expected) in [
      ("a=\u{301}x@/etc/passwd", RequestItem.string(name: "a", value: "\u{301}x@/etc/passwd")),
      ("a==\u{301}b", .query(name: "a", value: "\u{301}b")),
      ("A:\u{301}b", .header(name: "A", value: "\u{301}b")),
      ("a\u{D4E}=b:=1", .string(name: "a\u{D4E}", value: "b:=1")),
      (#"a\:\#u{301}b=c"#, .string(name: "a:\u{301}b", value: "c")),
      ("A\u{D4E};", .header(name: "A\u{D4E}", value: "")),
      ("f@p;type=\u{301}a", .file(.init(name: "f", path: "p", type: "\u{301}a"))),
    ] as [(String, RequestItem)] { #expect(try RequestItem(parsing: argument) == expected, "\(argument)") }
  }

  @Test(
    "An invalid item is refused",
    arguments: [
      "", "word", "=x", "==x", ":=1", ":x", ":", ";", "a;b", "a:=", "a:={", "f@", "f=@", "@", "=@x",
    ])
  func refusals(argument: String) {
    #expect(throws: UsageError.self) { try RequestItem(parsing: argument) }
  }

  @Test("An invalid JSON value is reported with the way to send it as a string")
  func jsonMistake() throws {
    let error = #expect(throws: UsageError.self) { try RequestItem(parsing: "a:=Ada") }
    #expect(error?.message == "'a:=Ada' has no JSON behind ':='; for a string write a=Ada instead.")
  }
}
