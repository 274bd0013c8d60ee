import ChildProcesses
import Foundation
import Testing

@testable import AFCommand

/// Help, manual page and completions: each of them names each option.
@Suite(.timeLimit(.minutes(5))) struct TextTests {
  @Test("The help fits into 80 columns and names every option with its value")
  func help() {
    let lines = Help.text.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.allSatisfy { $0.count <= 80 })
    for option in Option.all {
      let names = [option.shortName, option.longName].compactMap { $0 }.joined(separator: ", ")
      #expect(Help.text.contains(names + (option.placeholder.map { " \($0)" } ?? "")))
      #expect(Help.text.contains(option.summary))
    }
  }

  @Test("No two options have a name in common")
  func names() {
    let names = Option.all.flatMap(\.names)
    #expect(Set(names).count == names.count)
    #expect(Option.all.allSatisfy { $0.names.count <= 2 && $0.longName.hasPrefix("--") })
  }

  @Test("The examples of the help can be parsed")
  func examples() throws {
    for (command, _) in Help.exampleCommands {
      let words = command.split(separator: " ").drop { $0 != "af" }.dropFirst().map(String.init)
      #expect(throws: Never.self) { try ArgumentParser.parse(words) }
    }
  }

  @Test("The manual page names every option, and its lines begin with no stray request")
  func manual() {
    let page = ManualPage.text
    for name in Option.all.flatMap(\.names) {
      #expect(page.contains("\\fB" + name.replacingOccurrences(of: "-", with: "\\-") + "\\fR"))
    }
    let requests: Set = [".TH", ".SH", ".SS", ".B", ".BR", ".TP", ".PP", ".br"]
    for line in page.split(separator: "\n") where line.hasPrefix(".") || line.hasPrefix("'") {
      #expect(requests.contains(String(line.prefix { $0 != " " })))
    }
  }

  @Test("The completions of each shell name every option", arguments: Completions.Shell.allCases)
  func completions(shell: Completions.Shell) {
    let script = Completions.text(for: shell)
    for option in Option.all {
      switch shell {
      case .bash, .zsh: #expect(option.names.allSatisfy { script.contains($0) })
      case .fish:
        #expect(script.contains(" -l \(option.longName.dropFirst(2)) "))
        if let short = option.shortName { #expect(script.contains(" -s \(short.dropFirst()) ")) }
      }
    }
  }

  /// Returns the completions of a line, as bash divides it into words.
  private func completed(line: String, words: [String], in folder: Folder) async throws -> [String] {
    let list = words.map { CurlCommand.quoted($0) }.joined(separator: " ")
    let command =
      Completions.text(for: .bash)
      + "\ncd \(CurlCommand.quoted(folder.path)); COMP_WORDS=(\(list)); COMP_CWORD=\(words.count - 1)"
      + "\nCOMP_LINE=\(CurlCommand.quoted(line)); COMP_POINT=${#COMP_LINE}; _af; printf '%s\\n' \"${COMPREPLY[@]}\""
    let run = try await ChildRun(
      ["bash", "--norc", "-c", command], environment: ["XDG_DATA_HOME": folder.path, "LC_ALL": "C"])
    #expect(run.status == 0, "\(run.complaints)")
    return String(decoding: run.output, as: UTF8.self).split(separator: "\n").map(String.init).sorted()
  }

  @Test("bash completes the file of an item, and the names of sessions")
  func bashFiles() async throws {
    let folder = try Folder()
    _ = try folder.file("photo one.png", "")
    _ = try folder.file("photo@2.png", "")
    for host in ["a", "b"] {
      try FileManager.default.createDirectory(
        atPath: folder.path("af/sessions/\(host)"), withIntermediateDirectories: true)
      _ = try folder.file("af/sessions/\(host)/work.json", "{}")
    }
    _ = try folder.file("af/sessions/b/home.json", "{}")
    let both = ["photo one.png", "photo@2.png"]
    #expect(
      try await completed(line: "af x.example f@ph", words: ["af", "x.example", "f", "@", "ph"], in: folder)
        == both)
    #expect(try await completed(line: "af x f@", words: ["af", "x", "f", "@"], in: folder) == ["af"] + both)
    #expect(try await completed(line: "af x @ph", words: ["af", "x", "@", "ph"], in: folder) == both)
    #expect(
      try await completed(line: "af x f:=@ph", words: ["af", "x", "f", ":=@", "ph"], in: folder) == both)
    // bash replaces only what follows the last separator.
    #expect(
      try await completed(line: "af x f@photo@", words: ["af", "x", "f", "@", "photo", "@"], in: folder)
        == ["2.png"])
    #expect(
      try await completed(line: "af --session w", words: ["af", "--session", "w"], in: folder) == ["work"])
    #expect(
      try await completed(line: "af --session=", words: ["af", "--session", "="], in: folder)
        == ["af", "home"] + both + ["work"])
    #expect(try await completed(line: "af -o ph", words: ["af", "-o", "ph"], in: folder) == both)
  }

  @Test("bash offers the name of a session as it is, and runs nothing of it")
  func bashSessionNames() async throws {
    let folder = try Folder()
    try FileManager.default.createDirectory(
      atPath: folder.path("af/sessions/a"), withIntermediateDirectories: true)
    let names = ["$(touch hit)", "`touch hit`", "$HOME", "two words", "*", "a'b"]
    for name in names { _ = try folder.file("af/sessions/a/\(name).json", "{}") }
    let offers = try await completed(line: "af --session ", words: ["af", "--session", ""], in: folder)
    #expect(offers == (names + ["af"]).sorted())
    #expect(
      try await completed(line: "af --session tw", words: ["af", "--session", "tw"], in: folder)
        == ["two words"])
    #expect(!FileManager.default.fileExists(atPath: folder.path("hit")))
  }

  @Test("bash reads its completions, and completes names and words")
  func bash() async throws {
    let script = Completions.text(for: .bash)
    func completed(_ words: String...) async throws -> [String] {
      let list = words.map { CurlCommand.quoted($0) }.joined(separator: " ")
      let command =
        script
        + "\nCOMP_WORDS=(\(list)); COMP_CWORD=\(words.count - 1); _af; printf '%s\\n' \"${COMPREPLY[@]}\""
      let run = try await ChildRun(["bash", "--norc", "-c", command])
      #expect(run.status == 0)
      return String(decoding: run.output, as: UTF8.self).split(separator: "\n").map(String.init)
    }
    #expect(try await completed("af", "--max") == ["--max-time", "--max-redirects"])
    #expect(try await completed("af", "--completion", "z") == ["zsh"])
    #expect(try await completed("af", "PO") == ["POST"])
    #expect(try await completed("af", "--timeout", "").isEmpty)
    #expect(try await completed("af", "--completion=f") == ["fish"])
  }
}
