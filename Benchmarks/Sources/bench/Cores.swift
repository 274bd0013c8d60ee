import Foundation

/// The cores on which the server and the clients run.
struct Cores {
  /// The number of the server's core; `nil` on a machine with one core, where processes are not pinned.
  let server: Int?
  let client: Int?

  /// Chooses the first two cores that this process may use; none if there is only one.
  init() {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("Cpus_allowed_list:") } ?? ""
    let allowed = Self.list(line.drop { !$0.isNumber })
    let isEnough = allowed.count > 1
    server = isEnough ? allowed[0] : nil
    client = isEnough ? allowed[1] : nil
  }

  /// Parses a list of cores as the kernel writes it, such as `0-3,8`.
  static func list(_ text: some StringProtocol) -> [Int] {
    text.split(separator: ",").flatMap { part -> [Int] in
      let ends = part.split(separator: "-").compactMap { Int($0) }
      guard let first = ends.first, let last = ends.last, first <= last else { return [] }
      return Array(first...last)
    }
  }
}
