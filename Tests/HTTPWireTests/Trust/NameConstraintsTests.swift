import HTTPWire
import Testing

@Suite("Name constraints") struct NameConstraintsTests {
  @Test(
    "A domain covers itself and the names below it",
    arguments: [
      ("example.com", "example.com", true), ("example.com", "a.b.example.com", true),
      ("example.com", "EXAMPLE.com.", true), ("example.com.", "a.example.com", true),
      ("example.com", "anexample.com", false), ("example.com", "com", false),
      ("bar.example.com", "foo.example.com", false), (".example.com", "a.example.com", true),
      (".example.com", "example.com", false), ("", "example.com", true),
    ])
  func cover(domain: String, host: String, isCovered: Bool) {
    let excluding = NameConstraints(permitted: [], excluded: ["other.test", domain])
    #expect(excluding.violation(by: host) == (isCovered ? .isExcluded : nil))
    let permitting = NameConstraints(permitted: ["other.test", domain], excluded: [])
    #expect(permitting.violation(by: host) == (isCovered ? nil : .isNotPermitted))
  }

  @Test("Exclusion has priority over permission, and no constraints permit all")
  func order() {
    let both = NameConstraints(permitted: ["example.com"], excluded: ["a.example.com"])
    #expect(both.violation(by: "a.example.com") == .isExcluded)
    #expect(both.violation(by: "b.example.com") == nil)
    #expect(NameConstraints(permitted: [], excluded: []).violation(by: "example.com") == nil)
  }
}
