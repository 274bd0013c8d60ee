import Foundation

/// A folder for one test, which is removed with it.
final class Folder: Sendable {
  let path: String

  init() throws {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("af-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    path = url.path
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func path(_ name: String) -> String { "\(path)/\(name)" }

  /// Writes a file and returns its path.
  func file(_ name: String, _ content: String) throws -> String {
    try Data(content.utf8).write(to: URL(fileURLWithPath: path(name)))
    return path(name)
  }
}
