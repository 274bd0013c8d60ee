/// A path with places for values, such as `/basic-auth/{user}/{password}`.
struct RoutePattern: Sendable, Equatable {
  private enum Segment: Sendable, Equatable {
    case text(String)
    case parameter
  }

  private let segments: [Segment]
  private let takesRest: Bool

  init(_ pattern: String) {
    var parts = Self.segments(of: pattern)
    takesRest = parts.last == "**"
    if takesRest { parts.removeLast() }
    segments = parts.map { $0.hasPrefix("{") && $0.hasSuffix("}") ? .parameter : .text($0) }
  }

  /// Returns the decoded segments of a path, without empty ones at both ends.
  static func segments(of path: String) -> [String] {
    var parts = path.split(separator: "/", omittingEmptySubsequences: false)[...]
    if parts.first?.isEmpty == true { parts = parts.dropFirst() }
    if parts.last?.isEmpty == true { parts = parts.dropLast() }
    return parts.map { PercentCoding.decode($0, plusIsSpace: false) }
  }

  /// Returns the values of the parameters, or `nil` when the path does not match.
  func match(_ path: [String]) -> [String]? {
    guard takesRest ? path.count >= segments.count : path.count == segments.count else { return nil }
    var parameters: [String] = []
    for (segment, part) in zip(segments, path) {
      switch segment {
      case .text(let text): if text != part { return nil }
      case .parameter: parameters.append(part)
      }
    }
    return parameters
  }
}
