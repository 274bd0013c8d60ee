import Testing

@Suite struct SizeLimitTests {
  @Test("No file of the package is too long") func package() async throws {
    let run = try await ScriptRun("sizes")
    #expect(run.status == 0, "\(run.output)")
  }

  @Test("A file of more than five hundred lines is an error") func longFile() async throws {
    let tree = try SourceTree([
      "Sources/X/Long.swift": String(repeating: "let a = 1\n", count: 501),
      "Sources/X/Fits.swift": String(repeating: "let a = 1\n", count: 500),
    ])
    let run = try await ScriptRun("sizes", on: tree.root)
    #expect(run.status == 1)
    #expect(run.output.hasSuffix("error: files of more than 500 lines:\n   501  Sources/X/Long.swift\n"))
  }

  @Test("A long function is a warning") func longFunction() async throws {
    let body = String(repeating: "    call()\n", count: 71)
    let tree = try SourceTree([
      "Sources/X/A.swift": "struct A {\n  func long(\n    a: Int\n  ) {\n\(body)  }\n  func short() {}\n}\n"
    ])
    let run = try await ScriptRun("sizes", on: tree.root)
    #expect(run.status == 0)
    #expect(
      run.output.hasSuffix("warning: functions of more than 70 lines:\n    75  Sources/X/A.swift:2 long\n"))
  }

  @Test("Braces in text are ignored") func bracesInText() async throws {
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

  @Test("The counts are those of Swift files in Sources, stored flags and complaints")
  func counts() async throws {
    let tree = try SourceTree([
      "Sources/X/Short.swift": String(repeating: "// nobody\n", count: 29),
      "Sources/X/Long.swift": String(repeating: "let a = 1\n", count: 301),
      "Sources/Y/Y.swift": String(repeating: "let a = 1\n", count: 300),
      "Sources/Y/Y.h": "// a header\n",
      "Tests/YTests/Y.swift": "let a = 1\n",
      "Sources/Z/Core.swift": """
      final class RequestCore {
        let isFirst: Bool
        private var isSecond: Bool?
        static let isShared = true
        var isComputed: Bool { true }
        var count = 1
        let interests = Atomic<Bool>(false)
        struct State {
          var isThird = false
          var isFourth: Bool = true {
            didSet {}
          }
        }
        func work() {
          var isLocal = false
        }
      }
      extension RequestCore.State {
        struct Part:
          Sendable
        {
          @exclusivity(unchecked) var isFifth = true
        }
      }
      extension Transfer {
        struct Rest {
          var isFresh = false
          let isOld: Atomic<Bool>
        }
      }
      struct Other {
        var isOther = false
      }

      """,
    ])
    let run = try await ScriptRun("sizes", on: tree.root, ["counts"])
    #expect(
      run.output == """
        | target | files | lines | files under 30 lines | files over 300 lines |
        |---|---|---|---|---|
        | X | 2 | 330 | 1 | 1 |
        | Y | 1 | 300 | 0 | 0 |
        | Z | 1 | 33 | 0 | 0 |
        | all | 4 | 663 | 1 | 1 |

        | count | number |
        |---|---|
        | stored flags of RequestCore | 6 |
        | stored flags of Transfer | 2 |
        | complaints of Scripts/words | 29 |

        """)
    #expect(run.status == 0)
  }
}
