import HTTPWire
import Testing

@Suite("Suggested file names") struct SuggestedFilenameTests {
  private func name(_ disposition: String?, _ path: String = "/path", host: String? = "host.test") -> String {
    SuggestedFilename.name(contentDisposition: disposition, path: path, host: host)
  }

  @Test(
    "The name comes from Content-Disposition (RFC 6266)",
    arguments: [
      ("attachment; filename=a.txt", "a.txt"),
      ("attachment; filename=\"a b.txt\"", "a b.txt"),
      ("inline;FILENAME = \"a;b.txt\" ; x=y", "a;b.txt"),
      ("attachment; filename=\"a \\\"quoted\\\".txt\"", "a \"quoted\".txt"),
      ("attachment; filename=\"%41.txt\"", "%41.txt"),
      ("attachment; filename*=UTF-8''%e2%82%ac%20rates.txt", "€ rates.txt"),
      ("attachment; filename*=utf-8'en'a.txt; filename=b.txt", "a.txt"),
      ("attachment; filename=b.txt; filename*=UTF-8''a.txt", "a.txt"),
      ("attachment; filename*=iso-8859-1'en'%A3.txt", "£.txt"),
      ("attachment; filename=\" a.txt \"", "a.txt"),
    ])
  func disposition(value: String, expected: String) {
    #expect(name(value) == expected)
  }

  @Test(
    "An invalid filename* is replaced by filename",
    arguments: ["UTF-8''%FF", "UTF-8''%4", "UTF-8''%zz", "UTF-8", "koi8-r''a.txt", "UTF-8''..", "UTF-8''%2F"])
  func unreadable(value: String) {
    #expect(name("attachment; filename*=\(value); filename=b.txt") == "b.txt")
    #expect(name("attachment; filename*=\(value)") == "path")
  }

  @Test(
    "A name is one path component without control characters",
    arguments: [
      ("../../etc/passwd", "passwd"), ("/etc/passwd", "passwd"), ("C:\\\\dir\\\\a.txt", "a.txt"),
      ("..\\\\..\\\\a.txt", "a.txt"), ("a\u{0}b\n.txt", "ab.txt"), ("dir/.\u{0}.", "path"), ("..", "path"),
      (".", "path"), ("", "path"), ("dir/", "path"), ("\u{1}", "path"), (" .. ", "path"),
      (".hidden", "hidden"), ("..a", "a"), ("-rf", "rf"), ("--output=x", "output=x"), (". - a", "a"),
      ("-", "path"),
      ("a-b.c", "a-b.c"), ("a\u{202E}gpj.exe", "agpj.exe"), ("\u{2066}a\u{200B}\u{2028}b\u{FEFF}", "ab"),
      ("\u{A0}a\u{3000}", "a"), ("\u{202E}", "path"), ("\u{9B}2Ja", "2Ja"),
    ])
  func components(value: String, expected: String) {
    #expect(name("attachment; filename=\"\(value)\"") == expected)
  }

  @Test(
    "A path of Windows is one whether or not its backslashes are escaped",
    arguments: [
      (#""C:\dir\f.txt""#, "f.txt"), (#""C:\\dir\\f.txt""#, "f.txt"), (#"C:\dir\f.txt"#, "f.txt"),
      (#""\\server\share\f.txt""#, "f.txt"), (#""..\..\f.txt""#, "f.txt"), (#""C:\dir; a\f.txt""#, "f.txt"),
      (#""a\"b.txt""#, "a\"b.txt"), (#""a\\b.txt""#, "b.txt"),
    ])
  func windowsPaths(value: String, expected: String) {
    #expect(name("attachment; filename=\(value)") == expected)
  }

  @Test("A name may be limited to fewer bytes") func shorterNames() {
    #expect(SuggestedFilename.component(String(repeating: "x", count: 300), longest: 200)?.utf8.count == 200)
    #expect(SuggestedFilename.component("dir/.a", longest: 200) == "a")
    #expect(SuggestedFilename.component("..", longest: 200) == nil)
  }

  @Test("The name of a file beside another one fits into a file system")
  func companions() {
    for count in [10, 244, 245, 251, 255] {
      let name = String(repeating: "x", count: count)
      for path in [name, "/a/b/\(name)"] {
        let companion = CompanionName.path(beside: path, suffix: ".part", reserving: 4)
        #expect(
          companion.hasSuffix(".part") && companion.hasPrefix(path.prefix(path.utf8.count - count + 10)))
        let last = companion.split(separator: "/").last ?? ""
        #expect(last.utf8.count <= 251)
        #expect((companion == path + ".part") == (count <= 246), "\(count)")
      }
    }
    let names = ["a", "b"].map {
      CompanionName.path(beside: String(repeating: "ä", count: 126) + $0, suffix: ".part")
    }
    #expect(names[0] != names[1])
    // A name may be one Character.
    let marked = CompanionName.path(beside: "/d/a" + marks(126), suffix: ".part")
    #expect(marked.utf8.starts(with: "/d/a\u{301}".utf8) && marked.utf8.count > 255, "\(marked.utf8.count)")
    #expect(CompanionName.path(beside: "/", suffix: ".part") == "/.part")
  }

  @Test("Encoded separators of filename* are separators")
  func encodedSeparators() {
    #expect(name("attachment; filename*=UTF-8''..%2F..%2Fa.txt") == "a.txt")
    #expect(name("attachment; filename*=UTF-8''..%5Ca%00.txt") == "a.txt")
  }

  @Test(
    "Without Content-Disposition the name is the last part of the path",
    arguments: [
      ("/files/report.pdf", "report.pdf"), ("/a%20b.txt", "a b.txt"), ("/dir/", "dir"),
      ("/x/..%2F..%2Fb", "b"),
      ("/a%2Fb%20c.txt", "b c.txt"), ("/%2e%2e", "host.test"), ("/%FF", "host.test"), ("/", "host.test"),
      ("", "host.test"), ("/%00", "host.test"), ("//", "host.test"), ("/100%", "host.test"),
    ])
  func path(path: String, expected: String) {
    for disposition in [nil, "", "inline", "attachment; name=x", "attachment; filename"] {
      #expect(name(disposition, path) == expected)
    }
  }

  @Test("Without a path and a host the name is Unknown")
  func unknown() {
    #expect(name(nil, "", host: nil) == "Unknown")
    #expect(name(nil, "/", host: "..") == "Unknown")
  }

  private func marks(_ count: Int) -> String { String(repeating: "\u{301}", count: count) }

  /// Returns a text of repeated characters between two others.
  private func long(_ start: String, _ middle: String, _ count: Int, _ end: String = "") -> String {
    start + String(repeating: middle, count: count) + end
  }

  @Test("A long name is shortened by scalars, because a Character may be all of it")
  func longCharacters() {
    let (person, tone, joining, mark) = ("\u{1F469}", "\u{1F3FD}", "\u{D4E}", "\u{301}")
    let rows: [(String, String?)] = [
      (long("a", mark, 127), long("a", mark, 127)), (long("a", mark, 128), long("a", mark, 127)),
      (long("a", mark, 200), long("a", mark, 127)),
      (long("a", mark, 200, ".txt"), long("a", mark, 125, ".txt")),
      (long("a", mark, 125, ".bash_profile"), long("a", mark, 120, ".bash_profile")),
      (long("a", joining, 100, ".sh"), long("a", joining, 83, ".sh")),
      (long(person, tone, 80), long(person, tone, 62)),
      // A full stop is one beside a mark, too, and a name does not begin with a mark.
      (".\u{301}profile", "profile"), ("\u{301}.\u{301}-x", "x"), ("a/\u{301}b", "b"), ("\u{301}", nil),
      (long("x", "x", 299, ".\u{301}t"), long("x", "x", 250, ".\u{301}t")),
    ]
    for (name, expected) in rows {
      let shown = name.unicodeScalars.prefix(3).map { String($0.value, radix: 16) }
      let found = SuggestedFilename.component(name)
      #expect(found.map { Array($0.utf8) } == expected.map { Array($0.utf8) }, "\(shown)")
    }
    for longest in 0...8 {
      let name = SuggestedFilename.component(person + marks(3) + ".x", longest: longest)
      #expect(name.map { !$0.isEmpty && $0.utf8.count <= longest } ?? (longest < 4), "\(longest)")
    }
    let once = SuggestedFilename.component("a" + marks(95) + ".bash_profile", longest: 200) ?? ""
    let twice = SuggestedFilename.component(once, longest: 200) ?? ""
    #expect(twice.utf8.first == UInt8(ascii: "a") && Array(twice.utf8) == Array(once.utf8))
  }

  @Test(
    "A name of the server is not the name of a file that a later download reads",
    arguments: [
      "f.alamofire-partial", "f.alamofire-ranges", "f.alamofire-ranges.new", "f.af-continue",
      "f.af-download", "f.AF-Continue", "f\u{301}.alamofire-partial", "f\u{D4E}.alamofire-partial",
      "f.x.alamofire-partial", "f~1a.alamofire-ranges",
    ])
  func reservedNames(name: String) {
    let found = self.name("attachment; filename=\"\(name)\"")
    #expect(Array(found.utf8) == Array((name + "-1").utf8))
    let long = SuggestedFilename.component(String(repeating: "x", count: 300) + name) ?? ""
    // Of a long name only the last ending is kept, which may be none of the list.
    #expect(long.utf8.count <= 255 && (long.hasSuffix("-1") || long.hasSuffix("x.new")), "\(long)")
  }

  @Test("What follows a reserved ending, or is it alone, is a name as any other")
  func unreservedNames() {
    for (name, expected) in [
      (".alamofire-partial", "alamofire-partial"), ("f.alamofire-partial\u{301}", nil),
      ("f.alamofire-partial.txt", nil), ("falamofire-partial", nil), ("f.new", nil),
    ] as [(String, String?)] {
      #expect(self.name("attachment; filename=\"\(name)\"").utf8.elementsEqual((expected ?? name).utf8))
    }
  }

  @Test("A long name preserves its extension and fits into a file system")
  func longNames() {
    let long = String(repeating: "ä", count: 300)
    #expect(name("attachment; filename=\(long).txt") == String(repeating: "ä", count: 125) + ".txt")
    #expect(name("attachment; filename=a.\(long)").utf8.count <= 255)
    #expect(name(nil, "/" + String(repeating: "x", count: 255)).utf8.count == 255)
  }
}
