import Foundation

/// The files of the package, for tests of their text.
enum PackageFiles {
  /// The folder with `Package.swift`.
  static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  /// Returns the files below the given folders, and the given files, whose names end with `suffix`, sorted.
  static func paths(in places: [String], suffix: String) -> [String] {
    places.flatMap { place -> [String] in
      guard !place.hasSuffix(suffix) else { return [place] }
      let below = FileManager.default.enumerator(atPath: root.appendingPathComponent(place).path)
      let names = (below?.allObjects ?? []).compactMap { $0 as? String }
      return names.filter { $0.hasSuffix(suffix) }.map { "\(place)/\($0)" }
    }.sorted()
  }

  static func text(of path: String) throws -> String {
    try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
  }

  static func lines(of path: String) throws -> [Substring] {
    try text(of: path).split(separator: "\n", omittingEmptySubsequences: false)
  }
}
