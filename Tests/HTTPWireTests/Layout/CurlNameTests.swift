import Foundation
import Testing

@Suite struct CurlNameTests {
  /// Both formats of the manual: libcurl 7.88 wraps the lines, libcurl 8 does not.
  private static let manual = """
    .SH "libcurl symbols"
    This page lists the first version, and the last one.
    .IP CURLE_OK
    Introduced in 7.1
    .IP CURLE_GONE
    Introduced in 7.1
    Last used in 7.80.0
    .IP CURLOPT_FLOOR
    Introduced in 7.81.0. See \\fICURLOPT_FLOOR(3)\\fP.
    .IP CURLOPT_YOUNG
    Introduced in 7.81.1. See \\fICURLOPT_YOUNG(3)\\fP.
    .IP CURLOPT_YOUNGER
    Introduced in 8.6.0
    .IP CURLOPT_OLD
    Introduced in 7.19.4. Deprecated since 7.85.0.
    """

  private func complaints(_ files: [String: String]) async throws -> [String] {
    let tree = try SourceTree(files.merging(["manual.3": Self.manual]) { $1 })
    let run = try await ScriptRun(
      "curl-names", on: tree.root, [tree.root.appendingPathComponent("manual.3").path])
    let lines = run.output.split(separator: "\n").map(String.init)
    #expect(run.status == (lines.isEmpty ? 0 : 1))
    return lines
  }

  @Test("Sources name no symbol of libcurl that a supported version lacks, deprecates or has renamed")
  func sourcesOfThePackage() async throws {
    let run = try await ScriptRun("curl-names")
    #expect(run.status == 0, "\(run.output)")
  }

  @Test(
    "A name that a supported version lacks is reported with its line",
    arguments: [
      ("CURLOPT_YOUNG", "is not in libcurl 7.81.0 (introduced in 7.81.1)"),
      ("CURLOPT_YOUNGER", "is not in libcurl 7.81.0 (introduced in 8.6.0)"),
      ("CURLOPT_OLD", "is deprecated since libcurl 7.85.0"),
      ("CURLE_GONE", "was removed after libcurl 7.80.0"),
      ("CURLE_INVENTED", "is not in libcurl-symbols(3)"),
    ])
  func unsupportedName(name: String, complaint: String) async throws {
    for file in ["Sources/HTTPEngine/A.swift", "Sources/CCurl/shim.h", "Benchmarks/Floor/a.c"] {
      let found = try await complaints([file: "f(CURLE_OK)\nf(CURLE_OK, \(name), CURLOPT_FLOOR)\n"])
      #expect(found == ["\(file):2: \(name) \(complaint)"])
    }
  }

  @Test("Names in comments, in longer words and within a condition on the version are allowed")
  func allowedNames() async throws {
    let shim = """
      // CURLOPT_YOUNG
      int x = MY_CURLOPT_YOUNG; // CURLOPT_YOUNG
      #ifdef OTHER
      #if LIBCURL_VERSION_NUM >= 0x080600
      #ifdef INNER
      f(CURLOPT_YOUNGER);
      #endif
      f(CURLOPT_YOUNGER);
      #endif
      f(CURLOPT_FLOOR);
      #endif
      """
    #expect(try await complaints(["Sources/CCurl/shim.h": shim]) == [])
  }

  @Test("A condition on the version ends with its #endif")
  func endOfCondition() async throws {
    let shim = """
      #if LIBCURL_VERSION_NUM >= 0x080600
      #if INNER
      #endif
      f(CURLOPT_YOUNG);
      #endif
      f(CURLOPT_YOUNG);
      """
    let found = try await complaints(["Sources/CCurl/shim.h": shim])
    #expect(
      found == [
        "Sources/CCurl/shim.h:6: CURLOPT_YOUNG is not in libcurl 7.81.0 (introduced in 7.81.1)"
      ])
  }
}
