# Sourced by Scripts/lib/faults/run.

# Scripts/words: documents
begin
{
  printf '# Title\n\n'
  printf 'a %s\n\n' "$(repeat b 99)"
  printf '| a | %s |\n\n' "$(repeat b 61)"
  printf '%s\n%s b.\n\n' "$(repeat 'a ' 13)" "$(repeat 'a ' 12)"
  printf '%s\n\n' 'The text is for nobody.' 'Whoever reads it' 'It waits meanwhile.' 'Monitors are told of it.'
} | plant Documentation/A.md
long=$(repeat x 120)
plant README.md <<END
# Title

[link]($long)
| $(repeat é 60) | [b]($long) |

\`\`\`
nobody $long
\`\`\`
$(repeat 'word ' 13)
$(repeat 'word ' 12).
A second sentence with \`the code of nobody\`.
- $(repeat 'word ' 15)
- $(repeat 'word ' 15)
<!-- swift:
let nobody = "$long"
-->
END
prints 1 Scripts/words "$tree" <<'END'
Documentation/A.md:3: a line of 101 columns
Documentation/A.md:5: a table cell of 61 characters
Documentation/A.md:7: a sentence of 26 words: a a a ...
Documentation/A.md:10: "nobody": name the thing instead
Documentation/A.md:12: "whoever": name the thing instead
Documentation/A.md:14: "meanwhile": say it as a colleague would
Documentation/A.md:16: "are told": say it as a colleague would
END

# Random numbers of tests
begin
plant Tests/ATests/A.swift 'let a = Int.random(in: 0..<3)\nlet a = [1, 2].shuffled()\nSystemRandomNumberGenerator()\n'
plant Tests/ATests/Support/A.swift 'let a = Int.random(in: 0..<3)\n'
plant Sources/A/A.swift 'let a = Int.random(in: 0..<3)\n'
plant Tests/ATests/B.swift 'let a = file.random(in: 1...2)\n'
plant Tests/ATests/C.swift 'let a = Int.random(in: 1...2, using: &random)\n'
prints 1 Scripts/words "$tree" <<'END'
Tests/ATests/A.swift:1: random numbers without a seed: pass a generator of Seed
Tests/ATests/A.swift:2: random numbers without a seed: pass a generator of Seed
Tests/ATests/A.swift:3: random numbers without a seed: pass a generator of Seed
END

# Comments
begin
{
  for line in '/// What it is.' '  /// Who reads it.' '/// How it ends.' '/// The same, twice.' '/// As above.' \
    '/// As it is sent.' '/// It is sent.' '/// When it ends.' '/// Why it ends.' '/// Where it ends.' \
    '/// This is sent.' '/// Nothing.' "  // a $(repeat é 114)" '// For nobody.' 'let a = "b"  // To whom'; do
    printf '%s\nlet x = 1\n' "$line"
  done
} | plant Sources/X/Comments.swift
{
  for word in The A One Sent '`nil`' -; do
    printf '/// %s value.\n/// Returns it.\n@discardableResult @available(*, deprecated)\n// A comment.\n' "$word"
    printf 'public func x() -> Int { 1 }\n'
  done
  for declaration in 'init(_ x: Int) {}' 'public convenience init?(_ x: Int) {}' '@A(b) init<X>(_ x: X) {}'; do
    printf '/// - Parameter x: A value.\n%s\n' "$declaration"
  done
} | plant Sources/X/Functions.swift
plant Sources/X/Accepted.swift <<END
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
  /// \`\`$long\`\`.
  struct H { init() {} }
  // a $(repeat é 113)
}
/// However, a noun.
/// What a later line begins with.
let nobody = "https://nobody"
let text = """
  // nobody
  /// What a literal says.
  """
// Whatever is in \`nobody\`.
END
prints 1 Scripts/words "$tree" <<'END'
Sources/X/Comments.swift:1: the comment begins with "What"
Sources/X/Comments.swift:3: the comment begins with "Who"
Sources/X/Comments.swift:5: the comment begins with "How"
Sources/X/Comments.swift:7: the comment begins with "The same"
Sources/X/Comments.swift:9: the comment begins with "As above"
Sources/X/Comments.swift:11: the comment begins with "As"
Sources/X/Comments.swift:13: the comment begins with "It"
Sources/X/Comments.swift:15: the comment begins with "When"
Sources/X/Comments.swift:17: the comment begins with "Why"
Sources/X/Comments.swift:19: the comment begins with "Where"
Sources/X/Comments.swift:21: the comment begins with "This"
Sources/X/Comments.swift:23: the comment begins with "Nothing"
Sources/X/Comments.swift:25: a comment of 121 columns
Sources/X/Comments.swift:27: "nobody": name the thing instead
Sources/X/Comments.swift:29: "whom": name the thing instead
Sources/X/Functions.swift:1: the comment of a method begins with "The" instead of a verb
Sources/X/Functions.swift:6: the comment of a method begins with "A" instead of a verb
Sources/X/Functions.swift:11: the comment of a method begins with "One" instead of a verb
Sources/X/Functions.swift:16: the comment of a method begins with "Sent" instead of a verb
Sources/X/Functions.swift:21: the comment of a method begins with "`nil`" instead of a verb
Sources/X/Functions.swift:26: the comment of a method begins with "-" instead of a verb
Sources/X/Functions.swift:31: the comment of an initializer begins with "-" instead of a verb
Sources/X/Functions.swift:33: the comment of an initializer begins with "-" instead of a verb
Sources/X/Functions.swift:35: the comment of an initializer begins with "-" instead of a verb
END

# Phrases that stand for a noun
begin
plant Sources/X/Phrases.swift '// The size, or that of the file.\n// A comment about those offsets.\n'
plant README.md 'The proxy in front of it.\n'
prints 1 Scripts/words "$tree" <<'END'
README.md:1: "in front of": repeat the noun, or leave it out
Sources/X/Phrases.swift:1: "that of": repeat the noun, or leave it out
END

# Names of nested types
begin
plant Sources/X/Names.swift 'struct X {\n  enum Step { case next }\n  package struct State {}\n  final class Kind {}\n'
reports 1 'Sources/X/Names.swift:2: a nested type without the name of its owner, which is not private' Scripts/words "$tree"
reports 1 'Sources/X/Names.swift:3: a nested type without the name of its owner, which is not private' Scripts/words "$tree"
reports 1 'Sources/X/Names.swift:4: a nested type without the name of its owner, which is not private' Scripts/words "$tree"
begin
plant Sources/X/Names.swift 'enum Outcome {}\nstruct X {\n  private enum Step { case next }\n  public struct State {}\n  enum XKind {}\n'
plant Tests/X/Names.swift 'struct X {\n  enum Step { case next }\n}\n'
prints 0 Scripts/words "$tree" <<<''

# The exemptions, and their update
begin
plant Sources/X/A.swift '// nobody\n// nobody\n'
plant Scripts/lib/words.txt '2 Sources/X/A.swift\n'
prints 0 Scripts/words "$tree" <<<''
plant Scripts/lib/words.txt '1 Sources/X/A.swift\n'
prints 1 Scripts/words "$tree" <<'END'
Sources/X/A.swift:1: "nobody": name the thing instead
Sources/X/A.swift:2: "nobody": name the thing instead
Sources/X/A.swift: 2 complaints, 1 exempt in Scripts/lib/words.txt
END
plant Scripts/lib/words.txt '3 Sources/X/A.swift\n'
prints 1 Scripts/words "$tree" \
  <<<'Sources/X/A.swift: 2 complaints, 3 exempt; write the lower number by: Scripts/words . update'
plant Scripts/lib/words.txt '2 Sources/X/A.swift\n1 Sources/X/Gone.swift\n'
prints 1 Scripts/words "$tree" \
  <<<'Sources/X/Gone.swift: 0 complaints, 1 exempt; write the lower number by: Scripts/words . update'
updated() { Scripts/words "$tree" update >/dev/null 2>&1 && cat "$tree/Scripts/lib/words.txt"; }
begin
plant Sources/X/B.swift '// nobody\n'
plant Scripts/lib/words.txt '2 Sources/X/A.swift\n'
prints 0 updated <<<'1 Sources/X/B.swift'
plant Sources/X/B.swift ''
prints 0 updated <<<''
plant README.md 'To whom?\n'
prints 1 updated <<<''
