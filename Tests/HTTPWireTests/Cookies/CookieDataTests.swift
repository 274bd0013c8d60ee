import HTTPWire
import Testing

/// The published test cases for RFC 6265. Known differences of RFC 6265bis are listed.
@Suite struct CookieDataTests {
  /// A change of RFC 6265bis.
  enum Difference: String, CaseIterable {
    /// §5.6: a text without `=`, or with an empty name, is the value of a cookie without a name. RFC 6265 §5.2
    /// ignored it.
    case nameless
    /// §5.6: a control character invalidates the whole cookie. RFC 6265 dropped only the text after it.
    case controlCharacter
    /// §5.1.4 compares paths character by character, so that `%6F` is not an `o`. The authors of the data have disabled
    /// the one case that expects otherwise.
    case encodedPath
    /// §5.6.3: an empty `Domain` counts like any other. If the last one is empty, the cookie is for the host. RFC 6265
    /// §5.2.3 left that open, and advised to ignore it.
    case emptyDomain
  }

  static let single: [String: (difference: Difference, sent: [String])] = [
    "DISABLED_PATH0029": (.encodedPath, []), "OPTIONAL_DOMAIN0042": (.emptyDomain, ["foo=bar"]),
  ]

  @Test("Every case succeeds or has a known difference") func cases() throws {
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

  /// Returns the difference that explains another outcome of a case.
  private static func difference(_ row: CookieData.Case, _ sent: [Cookie]) -> Difference? {
    if row.received.contains(where: { $0.utf8.contains { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F } }) {
      return sent.isEmpty ? .controlCharacter : nil
    }
    if let single = single[row.test] { return sent.map(\.pair) == single.sent ? single.difference : nil }
    // Except for cookies without a name, the outcome must be the expected one.
    let named = sent.filter { !$0.name.isEmpty }
    let isExpected = named.map(\.pair) == row.sent.map { "\($0.name)=\($0.value)" }
    return isExpected && named.count < sent.count ? .nameless : nil
  }
}
