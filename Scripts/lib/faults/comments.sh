# Sourced by Scripts/lib/faults/run.

# Scripts/comments
begin
plant Sources/Alamofire/A.swift <<'END'
public import Foundation
/// With a comment.
@available(*, deprecated)
public enum Kind {
  case first
  /// With a comment.
  case second
  func inner() {
    switch self { case .first, .second: break }
  }
}
public protocol Seam: Sendable {
  func send()
}
open class Base {
  open func act() {}
  func own() {}
  package let core: Int
}
package enum Hidden {
  case one
}
let text = """
  public func literal() {}
  """
extension Base {
  public static func make() {}
}
END
prints 1 Scripts/comments "$tree" < <(
  for line in 5 12 13 15 16 27; do echo "Sources/Alamofire/A.swift:$line: this is public and has no comment"; done
)
