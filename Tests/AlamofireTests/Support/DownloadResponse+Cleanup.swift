import Alamofire
import Foundation
import HTTPSystem
import HTTPWire
import Testing

extension DownloadResponse {
  /// Removes the temporary files of the download: the file, and the part that its resume data name.
  func removeFile() {
    if let fileURL { try? FileManager.default.removeItem(at: fileURL) }
    if let resumeData, let part = try? part(namedBy: resumeData) {
      try? FileManager.default.removeItem(at: part)
    }
  }
}

/// Returns the partial file that resume data name.
func part(namedBy data: Data) throws -> URL {
  let name = try #require(Journal.standard.state(of: data)?.description.file)
  return FileManager.default.temporaryDirectory.appendingPathComponent(name)
}
