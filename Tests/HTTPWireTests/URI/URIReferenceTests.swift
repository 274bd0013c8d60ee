import HTTPWire
import Testing

@Suite struct URIReferenceTests {
  @Test("A URI is parsed into its components") func components() {
    let uri = URIReference("http://www.ics.uci.edu/pub/ietf/uri/?a=b?c#Related")
    #expect(uri.scheme == "http")
    #expect(uri.authority == "www.ics.uci.edu")
    #expect(uri.path == "/pub/ietf/uri/")
    #expect(uri.query == "a=b?c")
    #expect(uri.fragment == "Related")
  }

  @Test("Absent and empty components are different") func absentComponents() {
    #expect(URIReference("http://a?#").query == "")
    #expect(URIReference("http://a?#").fragment == "")
    #expect(URIReference("http://a").query == nil)
    #expect(URIReference("http://a").fragment == nil)
    #expect(URIReference("///p").authority == "")
    #expect(URIReference("/p").authority == nil)
  }

  @Test("Text without a scheme has none", arguments: ["1a:b", ":b", "a b:c", "ä:b", "a/b:c"])
  func missingScheme(text: String) {
    #expect(URIReference(text).scheme == nil)
    #expect(URIReference(text).path == text)
  }

  @Test(
    "The text of a reference consists of its components",
    arguments: [
      "", "a", "#", "?", "//", "///", "a:", "http://u@h:1/p?q#f", "//h", "?q#f", "urn:x:y?z", "/a//b/", "%zz",
      "http://[::1]:80", "a?b?c#d#e", "//h?q", "//h#f", "ü/ü?ü#ü",
    ])
  func textOfReference(text: String) {
    #expect(URIReference(text).text == text)
  }

  @Test(
    "Invalid characters are escaped in their component, and escapes stay",
    arguments: [
      ("http://a/?x[]=1&y=%20", "http://a/?x%5B%5D=1&y=%20"),
      ("http://[::1]/[b]?[c]#[d]", "http://[::1]/%5Bb%5D?%5Bc%5D#%5Bd%5D"),
      ("http://a/100%/%41?%#%4", "http://a/100%25/%41?%25#%254"),
      ("http://a/b?c?d#e?f", "http://a/b?c?d#e?f"),
      ("http://a/{b}^|`\"<>\\ \u{FC}", "http://a/%7Bb%7D%5E%7C%60%22%3C%3E%5C%20%C3%BC"),
      ("http://a?", "http://a?"),
      ("http://a/!$&'()*+,;=:@-._~/%25", "http://a/!$&'()*+,;=:@-._~/%25"), ("", ""), ("x:%", "x:%25"),
    ])
  func strictText(text: String, expected: String) {
    #expect(URIReference(text).strictText == expected)
    #expect(URIReference(expected).strictText == expected)
  }

  static let normalExamples: [(String, String)] = [
    ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
    ("/g", "http://a/g"), ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
    ("#s", "http://a/b/c/d;p?q#s"), ("g#s", "http://a/b/c/g#s"), ("g?y#s", "http://a/b/c/g?y#s"),
    (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"), ("g;x?y#s", "http://a/b/c/g;x?y#s"),
    ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"),
    ("../", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"),
    ("../../g", "http://a/g"),
  ]

  static let abnormalExamples: [(String, String)] = [
    ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"), ("/./g", "http://a/g"),
    ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"),
    ("g..", "http://a/b/c/g.."), ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"),
    ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"),
    ("g;x=1/./y", "http://a/b/c/g;x=1/y"), ("g;x=1/../y", "http://a/b/c/y"),
    ("g?y/./x", "http://a/b/c/g?y/./x"), ("g?y/../x", "http://a/b/c/g?y/../x"),
    ("g#s/./x", "http://a/b/c/g#s/./x"), ("g#s/../x", "http://a/b/c/g#s/../x"), ("http:g", "http:g"),
  ]

  @Test("The examples of RFC 3986 §5.4 are resolved", arguments: normalExamples + abnormalExamples)
  func examples(reference: String, target: String) {
    #expect(URIReference.resolve(reference, against: "http://a/b/c/d;p?q") == target)
  }

  static let otherBases: [(String, String, String)] = [
    ("g", "http://a", "http://a/g"), ("?x", "http://a", "http://a?x"), ("", "http://a#f", "http://a"),
    ("g", "http://a?q", "http://a/g"), (".", "http://a", "http://a/"), ("..", "http://a", "http://a/"),
    ("http://b/x/../y", "http://a", "http://b/y"), ("//b/./y", "https://a/z", "https://b/y"),
    ("g", "mailto:a", "mailto:g"), ("../g", "http://a/b//c/d", "http://a/b//g"),
    ("/a/b/c/./../../g", "http://h", "http://h/a/g"), ("mid/content=5/../6", "http://h", "http://h/mid/6"),
    ("x", "http://u:p@h:1/", "http://u:p@h:1/x"), ("a/..", "http://h/", "http://h/"),
  ]

  @Test("References are resolved against other bases", arguments: otherBases)
  func bases(reference: String, base: String, target: String) {
    #expect(URIReference.resolve(reference, against: base) == target)
  }

  static let lenientExamples: [(String, String)] = [
    ("  /a b \t", "http://h/a%20b"), ("\u{A0}", "http://h/x/%C2%A0"),
    ("/café?q=é#ü", "http://h/caf%C3%A9?q=%C3%A9#%C3%BC"),
    (#"/"<>\^`{|}"#, "http://h/%22%3C%3E%5C%5E%60%7B%7C%7D"), ("/100%", "http://h/100%"),
    ("/%zz%20", "http://h/%zz%20"), ("/a\tb", "http://h/a%09b"), ("/[1]", "http://h/[1]"),
    ("   ", "http://h/x/y?z"), ("/a\u{7F}b", "http://h/a%7Fb"),
  ]

  @Test("References of real servers are trimmed and escaped", arguments: lenientExamples)
  func lenientReferences(reference: String, target: String) {
    #expect(URIReference.resolve(reference, against: "http://h/x/y?z") == target)
  }

  @Test("A long path of dots is resolved in linear time") func longPath() {
    let path = String(repeating: "/a/..", count: 100_000)
    #expect(URIReference.resolve(path, against: "http://h") == "http://h/")
  }
}
