import Foundation

/// A file manager whose temporary files are in a folder of the test.
///
/// Unchecked, as its superclass is: its own property is a constant.
final class FolderFileManager: FileManager, @unchecked Sendable {
  private let folder: TemporaryFolder

  init(_ folder: TemporaryFolder) {
    self.folder = folder
    super.init()
  }

  override var temporaryDirectory: URL { folder.url }
}
