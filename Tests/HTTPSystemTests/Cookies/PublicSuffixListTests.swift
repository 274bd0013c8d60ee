import FoundationEssentials
import HTTPSystem
import HTTPWire
import Testing

@Suite(.timeLimit(.minutes(5))) struct PublicSuffixListTests {
  private let list = PublicSuffixList.shared

  @Test("The list is installed") func installedList() {
    #expect(list.isThere)
    for domain in ["com", "co.uk", "github.io", "localhost", "anything.ck"] {
      #expect(list.isPublicSuffix(domain), "\(domain)")
    }
    for domain in ["example.com", "example.co.uk", "me.github.io", "www.ck", "127.0.0.1"] {
      #expect(!list.isPublicSuffix(domain), "\(domain)")
    }
  }

  /// Returns the published vectors: `checkPublicSuffix('b.example.com', 'example.com');`, and `null` for none.
  private static func vectors() -> [(host: String, domain: String?)] {
    let root = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    let folder = ProcessInfo.processInfo.environment["ALAMOFIRE_TEST_DATA"] ?? "/\(root)/../shared/data"
    guard let data = FileManager.default.contents(atPath: folder + "/public-suffix/test_psl.txt") else {
      return []
    }
    return String(decoding: data, as: UTF8.self).split(separator: "\n").compactMap { line in
      guard line.hasPrefix("checkPublicSuffix("), let end = line.firstIndex(of: ")") else { return nil }
      let parts = line[..<end].dropFirst("checkPublicSuffix(".count).split(separator: ",")
        .map { $0.filter { $0 != "'" && $0 != " " } }
      guard parts.count == 2, parts[0] != "null" else { return nil }
      return (parts[0], parts[1] == "null" ? nil : parts[1])
    }
  }

  @Test("The published test vectors are met") func publishedVectors() {
    for (host, domain) in Self.vectors() {
      // As hosts reach the list: in ASCII.
      let host = Authority(host)?.host ?? host
      #expect(list.registrableDomain(of: host) == domain.map { Authority($0)?.host ?? $0 }, "\(host)")
    }
  }

  @Test("Threads can read the list concurrently") func threads() async {
    await withTaskGroup(of: Bool.self) { group in
      for _ in 0..<32 { group.addTask { (0..<200).allSatisfy { _ in list.isPublicSuffix("co.uk") } } }
      for await isRight in group { #expect(isRight) }
    }
  }
}
