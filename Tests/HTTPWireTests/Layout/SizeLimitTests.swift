import Testing

@Suite struct SizeLimitTests {
  @Test func noFileOfThePackageIsTooLong() async throws {
    let run = try await ScriptRun("sizes")
    #expect(run.status == 0, "\(run.output)")
  }

  @Test func aFileOfMoreThanFiveHundredLinesFails() async throws {
    let tree = try SourceTree([
      "Sources/X/Long.swift": String(repeating: "let a = 1\n", count: 501),
      "Sources/X/Fits.swift": String(repeating: "let a = 1\n", count: 500),
    ])
    let run = try await ScriptRun("sizes", on: tree.root)
    #expect(run.status == 1)
    #expect(run.output.hasSuffix("error: files of more than 500 lines:\n   501  Sources/X/Long.swift\n"))
  }

  @Test func aLongFunctionIsAWarning() async throws {
    let body = String(repeating: "    call()\n", count: 71)
    let tree = try SourceTree([
      "Sources/X/A.swift": "struct A {\n  func long(\n    a: Int\n  ) {\n\(body)  }\n  func short() {}\n}\n"
    ])
    let run = try await ScriptRun("sizes", on: tree.root)
    #expect(run.status == 0)
    #expect(
      run.output.hasSuffix("warning: functions of more than 70 lines:\n    75  Sources/X/A.swift:2 long\n"))
  }

  @Test func bracesInTextDoNotCount() async throws {
    let tree = try SourceTree([
      "Sources/X/A.swift": """
      func first() {
        print("}", #"{"a": "#, "\\(value) {")  // }
        let text = \"""
          }
          func notOne() {
          \"""
      }
      func second(action: () -> Void = { print("{") }) {
        action()
      }
      """
    ])
    let run = try await ScriptRun("sizes", on: tree.root)
    #expect(run.output.contains("     7  Sources/X/A.swift:1 first\n     3  Sources/X/A.swift:8 second\n"))
    #expect(!run.output.contains("notOne"))
  }
}
