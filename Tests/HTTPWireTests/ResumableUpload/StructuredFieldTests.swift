import HTTPWire
import Testing

@Suite("Structured fields") struct StructuredFieldTests {
  @Test(
    "Integers are read strictly",
    arguments: [
      ("0", 0), ("42", 42), ("-17", -17), (" 5 ", 5), ("007", 7), ("5;a=1", 5), ("5;a;b=?0;c=\"x\"", 5),
      ("999999999999999", 999_999_999_999_999), ("1000000000000000", nil), ("", nil), ("+5", nil),
      ("5a", nil),
      ("5 6", nil), ("5,6", nil), ("--5", nil), ("-", nil), ("5;", nil), ("5;A=1", nil), ("5.", nil),
      ("5.25", nil), ("?1", nil), ("\"5\"", nil), ("\t5", nil), ("５", nil),
    ] as [(String, Int64?)]) func integers(text: String, value: Int64?)
  {
    #expect(StructuredField.integer(text) == value)
  }

  @Test(
    "Booleans are read strictly",
    arguments: [
      ("?1", true), ("?0", false), ("?1;x=y", true), (" ?0 ", false), ("?", nil), ("?2", nil), ("1", nil),
      ("true", nil), ("?11", nil), ("?T", nil), ("?1, ?1", nil),
    ] as [(String, Bool?)]) func booleans(text: String, value: Bool?)
  {
    #expect(StructuredField.boolean(text) == value)
  }

  @Test(
    "Every type of item is read",
    arguments: [
      ("1.5", .decimal("1.5")), ("-0.125", .decimal("-0.125")), ("1.2345", nil), ("1234567890123.1", nil),
      (#""a \"b\" \\""#, .string(#"a "b" \"#)), (#""a"#, nil), (#""\a""#, nil), ("\"\u{7f}\"", nil),
      ("a/b:c*", .token("a/b:c*")), ("*x", .token("*x")), ("a b", nil), (":YQ==:", .bytes("YQ==")),
      (":YQ==", nil), (":~:", nil), ("@1659578233", .date(1_659_578_233)), ("@1.5", nil),
      (#"%"a%20b""#, .displayString("a%20b")), ("%a", nil), ("[x", nil),
    ] as [(String, StructuredField.BareItem?)]) func items(text: String, value: StructuredField.BareItem?)
  {
    #expect(StructuredField.item(text) == value)
  }

  @Test("Dictionaries are read strictly, and the last member with a key counts") func dictionaries() {
    #expect(StructuredField.dictionary("") == [:])
    #expect(
      StructuredField.dictionary("a=1, b , c=?0;x,\t*d=(1 2;x \"y\");z, a=2")
        == ["a": .integer(2), "b": .boolean(true), "c": .boolean(false), "*d": .innerList(3)])
    for invalid in [
      "a=", "A=1", "a=1,", "a=1 b=2", "a=1;", "a==1", "=1", "a=(1", "a=(1\"x\")", ",a=1", "a=1,,b",
    ] {
      #expect(StructuredField.dictionary(invalid) == nil, "\(invalid)")
    }
  }

  @Test("Every prefix and every changed byte of a field is read without a trap") func robustness() {
    let field = #"max-size=100, a="x\"y";b=:YQ==:;c=@5, d=(1.5 ?1 %"z"), e"#
    for end in 0...field.utf8.count {
      let prefix = String(decoding: field.utf8.prefix(end), as: UTF8.self)
      _ = StructuredField.dictionary(prefix)
      _ = StructuredField.item(prefix)
      for byte in [0x00, 0x20, 0x22, 0x28, 0x3B, 0x3D, 0x5C, 0x7F, 0xC3] as [UInt8]
      where end < field.utf8.count {
        var changed = Array(field.utf8)
        changed[end] = byte
        _ = StructuredField.dictionary(String(decoding: changed, as: UTF8.self))
      }
    }
    #expect(StructuredField.dictionary(field)?.count == 4)
  }

  @Test(
    "Limits of uploads are read, and unknown members are ignored",
    arguments: [
      ("max-size=100", [100, nil, nil, nil]),
      ("min-size=1, max-append-size=20;x, min-append-size=10, later=?1", [nil, 1, 20, 10]),
      ("max-age=5", [nil, nil, nil, nil]),
      ("max-size=-1", nil), ("max-size=1.5", nil), ("max-size", nil), ("max-size=10,", nil),
    ] as [(String, [Int64?]?)]) func limits(text: String, values: [Int64?]?)
  {
    let limits = UploadLimits(text)
    #expect(
      limits.map { [$0.maximumSize, $0.minimumSize, $0.maximumAppendSize, $0.minimumAppendSize] } == values)
  }
}
