import Foundation
import Testing

@Suite("Scripts/words") struct WordsTests {
  private static func repeated(_ word: String, _ count: Int) -> String {
    Array(repeating: word, count: count).joined(separator: " ")
  }

  private func run(_ files: [String: String], _ arguments: [String] = []) async throws -> ScriptRun {
    let tree = try SourceTree(files)
    defer { withExtendedLifetime(tree) {} }
    return try await ScriptRun("words", on: tree.root, arguments)
  }

  @Test("No file of the package has more complaints than are exempt")
  func package() async throws {
    let run = try await ScriptRun("words")
    #expect(run.output == "")
    #expect(run.status == 0)
  }

  @Test(
    "A document with a fault is reported with its line",
    arguments: [
      ("a " + String(repeating: "b", count: 99), "a line of 101 columns"),
      ("| a | " + String(repeating: "b", count: 61) + " |", "a table cell of 61 characters"),
      ("\(Self.repeated("a", 13))\n\(Self.repeated("a", 12)) b.", "a sentence of 26 words: a a a ..."),
      ("The text is for nobody.", "\"nobody\": name the thing instead"),
      ("Whoever reads it", "\"whoever\": name the thing instead"),
      ("It waits meanwhile.", "\"meanwhile\": say it as a colleague would"),
      ("Monitors are told of it.", "\"are told\": say it as a colleague would"),
    ])
  func documentFault(text: String, complaint: String) async throws {
    let run = try await run(["Documentation/A.md": "# Title\n\n\(text)\n"])
    #expect(run.output == "Documentation/A.md:3: \(complaint)\n")
    #expect(run.status == 1)
  }

  @Test(
    "Random numbers of a test without a seed are reported",
    arguments: ["Int.\("random")(in: 0..<3)", "[1, 2].\("shuffled")()", "\("SystemRandom")NumberGenerator()"])
  func unseeded(code: String) async throws {
    let run = try await run([
      "Tests/ATests/A.swift": "let a = \(code)\n", "Tests/ATests/Support/A.swift": "let a = \(code)\n",
      "Sources/A/A.swift": "let a = \(code)\n", "Tests/ATests/B.swift": "let a = file.random(in: 1...2)\n",
      "Tests/ATests/C.swift": "let a = Int.random(in: 1...2, using: &random)\n",
    ])
    #expect(run.output == "Tests/ATests/A.swift:1: random numbers without a seed: pass a generator of Seed\n")
    #expect(run.status == 1)
  }

  @Test("Code, links, long words, table rows with links and short sentences are accepted")
  func acceptedDocument() async throws {
    let long = String(repeating: "x", count: 120)
    let text = """
      # Title

      [link](\(long))
      | \(String(repeating: "é", count: 60)) | [b](\(long)) |

      ```
      nobody \(long)
      ```
      \(Self.repeated("word", 13))
      \(Self.repeated("word", 12)).
      A second sentence with `the code of nobody`.
      - \(Self.repeated("word", 15))
      - \(Self.repeated("word", 15))
      """
    let run = try await run(["README.md": text])
    #expect(run.output == "")
    #expect(run.status == 0)
  }

  @Test(
    "A comment with a fault is reported with its line",
    arguments: [
      ("/// What it is.", "the comment begins with \"What\""),
      ("  /// Who reads it.", "the comment begins with \"Who\""),
      ("/// How it ends.", "the comment begins with \"How\""),
      ("/// The same, twice.", "the comment begins with \"The same\""),
      ("/// As above.", "the comment begins with \"As above\""),
      ("/// As it is sent.", "the comment begins with \"As\""),
      ("/// It is sent.", "the comment begins with \"It\""),
      ("/// When it ends.", "the comment begins with \"When\""),
      ("/// Why it ends.", "the comment begins with \"Why\""),
      ("/// Where it ends.", "the comment begins with \"Where\""),
      ("/// This is sent.", "the comment begins with \"This\""),
      ("/// Nothing.", "the comment begins with \"Nothing\""),
      ("  // a " + String(repeating: "é", count: 114), "a comment of 121 columns"),
      ("// For nobody.", "\"nobody\": name the thing instead"),
      ("let a = \"b\"  // To whom", "\"whom\": name the thing instead"),
    ])
  func commentFault(line: String, complaint: String) async throws {
    let run = try await run(["Sources/X/A.swift": "import X\n\(line)\nlet x = 1\n"])
    #expect(run.output == "Sources/X/A.swift:2: \(complaint)\n")
    #expect(run.status == 1)
  }

  @Test(
    "A comment of a method that begins without a verb is reported with its line",
    arguments: ["The", "A", "One", "Sent", "`nil`", "-"])
  func methodCommentFault(word: String) async throws {
    let text = """
      /// \(word) value.
      /// Returns it.
      @discardableResult @available(*, deprecated)
      // A comment.
      public func x() -> Int { 1 }

      """
    let run = try await run(["Sources/X/A.swift": text])
    #expect(
      run.output
        == "Sources/X/A.swift:1: the comment of a method begins with \"\(word)\" instead of a verb\n")
    #expect(run.status == 1)
  }

  @Test(
    "A comment of an initializer that begins without a verb is reported with its line",
    arguments: ["init(_ x: Int) {}", "public convenience init?(_ x: Int) {}", "@A(b) init<X>(_ x: X) {}"])
  func initializerCommentFault(declaration: String) async throws {
    let text = "class A {\n  /// - Parameter x: A value.\n  \(declaration)\n}\n"
    let run = try await run(["Sources/X/A.swift": text])
    #expect(
      run.output
        == "Sources/X/A.swift:2: the comment of an initializer begins with \"-\" instead of a verb\n")
    #expect(run.status == 1)
  }

  @Test("Verbs before methods and initializers, nouns before other declarations and long links are accepted")
  func acceptedOpenings() async throws {
    let text = """
      /// Percent-encodes a text.
      func a() {}
      /// Whether a text is encoded.
      @inlinable func b() -> Bool { true }
      /// Called, at the end, once.
      func c()
      /// The program.
      @main struct D {
        func e() {}
        /// Makes an item.
        init() {}
        /// One item.
        let f: Int = .init(1)
        func g() {}
        /// The type of
        /// ``\(String(repeating: "x", count: 120))``.
        struct H { init() {} }
        // a \(String(repeating: "é", count: 113))
      }
      """
    let run = try await run(["Sources/X/A.swift": text])
    #expect(run.output == "")
    #expect(run.status == 0)
  }

  @Test("Code, literals, later lines of a comment and longer words are accepted")
  func acceptedSource() async throws {
    let quotes = String(repeating: "\"", count: 3)
    let text = """
      /// However, a noun.
      /// What a later line begins with.
      let nobody = "https://nobody"
      let text = \(quotes)
        // nobody
        /// What a literal says.
        \(quotes)
      // Whatever is in `nobody`.
      """
    let run = try await run(["Sources/X/A.swift": text])
    #expect(run.output == "")
    #expect(run.status == 0)
  }

  @Test("A file fails above its number of exemptions, and below it")
  func exemptions() async throws {
    let files = ["Sources/X/A.swift": "// nobody\n// nobody\n"]
    func output(_ list: String) async throws -> (Int32, String) {
      let run = try await run(files.merging(["Scripts/lib/words.txt": list]) { $1 })
      return (run.status, run.output)
    }
    let fault = "\"nobody\": name the thing instead\n"
    #expect(try await output("2 Sources/X/A.swift\n") == (0, ""))
    #expect(
      try await output("1 Sources/X/A.swift\n") == (
        1,
        "Sources/X/A.swift:1: \(fault)Sources/X/A.swift:2: \(fault)"
          + "Sources/X/A.swift: 2 complaints, 1 exempt in Scripts/lib/words.txt\n"
      ))
    #expect(
      try await output("3 Sources/X/A.swift\n") == (
        1, "Sources/X/A.swift: 2 complaints, 3 exempt; write the lower number by: Scripts/words . update\n"
      ))
    #expect(
      try await output("2 Sources/X/A.swift\n1 Sources/X/Gone.swift\n") == (
        1, "Sources/X/Gone.swift: 0 complaints, 1 exempt; write the lower number by: Scripts/words . update\n"
      ))
  }

  @Test("An update writes lower counts and moves those of moved files, but never raises their sum")
  func update() async throws {
    func updated(_ files: [String: String], _ list: String) async throws -> (Int32, String) {
      let tree = try SourceTree(files.merging(["Scripts/lib/words.txt": list]) { $1 })
      defer { withExtendedLifetime(tree) {} }
      let run = try await ScriptRun("words", on: tree.root, ["update"])
      let written = try String(
        contentsOf: tree.root.appendingPathComponent("Scripts/lib/words.txt"), encoding: .utf8)
      return (run.status, written)
    }
    let moved = ["Sources/X/B.swift": "// nobody\n"]
    #expect(try await updated(moved, "2 Sources/X/A.swift\n") == (0, "1 Sources/X/B.swift\n"))
    #expect(try await updated(["Sources/X/A.swift": ""], "2 Sources/X/A.swift\n") == (0, ""))
    #expect(try await updated(["README.md": "To whom?\n"], "") == (1, ""))
  }
}
