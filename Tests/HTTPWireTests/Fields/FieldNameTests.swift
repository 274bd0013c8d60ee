import HTTPWire
import Testing

struct FieldNameTests {
  @Test(
    "Names are equal when only the case of ASCII letters differs",
    arguments: [
      ("Accept", "aCCEPT", true), ("", "", true), ("a-Z", "A-z", true),
      ("Accept", "Accep", false), ("@", "`", false), ("[", "{", false), ("É", "é", false),
    ])
  func equality(left: String, right: String, expected: Bool) {
    #expect(FieldName.equal(left, right) == expected)
  }
}
