import Alamofire
import Foundation

extension DownloadResponse {
  /// Removes the temporary files of the download: the file, and the part that its resume data names.
  func removeFile() {
    if let fileURL { try? FileManager.default.removeItem(at: fileURL) }
    guard let resumeData,
      let list = try? PropertyListSerialization.propertyList(from: resumeData, format: nil),
      let name = (list as? [String: Any])?["file"] as? String
    else { return }
    try? FileManager.default.removeItem(
      at: FileManager.default.temporaryDirectory.appendingPathComponent(name))
  }
}
