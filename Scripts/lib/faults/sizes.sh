# Sourced by Scripts/lib/faults/run.

# Scripts/sizes
begin
plant Sources/X/Long.swift "$(repeat 'let a = 1\n' 501)"
plant Sources/X/Fits.swift "$(repeat 'let a = 1\n' 500)"
reports 1 $'error: files of more than 500 lines:\n   501  Sources/X/Long.swift' Scripts/sizes "$tree"
begin
plant Sources/X/A.swift "struct A {\n  func long(\n    a: Int\n  ) {\n$(repeat '    call()\n' 71)  }\n  func short() {}\n}\n"
reports 0 $'warning: functions of more than 70 lines:\n    75  Sources/X/A.swift:2 long' Scripts/sizes "$tree"
begin
plant Sources/X/A.swift <<'END'
func first() {
  print("}", #"{"a": "#, "\(value) {")  // }
  let text = """
    }
    func notOne() {
    """
}
func second(action: () -> Void = { print("{") }) {
  action()
}
END
reports 0 $'     7  Sources/X/A.swift:1 first\n     3  Sources/X/A.swift:8 second' Scripts/sizes "$tree"
begin
plant Sources/X/Short.swift "$(repeat '// nobody\n' 29)"
plant Sources/X/Long.swift "$(repeat 'let a = 1\n' 301)"
plant Sources/Y/Y.swift "$(repeat 'let a = 1\n' 300)"
plant Sources/Y/Y.h '// a header\n'
plant Tests/YTests/Y.swift 'let a = 1\n'
plant Sources/Z/Core.swift <<'END'
final class RequestCore {
  let isFirst: Bool
  private var isSecond: Bool?
  static let isShared = true
  var isComputed: Bool { true }
  var count = 1
  let interests = Atomic<Bool>(false)
  struct CoreState {
    var isThird = false
    var isFourth: Bool = true {
      didSet {}
    }
  }
  func work() {
    var isLocal = false
  }
}
extension RequestCore.CoreState {
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
END
prints 0 Scripts/sizes "$tree" counts <<'END'
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
END
