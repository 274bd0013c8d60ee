import AFCommand
import Testing

@Suite struct XMLTextTests {
  private func format(_ text: String, colours: Bool = false, isLaidOut: Bool = true) -> String? {
    XMLText.format(Array(text.utf8), palette: Palette(isOn: colours), isLaidOut: isLaidOut)
  }

  @Test("Elements without text get a line for each child, and text is unchanged")
  func layout() {
    let text = """
      <?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "]>">]><a x="1>2"><b/><c>one <i>two</i>
      three</c><!-- note --><d></d><e> </e><f><![CDATA[<x>]]></f><g><h><k/></h></g></a>
      """
    #expect(
      format(text) == """
        <?xml version="1.0"?>
        <!DOCTYPE a [<!ENTITY b "]>">]>
        <a x="1>2">
          <b/>
          <c>one <i>two</i>
        three</c>
          <!-- note -->
          <d></d>
          <e> </e>
          <f><![CDATA[<x>]]></f>
          <g>
            <h>
              <k/>
            </h>
          </g>
        </a>
        """)
  }

  @Test(
    "A second layout changes nothing",
    arguments: [
      "<a><b><c/></b></a>", "<a>x<b> y </b></a>", "<a><b></b>\n\n<c>\n</c></a>",
      "<a xml:space=\"preserve\"> <b/> </a>",
    ])
  func stable(text: String) throws {
    let once = try #require(format(text))
    #expect(format(once) == once)
  }

  @Test("An element that preserves its space is unchanged, and so is everything without a layout")
  func unchanged() {
    let text = "<a xml:space=\"preserve\"> <b/>\n</a>"
    #expect(format(text) == text)
    let other = "<a>\n\n <b/></a>\n"
    #expect(format(other, isLaidOut: false) == other)
  }

  @Test("Names, values and comments have colours")
  func colours() {
    #expect(
      format("<a b='c'><!--d-->e</a>", colours: true)
        == "\u{1B}[36m<a\u{1B}[0m b=\u{1B}[32m'c'\u{1B}[0m\u{1B}[36m>\u{1B}[0m"
        + "\u{1B}[2m<!--d-->\u{1B}[0me\u{1B}[36m</a\u{1B}[0m\u{1B}[36m>\u{1B}[0m")
  }

  @Test(
    "Text other than one document is refused",
    arguments: [
      "", " ", "a", "<a>", "</a>", "<a></b>", "<a/><b/>", "<a/>x", "x<a/>", "<a", "<a b='>", "<!--",
      "<a><!--</a>",
      "<?x", "<1/>", "<a><![CDATA[x</a>", "<![CDATA[x]]>", "<a></a></a>", "< a/>", "<>", "<a><b></a></b>",
      "<a/><!DOCTYPE a>", "<!DOCTYPE", "<", "<a<b/>",
    ])
  func refusals(text: String) {
    #expect(format(text) == nil)
  }

  @Test("Deep nesting and long documents need neither stack nor memory without bounds")
  func depth() {
    let count = 20_000
    let deep = String(repeating: "<a>", count: count) + String(repeating: "</a>", count: count)
    #expect(format(deep) == nil)
    #expect(format(deep, isLaidOut: false) == deep)
    #expect(
      JSONText.format(
        Array((String(repeating: "[", count: count) + String(repeating: "]", count: count)).utf8),
        palette: Palette(isOn: false)) == nil)
  }
}
