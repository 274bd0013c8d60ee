import AlamofireV4
import Foundation

/// Makes a file with `bytes` bytes, in a separate folder. The caller removes it by ``removeFolder(of:)``.
func file(_ name: String, bytes: Int) throws -> URL {
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("samples-\(UUID().uuidString)")
  try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  let url = folder.appendingPathComponent(name)
  try Data(repeating: 0x61, count: bytes).write(to: url)
  return url
}

func removeFolder(of files: URL...) {
  for file in files { try? FileManager.default.removeItem(at: file.deletingLastPathComponent()) }
}

/// Removes the file that a download without a destination leaves in the temporary folder, at the end of the download.
/// The documents leave it there.
func removeFile(of download: DownloadRequest) async {
  let url = await withCheckedContinuation { continuation in
    download.response { continuation.resume(returning: $0.temporaryURL) }
  }
  removeFile(at: url)
}

func removeFile(at url: URL?) {
  if let url { try? FileManager.default.removeItem(at: url) }
}
