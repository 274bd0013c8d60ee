import ChildProcesses
import Foundation
import Testing

@testable import AFCommand

/// The completions of zsh and fish, as these shells themselves use them.
@Suite(.timeLimit(.minutes(5))) struct ShellCompletionTests {
  private let folder: Folder
  private let home: Folder

  /// Makes a folder with files of several kinds, and a home folder with sessions.
  init() throws {
    folder = try Folder()
    home = try Folder()
    for name in ["photo one.png", "photo@2.png", "plain.txt", "sub/inner.txt"] {
      try Self.file(name, in: folder)
    }
    for name in ["a/work", "b/work", "b/home", "a/$(touch hit)"] {
      try Self.file("af/sessions/\(name).json", in: home)
    }
    try Self.file("paper.txt", in: home)
  }

  private static func file(_ name: String, in folder: Folder) throws {
    let url = URL(fileURLWithPath: folder.path(name))
    try FileManager.default.createDirectory(
      at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data().write(to: url)
  }

  /// The line after Tab, and the words that are offered.
  private struct Reaction {
    let line: String
    let offers: [String]
  }

  private func run(_ words: [String]) async throws -> [[String]] {
    let variables = [
      "HOME": home.path, "XDG_DATA_HOME": home.path, "XDG_CONFIG_HOME": home.path("config"),
      "XDG_CACHE_HOME": home.path("cache"), "LC_ALL": "C.UTF-8", "TERM": "dumb",
    ]
    // A shell that waits for more keys is ended.
    let limited = ["/usr/bin/env", "--chdir=\(folder.path)", "timeout", "120"] + words
    let run = try await ChildRun(limited, environment: variables, isJoined: true)
    let output = String(decoding: run.output, as: UTF8.self)
    #expect(run.status == 0, "\(output)")
    return output.split(separator: "\u{1D}", omittingEmptySubsequences: false).dropLast()
      .map { $0.split(separator: "\u{1E}", omittingEmptySubsequences: false).map(String.init) }
  }

  // MARK: zsh

  /// Types the lines and Tab into an interactive zsh on a terminal, and prints what each line becomes and what is
  /// offered, and anything else that appears.
  private static let zshKeyboard = #"""
    zmodload zsh/zpty
    COLUMNS=500 LINES=1000
    zpty shell "COLUMNS=500 LINES=1000 zsh -f -i"
    zpty -w shell "SETTINGS=${(q)1}; . ${(q)1}"
    zpty -r shell answer $'*\4' || exit 1
    shift
    for line; do
      zpty -w -n shell "$line"$'\t\7'
      zpty -r shell answer $'*\4' || exit 1
      print -rn -- "${${answer#*$'\1'}%$'\4'*}"$'\36'"${answer%%$'\1'*}"$'\35'
    done
    zpty -d shell
    """#

  private static let zshSettings = #"""
    PROMPT= RPROMPT=
    fpath=($SETTINGS:h $fpath)
    autoload -U compinit && compinit -D -u
    compadd() {
      # With these options it fills an array and offers nothing.
      if [[ " ${*[1,(i)(-|--)]}" != *" -"[OAD]" "* ]]; then
        local -a words
        builtin compadd -A words "$@"
        offers+=("${words[@]}")
      fi
      builtin compadd "$@"
    }
    report() {
      print -rn -- $'\1'"$BUFFER"$'\36'"${(pj:\36:)${(@ou)offers}}"$'\4'
      BUFFER= offers=()
    }
    zle-line-init() { print -rn -- $'\4' }
    zle -N report
    zle -N zle-line-init
    bindkey '^G' report
    bindkey '^I' expand-or-complete
    setopt no_beep no_auto_list
    """#

  private func zsh(_ lines: [String]) async throws -> [String: Reaction] {
    _ = try home.file("_af", Completions.text(for: .zsh))
    let settings = try home.file("settings", Self.zshSettings)
    let keyboard = try home.file("keyboard", Self.zshKeyboard)
    let answers = try await run(["zsh", "-f", keyboard, settings] + lines)
    try #require(answers.count == lines.count)
    return Dictionary(
      uniqueKeysWithValues: zip(lines, answers).map { line, answer in
        let (shown, offers) = (answer.last ?? "", answer.dropFirst().dropLast().filter { !$0.isEmpty })
        #expect(!shown.contains("not found"), "\(line): \(shown)")
        return (line, Reaction(line: answer[0], offers: Array(offers)))
      })
  }

  @Test(
    "zsh completes options, values, methods, sessions and files", .enabled(if: Programs.isInstalled("zsh")))
  func zsh() async throws {
    let files = ["photo\\ one.png", "photo@2.png", "plain.txt", "sub"]
    let expected: [(String, line: String, offers: [String])] = [
      ("af --verb", "af --verbose ", ["--verbose"]),
      ("af --json --fo", "af --json --fo", ["--follow", "--form"]),
      ("af PO", "af POST ", ["POST"]),
      ("af --timeout 5 PO", "af --timeout 5 POST ", ["POST"]),
      ("af x.example PO", "af x.example PO", []),
      ("af --timeout ", "af --timeout ", []),
      ("af -A", "af -A", ["basic", "bearer", "digest"]),
      ("af -Adi", "af -Adigest ", ["digest"]),
      ("af --pretty=c", "af --pretty=colors ", ["colors"]),
      ("af --completion f", "af --completion fish ", ["fish"]),
      // The names of these values have colons.
      ("af --auth u", "af --auth u", []),
      ("af --resolve x", "af --resolve x", []),
      ("af --session w", "af --session work ", ["work"]),
      ("af --session=h", "af --session=home ", ["home"]),
      ("af --session=\\$", "af --session=\\$\\(touch\\ hit\\) ", ["\\$\\(touch\\ hit\\)"]),
      ("af --output=pl", "af --output=plain.txt ", ["plain.txt"]),
      ("af -o ", "af -o ", files),
      ("af -opl", "af -oplain.txt ", ["plain.txt"]),
      ("af --ca ~/pa", "af --ca ~/paper.txt ", ["paper.txt"]),
      ("af x.example f@", "af x.example f@", files),
      ("af x.example f@pl", "af x.example f@plain.txt ", ["plain.txt"]),
      ("af x.example f@photo\\ ", "af x.example f@photo\\ one.png ", ["photo\\ one.png"]),
      ("af x.example f@photo@", "af x.example f@photo@2.png ", ["photo@2.png"]),
      ("af x.example f:=@su", "af x.example f:=@sub/", ["sub"]),
      ("af x.example f@~/pa", "af x.example f@~/paper.txt ", ["paper.txt"]),
      ("af x.example pl", "af x.example pl", []),
    ]
    let reactions = try await zsh(expected.map(\.0))
    for (line, completed, offers) in expected {
      let reaction = try #require(reactions[line])
      #expect(reaction.line == completed, "\(line)")
      #expect(reaction.offers.sorted() == offers.sorted(), "\(line)")
    }
  }

  @Test("zsh offers every option", .enabled(if: Programs.isInstalled("zsh"))) func zshOptions() async throws {
    let offers = Set(try await zsh(["af -"])["af -"]?.offers ?? [])
    #expect(offers == Set(Option.all.flatMap(\.names)))
  }

  // MARK: fish

  private func fish(_ lines: [String]) async throws -> [String: [String]] {
    let script = try home.file("af.fish", Completions.text(for: .fish))
    let command = #"""
      source $argv[1]
      for line in $argv[2..]
        printf '%s\x1e' (complete -C $line)
        printf '\x1d'
      end
      """#
    let answers = try await run(["fish", "--no-config", "-c", command, script] + lines)
    try #require(answers.count == lines.count)
    return Dictionary(
      uniqueKeysWithValues: zip(lines, answers).map { line, answer in
        // A tab separates the description.
        (line, answer.map { String($0.prefix { $0 != "\t" }) }.filter { !$0.isEmpty }.sorted())
      })
  }

  @Test(
    "fish completes options, values, methods, sessions and files", .enabled(if: Programs.isInstalled("fish")))
  func fish() async throws {
    let files = ["photo one.png", "photo@2.png", "plain.txt", "sub/"]
    let expected: [(String, offers: [String])] = [
      ("af --verb", ["--verbose"]),
      ("af --fo", ["--follow", "--form"]),
      ("af PO", ["POST"]),
      ("af --timeout 5 PO", ["POST"]),
      ("af GET PO", []),
      ("af GET ", []),
      ("af --timeout ", []),
      ("af -A ", ["basic", "bearer", "digest"]),
      ("af -Adi", ["-Adigest"]),
      ("af --pretty=c", ["--pretty=colors"]),
      ("af --completion f", ["fish"]),
      ("af --auth u", []),
      ("af --session w", ["work"]),
      ("af --session=h", ["--session=home"]),
      ("af --session ", ["$(touch hit)", "home"] + files + ["work"]),
      ("af --output=pl", ["--output=plain.txt"]),
      ("af -o ", files),
      ("af --ca ~/pa", ["~/paper.txt"]),
      ("af x.example f@", files.map { "f@\($0)" }),
      ("af x.example f@pl", ["f@plain.txt"]),
      ("af x.example f@photo\\ ", ["f@photo one.png"]),
      ("af x.example 'f@photo o", ["f@photo one.png"]),
      ("af x.example \"f@photo o", ["f@photo one.png"]),
      ("af x.example f@photo@", ["f@photo@2.png"]),
      ("af x.example f:=@sub/", ["f:=@sub/inner.txt"]),
      ("af x.example f@~/pa", ["f@~/paper.txt"]),
      ("af x.example pl", []),
    ]
    let offered = try await fish(expected.map(\.0))
    for (line, offers) in expected {
      // fish 4 also offers options that contain the letters of the word.
      let word = line.split(separator: " ").last.map(String.init) ?? ""
      let begun = offered[line]?.filter { !word.hasPrefix("--") || line.hasSuffix(" ") || $0.hasPrefix(word) }
      #expect(begun == offers, "\(line)")
    }
  }

  @Test("fish offers every option", .enabled(if: Programs.isInstalled("fish"))) func fishOptions()
    async throws
  {
    let offers = try await fish(["af -", "af --"])
    let names = Option.all.flatMap(\.names)
    #expect(offers["af --"] == names.filter { $0.hasPrefix("--") }.sorted())
    #expect(Set(offers["af -"] ?? []).isSuperset(of: names.filter { !$0.hasPrefix("--") }))
  }
}
