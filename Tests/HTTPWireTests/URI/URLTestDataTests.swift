import FoundationEssentials
import HTTPWire
import Testing

/// The relative references of the web platform's URL tests, where RFC 3986 and the URL standard of the
/// browsers agree.
@Suite struct URLTestDataTests {
  struct Row: Decodable {
    let input: String
    let base: String?
    let href: String?
    let pathname: String?
    let search: String?
    let hash: String?
  }

  /// A reason why the expected result of a row differs: the browsers' standard differs from RFC 3986.
  enum Difference: CaseIterable {
    /// The standard refuses the text; RFC 3986 has no failure.
    case refused
    /// `\` is a slash there, and tabs and line breaks vanish.
    case backslashOrControl
    /// `http:x` and `http:/x` are read as if they had both slashes.
    case schemeWithoutSlashes
    /// `///host` is read as `//host`.
    case moreThanTwoSlashes
    /// The target is another scheme, with other rules of that standard.
    case otherScheme
    /// `0x7f.1` and `[1:0::]` are normalized there, and unchanged here. Two spellings are two origins, which is safe.
    case spellingOfAddress
    /// Full-width letters and invisible characters are mapped there (UTS 46), and unchanged here.
    case compatibilityForms
  }

  static func difference(of row: Row) -> Difference? {
    guard let href = row.href else { return .refused }
    guard href.hasPrefix("http:") || href.hasPrefix("https:") else { return .otherScheme }
    let bytes = row.input.utf8
    if bytes.contains(UInt8(ascii: "\\")) || bytes.contains(where: { $0 < 0x20 }) {
      return .backslashOrControl
    }
    let reference = URIReference(lenient: row.input)
    if let scheme = reference.scheme?.lowercased(), ["http", "https"].contains(scheme) {
      guard let authority = reference.authority else { return .schemeWithoutSlashes }
      if authority.isEmpty { return .moreThanTwoSlashes }
    }
    if reference.authority?.isEmpty == true { return .moreThanTwoSlashes }
    guard let authority = reference.authority, let host = Origin(url: href)?.host else { return nil }
    let isAddress = host.contains(":") || host.allSatisfy { $0.isNumber || $0 == "." }
    if isAddress, !authority.contains(host) { return .spellingOfAddress }
    if isAddress, authority.contains(host + ".") { return .spellingOfAddress }
    let changes = authority.unicodeScalars.contains { scalar in
      (0xFF00...0xFFEF).contains(scalar.value) || scalar.properties.isDefaultIgnorableCodePoint
    }
    return changes ? .compatibilityForms : nil
  }

  static func rows() throws -> [Row] {
    let root = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    let folder = ProcessInfo.processInfo.environment["ALAMOFIRE_TEST_DATA"] ?? "/\(root)/../shared/data"
    guard let data = FileManager.default.contents(atPath: folder + "/urls/urltestdata.json") else {
      return []
    }
    // The list contains rows and comments.
    struct Entry: Decodable {
      let row: Row?
      init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        row = (try? container.decode(String.self)) == nil ? try container.decode(Row.self) : nil
      }
    }
    return try JSONDecoder().decode([Entry].self, from: data).compactMap(\.row).filter { row in
      row.base?.hasPrefix("http:") == true || row.base?.hasPrefix("https:") == true
    }
  }

  @Test("Relative references are resolved as in browsers") func references() throws {
    let rows = try Self.rows()
    guard !rows.isEmpty else { return }
    let checked = rows.filter { Self.difference(of: $0) == nil }
    #expect(checked.count > 60)
    for row in checked {
      let base = try #require(row.base)
      let href = try #require(row.href)
      let target = URIReference(lenient: URIReference.resolve(row.input, against: base))
      let expected = URIReference(lenient: href)
      #expect(Origin(url: target.text) == Origin(url: href), "\(row)")
      #expect((target.path.isEmpty ? "/" : target.path) == expected.path, "\(row)")
      #expect(target.query ?? "" == expected.query ?? "", "\(row)")
      #expect(target.fragment ?? "" == expected.fragment ?? "", "\(row)")
    }
  }

  @Test("Every class of differences occurs") func differences() throws {
    let rows = try Self.rows()
    guard !rows.isEmpty else { return }
    #expect(Set(rows.compactMap(Self.difference)) == Set(Difference.allCases))
  }
}
