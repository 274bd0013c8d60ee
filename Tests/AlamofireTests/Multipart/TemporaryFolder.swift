import Foundation

/// A temporary folder that is removed at the end of the test.
final class TemporaryFolder: Sendable {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent("multipart-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  var names: [String] {
    get throws { try FileManager.default.contentsOfDirectory(atPath: url.path).sorted() }
  }

  subscript(_ name: String) -> URL { url.appendingPathComponent(name) }

  func file(_ name: String, _ content: Data = Data("content".utf8)) throws -> URL {
    try content.write(to: self[name])
    return self[name]
  }
}
