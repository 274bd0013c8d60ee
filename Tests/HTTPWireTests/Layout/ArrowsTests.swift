import Testing

@Suite("Scripts/arrows") struct ArrowsTests {
  /// A module of three folders, two of which name each other.
  private static let files = [
    "Sources/Alamofire/Exports.swift": "@_exported public import struct HTTPWire.HTTPMethod\n",
    "Sources/Alamofire/Cache/Cache.swift": "struct Cache {\n  let session: Session\n}\n",
    "Sources/Alamofire/Session/Session.swift": "final class Session {\n  var cache: Cache?\n}\n",
    "Sources/Alamofire/Trust/Trust.swift":
      "enum Trust {}\n\nextension Session {\n  var trust: Int { 1 }\n}\n",
  ]

  private func run(_ files: [String: String], _ arguments: [String] = []) async throws -> ScriptRun {
    let tree = try SourceTree(files)
    defer { withExtendedLifetime(tree) {} }
    return try await ScriptRun("arrows", on: tree.root, arguments)
  }

  /// Returns the lines of `A.swift` in which the folder `From` names a type of the folder `To`.
  private func places(_ text: String) async throws -> String {
    try await run(
      [
        "Sources/Alamofire/From/A.swift": text,
        "Sources/Alamofire/To/B.swift": "public struct Target {}\nstruct Other {}\n",
      ], ["From", "To"]
    ).output.replacing("Sources/Alamofire/From/A.swift:", with: "")
  }

  private func checked(_ document: String) async throws -> (Int32, String) {
    let run = try await run(Self.files.merging(["Documentation/Architecture.md": document]) { $1 }, ["check"])
    return (run.status, run.output)
  }

  @Test("The report of the package has no mistake")
  func package() async throws {
    let run = try await ScriptRun("arrows")
    #expect(run.status == 0)
    #expect(run.output.contains(/^\d+ arrows between \d+ folders:\n/))
  }

  @Test("The folders of the package name each other as the tables of Architecture.md say")
  func packageTables() async throws {
    let run = try await ScriptRun("arrows", ["check"])
    #expect(run.output == "")
    #expect(run.status == 0)
  }

  @Test("The report counts arrows, and lists circles and extensions of other folders' types")
  func report() async throws {
    let run = try await run(Self.files)
    #expect(
      run.output == """
        3 arrows between 4 folders:
          Cache -> Session
          Session -> Cache
          Trust -> Session
        A circle of 2 folders: Cache Session
        1 extensions of a type of another folder:
          Sources/Alamofire/Trust/Trust.swift:3: Session of Session

        """)
    #expect(run.status == 0)
  }

  @Test(
    "A line that names a type of the other folder is a place of the arrow",
    arguments: [
      "let x: Target?", "let x = [Target.self, 1]", "let x = Alamofire.Target()", "func f(_: Set<Target>) {}",
      "let x = 0...Target.limit", "let x = \"a \\(Target(\"b\").name) c\"", "@Target var x = 1",
      "let x = #\"a\"b\"# + Target.y", "/* /* a */ */ let x: Target", "let x = \"//\" + Target.y",
    ])
  func place(line: String) async throws {
    #expect(try await places("// first\n\(line)\n") == "2: Target\n")
  }

  @Test(
    "Comments, literals, members and private types of one's own are no places",
    arguments: [
      "// Target", "let x = 1  /* Target", "/// A `Target`.", "let x = \"a \\\"Target\"",
      "let x = #\"a \"Target\"#", "let x = Source.Target()", "let x = value?.Target",
      "let x = \"\"\"\n  a \"Target\"\n  Target\n  \"\"\"",
      "/*\nTarget /* Target */\nTarget */", "private struct Target {}\nlet x = Target()", "struct Targets {}",
      "let x = #\"\\(Target)\"#", "let x = \"\\\\\" + \"Target\"",
    ])
  func noPlace(text: String) async throws {
    #expect(try await places(text) == "")
  }

  @Test("Each line and each type of it is listed once")
  func places() async throws {
    let text = "let x: (Target, Target)\nlet y: (Target, Other)\n"
    #expect(try await places(text) == "1: Target\n2: Target\n2: Other\n")
  }

  @Test("Types in braces, private types, and types of subfolders do not make a second owner")
  func owners() async throws {
    let run = try await run([
      "Sources/Alamofire/A/A.swift": "public indirect enum Kind {}\n",
      "Sources/Alamofire/B/B.swift": "extension Int {\n  struct Kind {}\n}\n",
      "Sources/Alamofire/C/C.swift": "fileprivate struct Kind {}\n@MainActor private class Kind {}\n",
      "Sources/Alamofire/D/E/D.swift": "struct Deep {}\n",
      "Sources/Alamofire/D/F/D.swift": "#if DEBUG\nstruct Deep {}\n#endif\nlet x: Deep\n",
    ])
    #expect(run.output == "0 arrows between 4 folders:\n0 extensions of a type of another folder:\n")
    #expect(run.status == 0)
  }

  @Test(
    "A type that two folders declare is a mistake",
    arguments: [
      "struct Kind {}", "@frozen public enum Kind {}", "package final class Kind {}",
      "protocol Kind: Sendable {}", "typealias Kind = Int", "@available(Linux, *) open class Kind {}",
      "nonisolated(unsafe) actor Kind {}",
    ])
  func twoOwners(declaration: String) async throws {
    let run = try await run([
      "Sources/Alamofire/A/A.swift": "struct Kind {}\n", "Sources/Alamofire/B/B.swift": "\n\(declaration)\n",
    ])
    #expect(
      run.output
        == "Sources/Alamofire/B/B.swift:2: Kind is declared in Sources/Alamofire/A/A.swift:1, too: A and B\n")
    #expect(run.status == 1)
  }

  @Test("Arrows and extensions that the tables list are accepted")
  func accepted() async throws {
    let result = try await checked(
      """
      # Folders

      | folder | may name | reason |
      |---|---|---|
      | Cache, `Session` | each other | a circle |
      | Trust | all above | |

      | extension of | in folder |
      |---|---|
      | `Session` | Trust |
      """)
    #expect(result == (0, ""))
  }

  @Test("An arrow that no table lists is reported with its places")
  func refusedArrow() async throws {
    let result = try await checked(
      """
      | folder | may name |
      |---|---|
      | Session | Cache |
      | Trust | Session |
      | Cache | – |

      | extension of | in folder |
      |---|---|
      | Session | Trust |
      """)
    #expect(
      result == (1, "Cache must not name Session:\nSources/Alamofire/Cache/Cache.swift:2: Session\n"))
  }

  @Test("An extension that is not listed, a listed one that is gone, and an unknown folder are reported")
  func refusedEntries() async throws {
    let result = try await checked(
      """
      | folder | may name |
      |---|---|
      | Cache, Session, Trust | each other, Gone |

      | extension of | in folder |
      |---|---|
      | Cache | Trust |
      """)
    #expect(
      result == (
        1,
        """
        Documentation/Architecture.md:3: there is no folder Gone
        Sources/Alamofire/Trust/Trust.swift:3: the extension of Session in Trust is not listed
        Documentation/Architecture.md:7: there is no extension of Cache in Trust

        """
      ))
  }

  @Test("The folders of another target are reported and checked, too")
  func otherTarget() async throws {
    let own = [
      "Sources/HTTPWire/Fields/Field.swift": "struct Field {}\n",
      "Sources/HTTPWire/Flow/Flow.swift":
        "struct Flow {\n  let field: HTTPWire.Field\n}\n\nextension Field {}\n",
    ]
    let report = try await run(Self.files.merging(own) { $1 }, ["+HTTPWire"])
    #expect(
      report.output == """
        1 arrows between 2 folders:
          Flow -> Fields
        1 extensions of a type of another folder:
          Sources/HTTPWire/Flow/Flow.swift:5: Field of Fields

        """)
    let places = try await run(own, ["+HTTPWire", "Flow", "Fields"])
    #expect(places.output.hasPrefix("Sources/HTTPWire/Flow/Flow.swift:2: Field\n"))
    let document = """
      | folder of HTTPWire | may name |
      |---|---|
      | Fields | Flow |
      | Flow | |
      """
    let check = try await run(own.merging(["Documentation/Architecture.md": document]) { $1 }, ["check"])
    #expect(check.output.hasPrefix("Flow must not name Fields:\n"))
    #expect(check.output.contains("the extension of Field in Flow is not listed"))
    #expect(check.status == 1)
  }

  @Test("A document without the table, unknown folders and other arguments are reported")
  func faults() async throws {
    #expect(
      try await checked("# Folders\n") == (
        2, "arrows: there is no table of the folders of Alamofire in Documentation/Architecture.md\n"
      ))
    let unknown = try await run(Self.files, ["Cache", "Gone"])
    #expect(unknown.output == "arrows: there is no folder Gone\n")
    #expect(unknown.status == 1)
    let misspelt = try await run(Self.files, ["verify"])
    #expect(
      misspelt.output
        == "arrows: the arguments are [root] [+TARGET], [root] [+TARGET] FROM TO, or [root] check\n")
    #expect(misspelt.status == 2)
  }
}
