# Sourced by Scripts/lib/faults/run.

# Scripts/layers: the lines that name a type of another folder
begin
plant Sources/Alamofire/To/B.swift 'public struct Target {}\nstruct Other {}\n'
plant Sources/Alamofire/From/A.swift <<'END'
let x: Target?
let x = [Target.self, 1]
let x = Alamofire.Target()
func f(_: Set<Target>) {}
let x = 0...Target.limit
let x = "a \(Target("b").name) c"
@Target var x = 1
let x = #"a"b"# + Target.y
/* /* a */ */ let x: Target
let x = "//" + Target.y
let x: (Target, Target)
let y: (Target, Other)
END
prints 0 Scripts/layers "$tree" From To < <(
  for line in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "Sources/Alamofire/From/A.swift:$line: Target"; done
  echo "Sources/Alamofire/From/A.swift:12: Other"
)
# Comments, literals, members and private types do not count.
plant Sources/Alamofire/From/A.swift <<'END'
// Target
/// A `Target`.
let x = "a \"Target\""
let x = #"a "Target"#
let x = Source.Target()
let x = value?.Target
let x = """
  a "Target"
  Target
  """
/*
Target /* Target */
Target */
struct Targets {}
let x = #"\(Target)"#
let x = "\\" + "Target"
let x = 1  /* Target
END
plant Sources/Alamofire/From/Private.swift 'private struct Target {}\nlet x = Target()\n'
prints 0 Scripts/layers "$tree" From To <<<''

# Types in braces, private types and types of subfolders do not make a second owner. Two declarations do.
begin
plant Sources/Alamofire/A/A.swift 'public indirect enum Kind {}\n'
plant Sources/Alamofire/B/B.swift 'extension Int {\n  struct Kind {}\n}\n'
plant Sources/Alamofire/C/C.swift 'fileprivate struct Kind {}\n@MainActor private class Kind {}\n'
plant Sources/Alamofire/D/E/D.swift 'struct Deep {}\n'
plant Sources/Alamofire/D/F/D.swift '#if DEBUG\nstruct Deep {}\n#endif\nlet x: Deep\n'
prints 0 Scripts/layers "$tree" <<<$'0 arrows between 4 folders:\n0 extensions of a type of another folder:'
while read -r declaration; do
  begin
  plant Sources/Alamofire/A/A.swift 'struct Kind {}\n'
  plant Sources/Alamofire/B/B.swift "\n$declaration\n"
  prints 1 Scripts/layers "$tree" <<<"Sources/Alamofire/B/B.swift:2: Kind is declared in Sources/Alamofire/A/A.swift:1, too: A and B"
done <<'END'
struct Kind {}
@frozen public enum Kind {}
package final class Kind {}
protocol Kind: Sendable {}
typealias Kind = Int
@available(Linux, *) open class Kind {}
nonisolated(unsafe) actor Kind {}
END

# The report, and the comparison with the tables of Architecture.md
begin
plant Sources/Alamofire/Exports.swift '@_exported public import struct HTTPWire.HTTPMethod\n'
plant Sources/Alamofire/Cache/Cache.swift 'struct Cache {\n  let session: Session\n}\n'
plant Sources/Alamofire/Session/Session.swift 'final class Session {\n  var cache: Cache?\n}\n'
plant Sources/Alamofire/Trust/Trust.swift 'enum Trust {}\n\nextension Session {\n  var trust: Int { 1 }\n}\n'
prints 0 Scripts/layers "$tree" <<'END'
3 arrows between 4 folders:
  Cache -> Session
  Session -> Cache
  Trust -> Session
A circle of 2 folders: Cache Session
1 extensions of a type of another folder:
  Sources/Alamofire/Trust/Trust.swift:3: Session of Session
END
plant Documentation/Architecture.md <<'END'
# Folders

| folder | may name | reason |
|---|---|---|
| Cache, `Session` | each other | a circle |
| Trust | all above | |
END
prints 0 Scripts/layers "$tree" check <<<''
plant Documentation/Architecture.md <<'END'
| folder | may name |
|---|---|
| Session | Cache |
| Trust | Session |
| Cache | – |
END
prints 1 Scripts/layers "$tree" check <<<$'Cache must not name Session:\nSources/Alamofire/Cache/Cache.swift:2: Session'
plant Documentation/Architecture.md <<'END'
| folder | may name |
|---|---|
| Cache, Session, Trust | each other, Gone |
END
prints 1 Scripts/layers "$tree" check <<<'Documentation/Architecture.md:3: there is no folder Gone'
plant Documentation/Architecture.md '# Folders\n'
prints 2 Scripts/layers "$tree" check <<<'layers: there is no table of the folders of Alamofire in Documentation/Architecture.md'
prints 1 Scripts/layers "$tree" Cache Gone <<<'layers: there is no folder Gone'
prints 2 Scripts/layers "$tree" verify <<<'layers: the arguments are [root] [+TARGET], [root] [+TARGET] FROM TO, or [root] check'
plant Sources/HTTPWire/Fields/Field.swift 'struct Field {}\n'
plant Sources/HTTPWire/Flow/Flow.swift 'struct Flow {\n  let field: HTTPWire.Field\n}\n\nextension Field {}\n'
prints 0 Scripts/layers "$tree" +HTTPWire <<'END'
1 arrows between 2 folders:
  Flow -> Fields
1 extensions of a type of another folder:
  Sources/HTTPWire/Flow/Flow.swift:5: Field of Fields
END
reports 0 'Sources/HTTPWire/Flow/Flow.swift:2: Field' Scripts/layers "$tree" +HTTPWire Flow Fields
begin
plant Sources/HTTPWire/Fields/Field.swift 'struct Field {}\n'
plant Sources/HTTPWire/Flow/Flow.swift 'struct Flow {\n  let field: HTTPWire.Field\n}\n\nextension Field {}\n'
plant Documentation/Architecture.md '| folder of HTTPWire | may name |\n|---|---|\n| Fields | Flow |\n| Flow | |\n'
reports 1 'Flow must not name Fields:' Scripts/layers "$tree" check
