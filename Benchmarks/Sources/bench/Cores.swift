import Foundation

/// Which core the server runs on and which one the clients.
struct Cores {
  /// `nil` on a machine with one core: then nothing is pinned.
  let server: Int?
  let client: Int?

  /// The first two cores that this process may use.
  init() {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("Cpus_allowed_list:") } ?? ""
    let allowed = Self.list(line.drop { !$0.isNumber })
    let isEnough = allowed.count > 1
    server = isEnough ? allowed[0] : nil
    client = isEnough ? allowed[1] : nil
  }

  /// The numbers of a list in the kernel's spelling, such as `0-3,8`.
  static func list(_ text: some StringProtocol) -> [Int] {
    text.split(separator: ",").flatMap { part -> [Int] in
      let ends = part.split(separator: "-").compactMap { Int($0) }
      guard let first = ends.first, let last = ends.last, first <= last else { return [] }
      return Array(first...last)
    }
  }
}
