import HTTPWire
import Testing

@Suite("Nesting of XML") struct XMLNestingTests {
  private func isDeeper(than limit: Int, _ text: String) -> Bool {
    Array(text.utf8).withUnsafeBytes { XMLNesting.isDeeper(than: limit, $0) }
  }

  private func nested(_ count: Int, _ begin: String, _ end: String = "</array>") -> String {
    "<plist>" + String(repeating: begin, count: count) + String(repeating: end, count: count) + "</plist>"
  }

  @Test(
    "The deepest element counts",
    arguments: [
      ("", 0), ("text", 0), ("<a/>", 1), ("<a></a><b></b>", 1), ("<a><b/><c></c></a>", 2),
      ("<?xml version=\"1.0\"?>\n<!DOCTYPE plist PUBLIC \"-//A//B//EN\" \"http://a/b.dtd\">\n<a>\n</a>\n", 1),
      ("<plist version=\"1.0\"><a><b>1 &gt; 2</b><b /></a></plist>", 3),
      ("<a><!-- </a> --><b><![CDATA[</b>]]></b></a>", 2), ("<a></a></a></a><b><c/></b>", 2),
    ])
  func depth(text: String, expected: Int) {
    #expect(!isDeeper(than: expected, text), "\(text)")
    if expected > 0 { #expect(isDeeper(than: expected - 1, text), "\(text)") }
  }

  @Test("A long list is not deep") func longList() {
    let item = "<dict><key>a</key><string>b</string><!-- c --></dict>\n"
    #expect(!isDeeper(than: 4, "<plist version=\"1.0\"><array>" + String(repeating: item, count: 10_000)))
  }

  @Test(
    "End tags do not count where a parser may not see them",
    arguments: [
      "<array><!--</array>-->", "<array><![CDATA[</array>]]>", "<array><?a </array>?>",
      "<array><!--></array>-->",
      "<array><?></array>?>", "<array a=\"</array>\">", "<array a='></array>'>", "<array </array>>",
      "<array><!DOCTYPE a [ </array> ]>", "<array><!--<![CDATA[--></array>]]>", "<array><<</array>",
      "<array a='/>'>",
    ])
  func hiddenEndTags(begin: String) {
    #expect(isDeeper(than: 100, nested(101, begin)))
    #expect(isDeeper(than: 100, nested(300, begin)))
  }

  @Test("The limit is exact") func limit() {
    #expect(!isDeeper(than: 101, nested(100, "<array>")))
    #expect(isDeeper(than: 100, nested(100, "<array>")))
  }
}
