import Foundation

/// The file of a form that is too large for memory.
///
/// Each has a folder of its own, which only its owner can read. A folder for all forms would belong to the first user
/// of the machine who makes it, and that user could read or replace the forms of others.
struct FormFile {
  let url: URL

  /// Makes the folder.
  ///
  /// - Parameter name: The beginning of its name.
  init(_ name: String) throws {
    let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("\(name)-\(UUID().uuidString)", isDirectory: true)
    try FileManager.default.createDirectory(
      at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    url = folder.appendingPathComponent("multipart.form.data")
  }

  /// Removes the file with its folder. Does nothing the second time.
  func remove() { try? FileManager.default.removeItem(at: url.deletingLastPathComponent()) }
}
