import HTTPWire
import Testing

/// The published cases, which were written for RFC 6265; where RFC 6265bis wants something else, it is said.
@Suite struct CookieDataTests {
  /// The changes of RFC 6265bis.
  enum Difference: String, CaseIterable {
    /// §5.6: a text without `=`, or with nothing before it, is the value of a cookie without a name. RFC 6265 §5.2 ignored it.
    case nameless
    /// §5.6: a control character is the end of the whole cookie. Before, the text behind it was dropped.
    case controlCharacter
    /// §5.1.4 compares paths character by character, so that `%6F` is no `o`. The authors of the data have
    /// switched the one case off that wants it otherwise.
    case encodedPath
    /// §5.6.3: an empty `Domain` counts like any other, so that the last one, if it is empty, means the host. RFC 6265 §5.2.3
    /// left that open, and advised to ignore it.
    case emptyDomain
  }

  static let single: [String: (difference: Difference, sent: [String])] = [
    "DISABLED_PATH0029": (.encodedPath, []), "OPTIONAL_DOMAIN0042": (.emptyDomain, ["foo=bar"]),
  ]

  @Test func everyCaseIsMetOrItsDifferenceIsNamed() throws {
    let cases = try CookieData.cases()
    guard !cases.isEmpty else { return }
    #expect(cases.count == 222)
    var seen: [String: Difference] = [:]
    for row in cases {
      let base = "http://home.example.org:8888/cookie-parser"
      var jar = Jar()
      for field in row.received { jar.receive(field, from: "\(base)?\(row.test)") }
      let url = URIReference.resolve(row.sentTo ?? "/cookie-parser-result?\(row.test)", against: base)
      let expected = row.sent.map { "\($0.name)=\($0.value)" }
      let sent = jar.chosen(for: url)
      if sent.map(\.pair) == expected { continue }
      let difference = Self.difference(row, sent)
      #expect(difference != nil, "\(row.test): \(sent.map(\.pair))")
      seen[row.test] = difference
    }
    #expect(Set(seen.values) == Set(Difference.allCases))
    #expect(seen.count == 27)
  }

  /// Why the outcome of a case is another one, if it is allowed to be.
  private static func difference(_ row: CookieData.Case, _ sent: [Cookie]) -> Difference? {
    if row.received.contains(where: { $0.utf8.contains { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F } }) {
      return sent.isEmpty ? .controlCharacter : nil
    }
    if let single = single[row.test] { return sent.map(\.pair) == single.sent ? single.difference : nil }
    // Without the cookies that have no name, the outcome must be the expected one.
    let named = sent.filter { !$0.name.isEmpty }
    let isExpected = named.map(\.pair) == row.sent.map { "\($0.name)=\($0.value)" }
    return isExpected && named.count < sent.count ? .nameless : nil
  }
}
