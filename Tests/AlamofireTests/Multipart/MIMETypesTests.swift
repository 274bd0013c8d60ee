import Alamofire
import Testing

@Suite struct MIMETypesTests {
  private static let mimeTypes = """
    # comment\twith words
    application/json\t\t\t\tjson map
    image/jpeg  jpeg jpg
    text/nothing
    nonsense bad
    two/many/slashes worse
    text/first both

    """
  private static let globs = """
    # weight:type:pattern
    80:text/html:*.HTML
    60:application/x-sharedlib:*.so.[0-9]*
    50:text/second:*.both
    50:application/x-compressed-tar:*.tar.gz
    50:text/x-c++src:*.C:cs
    50:text/x-csrc:*.c
    50:text/x-makefile:makefile
    50:text/weighty:*.w
    10:text/light:*.w
    broken
    50::*.empty
    """

  @Test(
    "Types are found by extension",
    arguments: [
      ("json", "application/json"), ("map", "application/json"), ("JPG", "image/jpeg"),
      ("both", "text/first"),
      ("html", "text/html"), ("c", "text/x-csrc"), ("C", "text/x-csrc"), ("w", "text/weighty"),
      ("png", "image/png"), ("bad", "application/octet-stream"), ("worse", "application/octet-stream"),
      ("gz", "application/gzip"), ("so", "application/octet-stream"), ("empty", "application/octet-stream"),
      ("", "application/octet-stream"), ("nothing", "application/octet-stream"),
    ])
  func extensions(pathExtension: String, type: String) {
    let types = MIMETypes(mimeTypes: Self.mimeTypes, globs: Self.globs)
    #expect(types.type(forExtension: pathExtension) == type)
  }

  @Test("Without tables common types are known") func noTables() {
    let types = MIMETypes(mimeTypes: nil, globs: nil)
    let found = ["jpg", "PDF", "txt", "webp", "zip", "xyzzy"].map { types.type(forExtension: $0) }
    #expect(
      found == [
        "image/jpeg", "application/pdf", "text/plain", "image/webp", "application/zip",
        "application/octet-stream",
      ])
  }

  @Test("The tables of this system contain common types") func systemTables() {
    let types = MIMETypes.system
    #expect(types.type(forExtension: "jpg") == "image/jpeg")
    #expect(types.type(forExtension: "json") == "application/json")
    #expect(types.type(forExtension: "no such extension") == "application/octet-stream")
  }
}
